internal import BLECore
internal import BLELinux

/// How the peer sends the values of a subscription.
public enum SubscriptionKind: Hashable, Sendable {
    /// Without waiting for a confirmation: fast, several in one connection interval.
    case notifications
    /// One at a time, each confirmed by this host as soon as it was read.
    case indications

    var configuration: UInt16 { self == .notifications ? 1 : 2 }
    var property: CharacteristicProperties { self == .notifications ? .notify : .indicate }
}

/// How a subscription is made.
public struct SubscribeOptions: Hashable, Sendable {
    /// Notifications or indications; `nil` takes notifications where the characteristic has both.
    public var kind: SubscriptionKind?
    /// How many values may wait for the consumer; 64 KiB of them at most in any case.
    public var capacity = 256
    /// What happens to a value that finds no room.
    public var policy = OverflowPolicy.dropOldest
    /// How long telling the peer may take.
    public var timeout: Duration?

    /// The defaults, or other values for some of them.
    public init(
        kind: SubscriptionKind? = nil, capacity: Int = 256, policy: OverflowPolicy = .dropOldest,
        timeout: Duration? = nil
    ) {
        self.kind = kind
        self.capacity = capacity
        self.policy = policy
        self.timeout = timeout
    }
}

/// Who takes part in a characteristic's values, and what the peer was told about it.
struct Configured {
    struct Listener {
        let id: UInt64
        let kind: SubscriptionKind
        let buffer: StreamBuffer<ReceivedValue>
    }

    /// Where the peer is told.
    var descriptor: AttributeHandle
    /// In the order in which they subscribed; the first one's kind counts for all.
    var listeners: [Listener] = []
    /// What the descriptor holds now, as far as we know.
    var written: UInt16 = 0
    /// Whether a write to the descriptor is under way. Others wait for its end.
    var isWriting = false
    var writeWaiters: [CheckedContinuation<Void, Never>] = []

    var wanted: UInt16 { listeners.first?.kind.configuration ?? 0 }
}

extension Peripheral {
    private static let waitingBytes = 64 * 1024
    /// How long telling a peer to stop may take when nobody waits for it.
    private static let farewellTimeout: Duration = .seconds(5)

    /// Tells the peer to send the characteristic's values, and returns them as a sequence.
    ///
    /// The sequence is armed first, so a value that comes together with the peer's consent is in it. Several subscriptions
    /// to one characteristic share one configuration in the peer: it is written for the first one and cleared behind
    /// the last.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a characteristic that cannot send, `.refusedByPeer`,
    ///   `.insufficientSecurity`, `.ambiguous`, `.attributeNotFound`, `.timedOut`, `.disconnected`, `.cancelled`.
    public func subscribe(
        to characteristic: CharacteristicReference, _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> ValueSequence {
        let operation = "subscribe to \(characteristic)"
        let found = try await resolve(characteristic, during: operation)
        let kind = try kind(options.kind, for: found, during: operation)
        let descriptor = try await configurationHandle(of: found, during: operation)
        lastNumber &+= 1
        let listener = Configured.Listener(
            id: lastNumber, kind: kind,
            buffer: StreamBuffer(capacity: options.capacity, byteLimit: Self.waitingBytes, policy: options.policy))
        configured[found.valueHandle, default: Configured(descriptor: descriptor)].listeners.append(listener)
        do {
            try await configure(found.valueHandle, timeout: options.timeout ?? Self.valueTimeout, during: operation)
        } catch {
            configured[found.valueHandle]?.listeners.removeAll { $0.id == listener.id }
            throw error
        }
        return ValueSequence(
            subscription: Subscription(
                id: listener.id, handle: found.valueHandle, buffer: listener.buffer, peripheral: self))
    }

    private func kind(
        _ wanted: SubscriptionKind?, for characteristic: GATTCharacteristic, during operation: String
    ) throws(BLEError) -> SubscriptionKind {
        let kinds: [SubscriptionKind] = wanted.map { [$0] } ?? [.notifications, .indications]
        for kind in kinds where characteristic.properties.contains(kind.property) { return kind }
        throw BLEError(
            .notSupported, subject: name, during: operation,
            because: "the characteristic does not \(wanted == .indications ? "indicate" : "notify")",
            hint: "Its properties are: \(characteristic.properties).")
    }

    private func configurationHandle(
        of characteristic: GATTCharacteristic, during operation: String
    ) async throws(BLEError) -> AttributeHandle {
        if let known = knownDatabase?.cccd(of: characteristic) { return known.handle }
        let database = try await discover(.full)
        if let found = database.cccd(of: characteristic) { return found.handle }
        throw BLEError(
            .noCCCD(valueHandle: characteristic.valueHandle), subject: name, during: operation)
    }

    /// Brings the peer's configuration to what the listeners want; one write at a time.
    private func configure(
        _ handle: AttributeHandle, timeout: Duration, during operation: String
    ) async throws(BLEError) {
        while let state = configured[handle] {
            if state.isWriting {
                await withCheckedContinuation { configured[handle]?.writeWaiters.append($0) }
                continue
            }
            let wanted = state.wanted
            if state.written == wanted { return }
            configured[handle]?.isWriting = true
            defer { writeEnded(handle) }
            let value = [UInt8(wanted), 0]
            _ = try await run(timeout: timeout, during: operation) { client, id, deadline, now in
                let procedure = WriteRequest(handle: state.descriptor, value: value, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .done }
            }
            configured[handle]?.written = wanted
        }
    }

    private func writeEnded(_ handle: AttributeHandle) {
        let waiters = configured[handle]?.writeWaiters ?? []
        configured[handle]?.isWriting = false
        configured[handle]?.writeWaiters = []
        for waiter in waiters { waiter.resume() }
    }

    // MARK: Values

    /// Hands a value to everybody who listens. Values that nobody wants are counted by the client's statistics.
    func deliver(_ value: [UInt8], from handle: AttributeHandle, isIndication: Bool) {
        guard let state = configured[handle] else { return }
        let received = ReceivedValue(
            bytes: value, handle: handle, isIndication: isIndication, time: loop.now(), droppedBefore: 0)
        for listener in state.listeners where !listener.buffer.yield(received, bytes: value.count) {
            unsubscribeLater(listener.id)
        }
    }

    /// Ends every sequence; with an error unless this program ended the link.
    func endSubscriptions(_ failure: BLEError?) {
        let states = configured.sorted { $0.key < $1.key }
        configured = [:]
        for (_, state) in states {
            for listener in state.listeners { listener.buffer.finish(failure) }
            for waiter in state.writeWaiters { waiter.resume() }
        }
    }

    func unsubscribe(_ id: UInt64, timeout: Duration = farewellTimeout) async throws(BLEError) {
        for (handle, state) in configured where state.listeners.contains(where: { $0.id == id }) {
            configured[handle]?.listeners.removeAll { $0.id == id }
            if isConnected { try await configure(handle, timeout: timeout, during: "unsubscribe") }
            return
        }
    }

    /// Unsubscribes without anybody waiting for it.
    nonisolated func unsubscribeLater(_ id: UInt64) {
        Task(executorPreference: loop) { try? await self.unsubscribe(id) }
    }
}
