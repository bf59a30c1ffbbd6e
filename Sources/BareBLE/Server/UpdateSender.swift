internal import BLECore
internal import BLELinux

// Updates: which centrals a value goes to, and what has become of it for each.
//
// Duties
// - Finds the subscribers of a characteristic, and those that can receive a value of that length.
// - Begins the update at the server of each link in the order of the links, and waits for the ends.
//
// Invariants
// - An update that throws has sent nothing, and has stored nothing.
// - Whatever waits for room, or for a confirmation, is at the `LinkServer`. Here it is only awaited.
// - Only the event loop's thread uses it.

/// Sends values to the centrals that have subscribed to them.
struct UpdateSender: Sendable {
    typealias Targets = [ConnectedCentral.ID]?

    /// Where a value goes.
    private struct Receivers {
        /// The handle of the characteristic.
        let handle: AttributeHandle
        /// The links of the subscribers that can receive it, in the order of the links.
        var links: [ServedLink] = []
        /// Those that cannot.
        var outcomes: [ConnectedCentral.ID: LocalPeripheral.UpdateOutcome] = [:]
    }

    private let services: PublishedServices
    private let links: ServedLinks

    init(of services: PublishedServices, to links: ServedLinks) {
        self.services = services
        self.links = links
    }

    /// Sends a value, and waits until each central has taken it, or does not.
    func update(
        _ value: [UInt8], of characteristic: CharacteristicReference, to targets: Targets,
        whenFull: LocalPeripheral.WhenFull,
        until deadline: BootInstant?, isolation: isolated (any Actor)? = #isolation
    ) async throws(BLEError) -> LocalPeripheral.UpdateResult {
        let receivers = try receivers(value, characteristic, targets)
        services.set(value, at: receivers.handle)
        var outcomes = receivers.outcomes
        var unfinished: [(link: ServedLink, number: UInt64)] = []
        for link in receivers.links {
            switch link.server.beginUpdate(value, of: receivers.handle, whenFull: whenFull) {
            case .ended(let outcome): outcomes[link.id] = outcome
            case .goesOn(let number): unfinished.append((link, number))
            }
        }
        for (link, number) in unfinished {
            outcomes[link.id] = await link.server.end(of: number, until: deadline, isolation: isolation)
        }
        return LocalPeripheral.UpdateResult(outcomes: outcomes)
    }

    /// Sends several values, to each central in as few packets as it can receive.
    func update(
        _ values: [(characteristic: CharacteristicReference, value: [UInt8])], to targets: Targets,
        whenFull: LocalPeripheral.WhenFull, until deadline: BootInstant?, isolation: isolated (any Actor)? = #isolation
    ) async throws(BLEError) -> [LocalPeripheral.UpdateResult] {
        var outcomes: [[ConnectedCentral.ID: LocalPeripheral.UpdateOutcome]] = []
        var sent: [ConnectedCentral.ID: [(index: Int, handle: AttributeHandle, value: [UInt8])]] = [:]
        var handles: [AttributeHandle] = []
        for (index, (characteristic, value)) in values.enumerated() {
            let receivers = try receivers(value, characteristic, targets)
            outcomes.append(receivers.outcomes)
            handles.append(receivers.handle)
            for link in receivers.links { sent[link.id, default: []].append((index, receivers.handle, value)) }
        }
        for (handle, (_, value)) in zip(handles, values) { services.set(value, at: handle) }
        var unfinished: [(index: Int, link: ServedLink, number: UInt64)] = []
        for link in links.inOrder {
            guard let own = sent[link.id] else { continue }
            let begun = link.server.beginUpdates(
                own.map { (handle: $0.handle, value: $0.value) }, whenFull: whenFull)
            for (update, begun) in zip(own, begun) {
                switch begun {
                case .ended(let outcome): outcomes[update.index][link.id] = outcome
                case .goesOn(let number): unfinished.append((update.index, link, number))
                }
            }
        }
        for (index, link, number) in unfinished {
            outcomes[index][link.id] = await link.server.end(of: number, until: deadline, isolation: isolation)
        }
        return outcomes.map { LocalPeripheral.UpdateResult(outcomes: $0) }
    }

    /// Sends a value if all centrals have room for it; returns `false` if nothing was sent. The value is stored in any
    /// case, as by `update`.
    func tryUpdate(
        _ value: [UInt8], of characteristic: CharacteristicReference, to targets: Targets
    ) throws(BLEError) -> Bool {
        let receivers = try receivers(value, characteristic, targets)
        services.set(value, at: receivers.handle)
        // All are asked, so that each without room reports it later.
        let withoutRoom = receivers.links.count { !$0.server.hasRoom(for: receivers.handle) }
        guard withoutRoom == 0 else { return false }
        for link in receivers.links { link.server.tryUpdate(value, of: receivers.handle) }
        return true
    }

    private func receivers(
        _ value: [UInt8], _ characteristic: CharacteristicReference, _ targets: Targets
    ) throws(BLEError) -> Receivers {
        let operation = "update \(characteristic)"
        var receivers = Receivers(handle: try services.handle(of: characteristic, for: value, during: operation))
        var firstTooSmall: (name: String, limit: Int)?
        for link in links.inOrder {
            guard targets?.contains(link.id) ?? true, !link.server.configuration(of: receivers.handle).isEmpty else {
                continue
            }
            let limit = link.server.maximumUpdateLength
            if value.count <= limit {
                receivers.links.append(link)
            } else {
                receivers.outcomes[link.id] = .tooLong(limit: limit)
                if firstTooSmall == nil { firstTooSmall = (name: link.peripheral.name, limit: limit) }
            }
        }
        if let (name, limit) = firstTooSmall, targets != nil || receivers.links.isEmpty {
            throw BLEError(
                .tooLong, subject: name, during: operation,
                because: "the value has \(value.count) bytes, and this central can receive \(limit)",
                hint: "Send less, or leave the rest to be read: the central has agreed on an MTU of \(limit + 3).")
        }
        return receivers
    }
}
