import BLECore
import TestSupport
import Testing

/// A session with a controller that keeps the rules of Core Vol 4 Part E, 7.8.5 to 7.8.60, and whose responses the test
/// lets come.
final class AdvertiseRun: TimedRun {
    enum Fault {
        case status(HCIStatus)
        case timeout
        case adapterLost
    }

    let hasSets: Bool
    var session: AdvertiseSession
    var controller: AdvertisingController
    private(set) var now: BootInstant
    private(set) var out: HCICommandPacket?
    private(set) var packets: [HCICommandPacket] = []
    private(set) var events: [AdvertiseSession.Event] = []
    private(set) var isUp = true
    /// Whether a second command was sent while one was out.
    private(set) var hasBrokenTheRule = false

    init(hasSets: Bool, setLimit: Int = 1, at now: BootInstant) {
        self.hasSets = hasSets
        self.now = now
        session = AdvertiseSession(
            AdvertiseSession.Controller(
                features: hasSets ? [.extendedAdvertising, .coded, .le2M] : [],
                maximumSets: UInt8(truncatingIfNeeded: setLimit), maximumDataLength: 300))
        controller = AdvertisingController(hasSets: hasSets)
    }

    /// When the session has to do something.
    var deadline: BootInstant? { session.nextDeadline }

    /// The commands without the packet type, as hexadecimal digits.
    var sent: [String] { packets.map { Hex.encode(Array($0.bytes.dropFirst())) } }

    func start(_ plan: AdvertisingPlan, avoiding others: Set<UInt8> = []) -> AdvertiseSession.SetID {
        let (id, actions) = session.start(plan, avoiding: others, at: now)
        perform(actions)
        return id
    }

    func started(_ plan: AdvertisingPlan) -> AdvertiseSession.SetID {
        let id = start(plan)
        respondAll()
        #expect(events.last == .started(id))
        return id
    }

    func perform(_ actions: [AdvertiseSession.Action]) {
        for action in actions {
            switch action {
            case .notify(let event): events.append(event)
            case .send(let packet):
                if out != nil { hasBrokenTheRule = true }
                out = packet
                packets.append(packet)
            }
        }
    }

    /// Executes the command that is out.
    func respond() {
        guard let packet = out else { return }
        let status = controller.execute(packet)
        out = nil
        let failure =
            status.isSuccess ? nil : HCICommandFailure(opcode: packet.opcode, reason: .status(status))
        perform(session.commandFinished(failure, at: now))
    }

    /// Fails the command that is out; only a lost response leaves open whether it was executed.
    func respond(_ fault: Fault, isExecuted: Bool = false) {
        guard let packet = out else { return }
        if isExecuted { _ = controller.execute(packet) }
        out = nil
        let reason: HCICommandFailure.Reason =
            switch fault {
            case .status(let status): .status(status)
            case .timeout: .timeout
            case .adapterLost: .adapterLost
            }
        perform(
            session.commandFinished(HCICommandFailure(opcode: packet.opcode, reason: reason), at: now))
    }

    func respond(while condition: ([UInt8]) -> Bool) {
        for _ in 0..<100 {
            guard let packet = out, condition(packet.bytes) else { return }
            respond()
        }
    }

    func respondAll() { respondAll(limit: 100) }

    func respondAll(limit: Int) {
        for _ in 0..<limit where out != nil { respond() }
    }

    func advance(by duration: Duration) {
        now = now + duration
        perform(session.timePassed(now))
    }

    /// A central connects by the set with this handle.
    func connect(_ handle: UInt8) {
        controller.sets[handle]?.isEnabled = false
        do {
            if hasSets {
                perform(session.received(try Self.terminated(handle), at: now))
            } else {
                perform(session.received(try Self.link(isCentral: false), at: now))
            }
        } catch { Issue.record(error) }
    }

    /// The controller ends the set with this handle, and no central has connected.
    func end(_ handle: UInt8, _ status: HCIStatus) {
        controller.sets[handle]?.isEnabled = false
        do {
            perform(session.received(try Self.terminated(handle, status), at: now))
        } catch { Issue.record(error) }
    }

    func powerOff() {
        isUp = false
        out = nil
        controller.sets = [:]
        perform(session.adapterDown())
    }

    func powerOn() {
        isUp = true
        perform(session.adapterUp(at: now))
    }

    static func terminated(
        _ handle: UInt8, _ status: HCIStatus = .success, link: UInt8 = 0x40
    ) throws -> LEAdvertisingSetTerminated {
        guard
            case .advertisingSetTerminated(let event) = try HCIEvent(
                [0x3E, 6, 0x12, status.rawValue, handle, link, 0, 0].span)
        else {
            throw WrongEvent()
        }
        return event
    }

    static func link(isCentral: Bool, status: String = "00") throws -> LEConnectionComplete {
        let bytes = try Hex.decode(
            "3e1301" + status + "4000" + (isCentral ? "00" : "01") + "002d1504a1de4527000000d00705")
        guard case .connectionComplete(let event) = try HCIEvent(bytes.span) else { throw WrongEvent() }
        return event
    }

    private struct WrongEvent: Error {}
}

/// The sets of a controller; one that has no sets has the set 0.
struct AdvertisingController {
    struct AdvertisingSet {
        var data: [UInt8] = []
        var response: [UInt8] = []
        var isEnabled = false
    }

    let hasSets: Bool
    var sets: [UInt8: AdvertisingSet] = [:]
    var capacity = 16

    init(hasSets: Bool) {
        self.hasSets = hasSets
    }

    /// The data on air by their handles.
    var onAir: [UInt8: [UInt8]] { sets.filter { $0.value.isEnabled }.mapValues { $0.data } }

    mutating func disableAll() {
        for handle in sets.keys { sets[handle]?.isEnabled = false }
    }

    mutating func execute(_ packet: HCICommandPacket) -> HCIStatus {
        let parameters = packet.parameters
        switch packet.opcode.rawValue {
        case 0x2005: return sets[0]?.isEnabled == true ? .commandDisallowed : .success
        case 0x2006:
            if sets[0]?.isEnabled == true { return .commandDisallowed }
            sets[0] = sets[0] ?? AdvertisingSet()
        case 0x2008:
            sets[0, default: .init()].data = Array(parameters.dropFirst().prefix(Int(parameters[0])))
        case 0x2009:
            sets[0, default: .init()].response = Array(parameters.dropFirst().prefix(Int(parameters[0])))
        case 0x200A: sets[0, default: .init()].isEnabled = parameters[0] == 1
        case 0x2035: return sets[parameters[0]] == nil ? .unknownAdvertisingIdentifier : .success
        case 0x2036:
            let handle = parameters[0]
            if sets[handle]?.isEnabled == true { return .commandDisallowed }
            if sets[handle] == nil, sets.count >= capacity { return .memoryCapacityExceeded }
            sets[handle] = sets[handle] ?? AdvertisingSet()
        case 0x2037, 0x2038:
            guard var set = sets[parameters[0]] else { return .unknownAdvertisingIdentifier }
            if set.isEnabled, parameters[1] != 3 { return .commandDisallowed }
            let isNew = parameters[1] == 1 || parameters[1] == 3
            let bytes = Array(parameters.dropFirst(4))
            if packet.opcode.rawValue == 0x2037 { set.data = (isNew ? [] : set.data) + bytes }
            if packet.opcode.rawValue == 0x2038 { set.response = (isNew ? [] : set.response) + bytes }
            sets[parameters[0]] = set
        case 0x2039:
            if parameters[1] == 0 { disableAll() }
            for index in 0..<Int(parameters[1]) {
                let handle = parameters[2 + 4 * index]
                guard sets[handle] != nil else { return .unknownAdvertisingIdentifier }
                sets[handle]?.isEnabled = parameters[0] == 1
            }
        case 0x203C:
            guard let set = sets[parameters[0]] else { return .unknownAdvertisingIdentifier }
            if set.isEnabled { return .commandDisallowed }
            sets[parameters[0]] = nil
        default: return .unknownCommand
        }
        return .success
    }
}
