/// The subscribers of the values that a peer sends, and the writes to the peer that they require.
///
/// Duties
/// - The first subscriber of a value switches it on (the configuration descriptor is written), the last one that
///   leaves switches it off. In between, subscribers come and go without a request to the peer.
/// - A subscriber gets values from the moment it subscribes, before the peer's response to the write: a peer may send
///   the first value before its response.
/// - A subscriber that leaves gets no values from that moment on; or, if its owner wants that, those that come before
///   the peer's response to the write that disables them.
/// - Every subscriber is notified exactly once of the result of its subscription: `began` or `failed`. After `failed`
///   it is gone.
/// - Names the subscribers of each value. What becomes of a value without one is the owner's concern.
///
/// Invariants
/// - One write at a time for each value; what changes meanwhile is handled after its response.
/// - A value is in `entries` as long as it has subscribers or a pending write.
/// - Only a value that is being switched off has a leaving subscriber. That one does not count as a subscriber: nothing
///   is written for it.
/// - Values are handed to the subscribers in the order of their subscription.
///
/// The owner performs the actions in order, and calls `configured` once for every `write`. It also owns the streams,
/// buffers and waiting callers.
///
/// Spec: Core Vol 3 Part G, 3.3.3.3, 4.10 and 4.11.
package struct Subscriptions: ~Copyable {
    /// A subscriber's number, given by the owner.
    package struct ID: Hashable, Sendable {
        package var number: UInt64

        package init(_ number: UInt64) {
            self.number = number
        }
    }

    /// The way in which a peer sends a value.
    package enum Kind: Hashable, Sendable {
        /// Without confirmation.
        case notification
        /// With a confirmation of each value.
        case indication

        /// The value of the configuration descriptor.
        package var configuration: [UInt8] {
            switch self {
            case .notification: [0x01, 0x00]
            case .indication: [0x02, 0x00]
            }
        }
    }

    /// An action for the owner, in order.
    package enum Action: Hashable, Sendable {
        /// Write `value` at `handle`, and call `configured` for `valueHandle` with the result.
        case write(handle: AttributeHandle, value: [UInt8], valueHandle: AttributeHandle)
        /// The subscription is in effect.
        case began(ID, Kind)
        /// The subscription failed.
        case failed(ID, OperationFailure)
        /// The subscriber of `leave` receives no more values.
        case left(ID)
    }

    /// The value that is written into the configuration descriptor (CCCD) to disable both kinds.
    package static let cccdDisabled: [UInt8] = [0x00, 0x00]

    private enum State {
        case switchingOn
        case on
        case switchingOff
    }

    private struct Entry {
        var configuration: GATTDescriptor
        var kind: Kind
        var state: State
        var subscribers: [ID]
        /// The subscribers that have not been notified of the beginning.
        var waiting: [ID]
        /// The last subscriber, if it receives values until the peer has responded.
        var leaving: ID?

        /// The subscribers that receive values. The one that leaves was there before the others.
        var recipients: [ID] { leaving.map { [$0] + subscribers } ?? subscribers }
    }

    private var entries: [AttributeHandle: Entry] = [:]

    package init() {}

    /// The values that have subscribers, in no order.
    package var valueHandles: [AttributeHandle] {
        entries.filter { !$0.value.subscribers.isEmpty }.map { $0.key }
    }

    /// Returns a Boolean value that indicates whether the value at `valueHandle` has a subscriber.
    package func isWanted(_ valueHandle: AttributeHandle) -> Bool {
        entries[valueHandle].map { !$0.subscribers.isEmpty } ?? false
    }

    /// Returns a Boolean value that indicates whether the value at `valueHandle` is being switched on by the descriptor
    /// at `handle`. After a change of the services it is not, although the result of the write is still awaited.
    package func isSwitchingOn(_ valueHandle: AttributeHandle, by handle: AttributeHandle) -> Bool {
        guard let entry = entries[valueHandle], case .switchingOn = entry.state else { return false }
        return entry.configuration.handle == handle
    }

    /// Returns a Boolean value that indicates whether the descriptor at `handle` is in use for a subscriber: no other
    /// task may write it meanwhile.
    package func ownsConfiguration(at handle: AttributeHandle) -> Bool {
        entries.contains { $0.value.configuration.handle == handle }
    }
}

// MARK: - Subscribing and unsubscribing

extension Subscriptions {
    /// Subscribes `id` to the value of `characteristic`.
    ///
    /// The kind is `preferred` where the peer offers it, else the other one; for a value that is on already it is the
    /// kind that the first subscriber chose.
    package mutating func subscribe(
        _ id: ID, to characteristic: GATTCharacteristic, cccd: GATTDescriptor?,
        preferring preferred: Kind = .notification
    ) -> [Action] {
        let handle = characteristic.valueHandle
        if var entry = entries[handle] {
            if case .switchingOff = entry.state, entry.subscribers.isEmpty {
                // It is being switched off, perhaps because the handles belonged to another attribute before: that
                // one's configuration must not be written. While it is being switched on, the pending write decides.
                guard let cccd, let kind = characteristic.properties.kind(preferring: preferred) else {
                    return [.failed(id, .gatt(.noCCCD(valueHandle: handle)))]
                }
                entry.configuration = cccd
                entry.kind = kind
            }
            entry.subscribers.append(id)
            defer { entries[handle] = entry }
            switch entry.state {
            case .on:
                return [.began(id, entry.kind)]
            case .switchingOn, .switchingOff:
                entry.waiting.append(id)
                return []
            }
        }
        guard let cccd, let kind = characteristic.properties.kind(preferring: preferred) else {
            return [.failed(id, .gatt(.noCCCD(valueHandle: handle)))]
        }
        entries[handle] = Entry(
            configuration: cccd, kind: kind, state: .switchingOn, subscribers: [id], waiting: [id])
        return [.write(handle: cccd.handle, value: kind.configuration, valueHandle: handle)]
    }

    /// Ends the subscription of `id`; it receives no values that arrive from now on.
    package mutating func unsubscribe(_ id: ID) -> [Action] {
        for (handle, var entry) in entries {
            if entry.leaving == id {
                entry.leaving = nil
                entries[handle] = entry
                return []
            }
            guard let index = entry.subscribers.firstIndex(of: id) else { continue }
            entry.subscribers.remove(at: index)
            entry.waiting.removeAll { $0 == id }
            defer { entries[handle] = entry }
            guard entry.subscribers.isEmpty, case .on = entry.state else { return [] }
            entry.state = .switchingOff
            return [.write(handle: entry.configuration.handle, value: Self.cccdDisabled, valueHandle: handle)]
        }
        return []
    }

    /// Ends the subscription of `id`. If the peer is to disable the value, `id` receives what arrives before the
    /// response; `left` follows then, otherwise it is returned at once.
    package mutating func leave(_ id: ID) -> [Action] {
        let handle = entries.first { $0.value.subscribers.contains(id) }?.key
        let actions = unsubscribe(id)
        guard let handle, case .write? = actions.first else { return [.left(id)] }
        entries[handle]?.leaving = id
        return actions
    }

    /// Reports that the peer has responded to the write for `valueHandle`, or that no response will come.
    package mutating func configured(
        _ valueHandle: AttributeHandle, _ result: Result<Void, OperationFailure>
    ) -> [Action] {
        guard var entry = entries.removeValue(forKey: valueHandle) else { return [] }
        switch (entry.state, result) {
        case (.on, _):
            entries[valueHandle] = entry
            return []
        case (.switchingOn, .success):
            entry.state = .on
            let actions = entry.waiting.map { Action.began($0, entry.kind) }
            entry.waiting = []
            if entry.subscribers.isEmpty {
                // All of them left while it was being enabled.
                entry.state = .switchingOff
                entries[valueHandle] = entry
                return [.write(handle: entry.configuration.handle, value: Self.cccdDisabled, valueHandle: valueHandle)]
            }
            entries[valueHandle] = entry
            return actions
        case (.switchingOn, .failure(let failure)):
            let reason = entry.configuration.isInferred ? failure.ofInferred(valueHandle) : failure
            return entry.subscribers.map { .failed($0, reason) }
        case (.switchingOff, _):
            let left = entry.leaving.take().map { [Action.left($0)] } ?? []
            // Whether or not the peer agreed, the next subscriber starts again.
            guard !entry.subscribers.isEmpty else { return left }
            entry.state = .switchingOn
            entries[valueHandle] = entry
            return left + [
                .write(handle: entry.configuration.handle, value: entry.kind.configuration, valueHandle: valueHandle)
            ]
        }
    }

    /// Forgets the values in `handles`, which now belong to other attributes, so nothing is written. Returns the
    /// subscribers, which the owner ends.
    package mutating func servicesChanged(in handles: ClosedRange<AttributeHandle>) -> [ID] {
        var ids: [ID] = []
        for (handle, var entry) in entries where handles.contains(handle) {
            ids += entry.recipients
            entry.subscribers = []
            entry.waiting = []
            entry.leaving = nil
            switch entry.state {
            case .on:
                entries[handle] = nil
            case .switchingOn, .switchingOff:
                // The write is pending; a new subscriber waits for its end.
                entry.state = .switchingOff
                entries[handle] = entry
            }
        }
        return ids.sorted { $0.number < $1.number }
    }

    /// Forgets everything: the link is gone. Returns the subscribers, which the owner ends.
    package mutating func linkLost() -> [ID] {
        let ids = entries.values.flatMap { $0.recipients }
        entries = [:]
        return ids.sorted { $0.number < $1.number }
    }
}

// MARK: - Handing over

extension Subscriptions {
    /// A value that is switched on, and its subscribers.
    package struct Active: Hashable, Sendable {
        package var valueHandle: AttributeHandle
        package var configuration: GATTDescriptor
        package var kind: Kind
        package var subscribers: [ID]

        package init(
            valueHandle: AttributeHandle, configuration: GATTDescriptor, kind: Kind, subscribers: [ID]
        ) {
            self.valueHandle = valueHandle
            self.configuration = configuration
            self.kind = kind
            self.subscribers = subscribers
        }
    }

    /// The values that are on, by handle. Those that are being switched on or off are not among them.
    package var active: [Active] {
        var active: [Active] = []
        for (handle, entry) in entries {
            guard case .on = entry.state else { continue }
            active.append(
                Active(
                    valueHandle: handle, configuration: entry.configuration, kind: entry.kind,
                    subscribers: entry.subscribers))
        }
        return active.sorted { $0.valueHandle < $1.valueHandle }
    }

    /// Resumes a value that is already switched on in the peer: nothing is written.
    package mutating func resume(_ value: Active) {
        guard !value.subscribers.isEmpty else { return }
        entries[value.valueHandle] = Entry(
            configuration: value.configuration, kind: value.kind, state: .on, subscribers: value.subscribers,
            waiting: [])
    }
}

// MARK: - Values

extension Subscriptions {
    /// Returns the subscribers that receive a value for `valueHandle`, also one that leaves; empty if there are none.
    package func recipients(of valueHandle: AttributeHandle) -> [ID] { entries[valueHandle]?.recipients ?? [] }
}

extension CharacteristicProperties {
    fileprivate func kind(preferring preferred: Subscriptions.Kind) -> Subscriptions.Kind? {
        switch (contains(.notify), contains(.indicate)) {
        case (true, true): preferred
        case (true, false): .notification
        case (false, true): .indication
        case (false, false): nil
        }
    }
}

extension OperationFailure {
    /// Translates a failure for a descriptor whose type was inferred: if there is none, the inference was wrong.
    fileprivate func ofInferred(_ valueHandle: AttributeHandle) -> OperationFailure {
        guard case .gatt(.att(_, _, let code)) = self else { return self }
        // The last one: there is a descriptor, but it cannot be written.
        let isWrong = code == .invalidHandle || code == .attributeNotFound || code == .writeNotPermitted
        return isWrong ? .gatt(.noCCCD(valueHandle: valueHandle)) : self
    }
}
