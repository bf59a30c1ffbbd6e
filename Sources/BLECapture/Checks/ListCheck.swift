internal import BLECore

/// Runs the lists that a recorded client requests through the discovery procedures of the live stack.
///
/// A list may be requested in parts, with other requests in between: the expected next request is stored and
/// recognized.
struct ListCheck: Sendable {
    /// A procedure in progress.
    fileprivate enum Walk: Sendable {
        case services(ServiceDiscovery)
        case characteristics(CharacteristicDiscovery)
        case descriptors(DescriptorDiscovery)
        case includes(IncludeDiscovery)
        case database(GATTDiscovery)
    }

    /// The next step of a procedure, regardless of its result.
    fileprivate enum Step {
        case send([UInt8])
        case finished
        case failed(GATTFailure)
    }

    /// A procedure with its next request.
    private struct Pending: Sendable {
        var walk: Walk
        var request: [UInt8]
    }

    /// More than any client requests concurrently.
    private static let mostWalks = 16

    private var waiting: [Pending] = []
    /// The procedures whose request is outstanding.
    private var running: [Walk] = []

    /// The client sent a request.
    mutating func sent(_ pdu: [UInt8], mtu: UInt16) {
        running = waiting.filter { $0.request == pdu }.map { $0.walk }
        waiting.removeAll { $0.request == pdu }
        let begun = Self.walks(beginningWith: pdu, mtu: mtu)
        if begun.isEmpty { return }
        // A client that requests other lists does not discover as we do.
        waiting.removeAll { $0.walk.isDatabase }
        if running.contains(where: { !$0.isDatabase }) { return }
        for walk in begun {
            var walk = walk
            if case .send(let request) = walk.step(nil), request == pdu { running.append(walk) }
        }
    }

    /// The response arrived. Returns the reason if it cannot belong to the list.
    mutating func received(_ reply: ATTReply) -> GATTFailure? {
        var failure: GATTFailure?
        for walk in running {
            var walk = walk
            switch walk.step(reply) {
            case .send(let request): waiting.append(Pending(walk: walk, request: request))
            // An error response is not a disagreement.
            case .finished, .failed(.att): continue
            case .failed(let reason): failure = failure ?? reason
            }
        }
        running = []
        if waiting.count > Self.mostWalks { waiting.removeFirst(waiting.count - Self.mostWalks) }
        return failure
    }

    /// Returns the procedures that begin with this request.
    private static func walks(beginningWith pdu: [UInt8], mtu: UInt16) -> [Walk] {
        guard let packet = try? ATTPacket(pdu) else { return [] }
        switch packet {
        case .readByGroupTypeRequest(let request):
            guard let range = range(request.startHandle, request.endHandle) else { return [] }
            guard request.type == .primaryServiceDeclaration || request.type == .secondaryServiceDeclaration else {
                return []
            }
            let isPrimary = request.type == .primaryServiceDeclaration
            let list = Walk.services(ServiceDiscovery(isPrimary: isPrimary, in: range))
            guard isPrimary, range == 1...0xFFFF else { return [list] }
            return [list]
                + DiscoveryLevel.allCases.map { .database(GATTDiscovery(level: $0, mtu: mtu, isStrict: true)) }
        case .findByTypeValueRequest(let request):
            guard let range = range(request.startHandle, request.endHandle), request.type == 0x2800,
                request.value.count == 2 || request.value.count == 16,
                let uuid = BluetoothUUID(littleEndian: request.value.span)
            else { return [] }
            return [.services(ServiceDiscovery(uuid, in: range))]
        case .readByTypeRequest(let request):
            guard let range = range(request.startHandle, request.endHandle) else { return [] }
            if request.type == .characteristicDeclaration {
                return [.characteristics(CharacteristicDiscovery(in: range))]
            }
            return request.type == .includeDeclaration ? [.includes(IncludeDiscovery(in: range))] : []
        case .findInformationRequest(let request):
            guard let range = range(request.startHandle, request.endHandle) else { return [] }
            return [.descriptors(DescriptorDiscovery(in: range))]
        default:
            return []
        }
    }

    private static func range(_ start: AttributeHandle, _ end: AttributeHandle) -> ClosedRange<AttributeHandle>? {
        start > 0 && start <= end ? start...end : nil
    }
}

extension ListCheck.Walk {
    fileprivate var isDatabase: Bool {
        if case .database = self { true } else { false }
    }

    /// Continues with a response, or begins without one.
    fileprivate mutating func step(_ reply: ATTReply?) -> ListCheck.Step {
        switch self {
        case .services(var machine):
            defer { self = .services(machine) }
            return Self.step(&machine, reply)
        case .characteristics(var machine):
            defer { self = .characteristics(machine) }
            return Self.step(&machine, reply)
        case .descriptors(var machine):
            defer { self = .descriptors(machine) }
            return Self.step(&machine, reply)
        case .includes(var machine):
            defer { self = .includes(machine) }
            return Self.step(&machine, reply)
        case .database(var machine):
            defer { self = .database(machine) }
            return Self.step(&machine, reply)
        }
    }

    private static func step<Machine: GATTProcedure>(_ machine: inout Machine, _ reply: ATTReply?) -> ListCheck.Step {
        let next: GATTStep<Machine.Output>
        if let reply { next = machine.received(reply) } else { next = machine.begin() }
        switch next {
        case .send(let request): return .send(request)
        case .finished: return .finished
        case .failed(let failure): return .failed(failure)
        }
    }
}
