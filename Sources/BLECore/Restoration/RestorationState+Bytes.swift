/// The layout of a daemon's state inside its frame (`FileEnvelope`, "BLES"). Numbers are little-endian, durations are
/// nanoseconds in 8 bytes (-1: none), a UUID is its length 1 and bytes, a peer is as in `LinkState+Bytes.swift`:
///
///     adapter: flag 1, address 6
///     peers 2, each:
///       peer | policy 1 (0 never; 1 back-off: initial 8, longest 8, jitter 8 (IEEE 754),
///         attempts 4 (FFFFFFFF: any number); 2 custom)
///       back-off reset after 8 | ready time-out 8 | time-out 8 | MTU 2 (0: none) | parameters: flag 1, 4 x 2
///       validation 1 | observes 1
///       subscriptions 2, each: UUID, service UUID (length 0: any), index 2 (FFFF: none), indications 1
///     scan: flag 1, and if it is 1 what `ScanSettings+Bytes.swift` specifies
///     times of recovery: number 1, each 8; left out where there are none and nothing follows
///     the same times in one boot: identifier 16 (the first half of its digits 8, the second 8), each 8
///       (nanoseconds since boot, signed), whether a step has left the adapter off 1;
///       left out where the boot is not known
///
/// Version 1, that of 0.1.0, has no times, no required bond, and no part of a name. It is written where nothing is lost
/// by that, so that 0.1.0 reads it. All else is version 2, which 0.1.0 moves aside as that of a newer version.
private enum Layout {
    static let anyNumber: UInt32 = .max
    static let noIndex: UInt16 = .max
    static let never: UInt8 = 0
    static let backoff: UInt8 = 1
    static let custom: UInt8 = 2
    static let observes: UInt8 = 1
    static let requiresBond: UInt8 = 2
    static let recoveryLimit = 8
    static let firstVersion: UInt8 = 1
    static let version: UInt8 = 2
}

extension RestorationState {
    static let form = FileEnvelope(
        "daemon state", signature: [0x42, 0x4C, 0x45, 0x53], version: Layout.version, reading: Layout.firstVersion,
        limit: 1 << 20)

    /// The maximum length of `bytes` that `init(bytes:)` accepts.
    public static var byteLimit: Int { form.byteLimit }

    /// The encoded form for storage. Equal states have equal bytes.
    public var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.u8(adapter == nil ? 0 : 1)
        if let adapter { writer.u48(adapter.rawValue) }
        let stored = peers.prefix(Self.limit)
        writer.u16(UInt16(clamping: stored.count))
        for peer in stored { peer.write(to: &writer) }
        writer.u8(scan == nil ? 0 : 1)
        scan?.write(to: &writer)
        let times = recoveryTimes.suffix(Layout.recoveryLimit)
        // A program that has set the times has not set those of the boot.
        let boot = recoveryBoot.flatMap { $0.times.count == recoveryTimes.count ? $0 : nil }
        let hasRecovery = !times.isEmpty || boot != nil
        if hasRecovery {
            writer.u8(UInt8(times.count))
            for time in times { writer.u64(time) }
        }
        if let boot {
            writer.u64(boot.identifier.high)
            writer.u64(boot.identifier.low)
            for time in boot.times.suffix(Layout.recoveryLimit) { writer.u64(UInt64(bitPattern: time.nanoseconds)) }
            writer.u8(boot.isAdapterLeftOff ? 1 : 0)
        }
        let isOfFirstVersion =
            !hasRecovery && scan?.settings.filter.nameContains == nil && !stored.contains { $0.requiresBond }
        return Self.form.enclose(writer.bytes, version: isOfFirstVersion ? Layout.firstVersion : Layout.version)
    }

    /// Decodes the stored form.
    ///
    /// - Throws: `MalformedPacket` with the position and the field.
    public init(bytes: [UInt8]) throws(MalformedPacket) {
        let end = try Self.form.check(bytes)
        var reader = ByteReader(bytes.span)
        _ = reader.skip(FileEnvelope.headerLength)
        self.init()
        if try reader.storedFlag("adapter", in: Self.form) {
            guard let address = reader.u48() else { throw .state(at: reader.offset, .tooShort) }
            adapter = BluetoothAddress(rawValue: address)
        }
        for _ in 0..<(try reader.stateCount("number of peers")) { peers.append(try reader.persistedPeer()) }
        if try reader.storedFlag("scan", in: Self.form) { scan = try reader.persistedScan() }
        if reader.offset < end { recoveryTimes = try reader.recoveryTimes() }
        if reader.offset < end { recoveryBoot = try reader.recoveryBoot(recoveryTimes.count) }
        guard reader.offset == end else { throw .state(at: reader.offset, .trailingBytes(end - reader.offset)) }
    }

    /// Returns a Boolean value that indicates whether `error` means that the bytes are intact, but of a version that
    /// this library does not know.
    package static func isOtherVersion(_ error: MalformedPacket) -> Bool {
        FileEnvelope.isOtherVersion(error)
    }
}

extension MalformedPacket {
    static func state(at offset: Int, _ reason: Reason) -> MalformedPacket {
        .stored(RestorationState.form, at: offset, reason)
    }
}

// MARK: - Peers

extension RestorationState.Peer {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.storedPeer(peer)
        switch reconnect {
        case .never:
            writer.u8(Layout.never)
        case .backoff(let initial, let max, let jitter, let attempts):
            writer.u8(Layout.backoff)
            writer.stateDuration(initial)
            writer.stateDuration(max)
            // Values outside 0 to 1 are clamped; the comparison is false for NaN.
            writer.u64((jitter > 0 ? Swift.min(jitter, 1) : 0).bitPattern)
            writer.u32(attempts.map { UInt32(clamping: $0) } ?? Layout.anyNumber)
        case .custom:
            writer.u8(Layout.custom)
        }
        writer.stateDuration(resetBackoffAfter)
        writer.stateDuration(readyTimeout)
        writer.stateDuration(timeout)
        writer.u16(mtu.map { UInt16(clamping: $0) } ?? 0)
        writer.u8(parameters == nil ? 0 : 1)
        if let parameters {
            writer.u16(parameters.intervalMin)
            writer.u16(parameters.intervalMax)
            writer.u16(parameters.latency)
            writer.u16(parameters.timeout)
        }
        writer.u8(validation.code)
        writer.u8((observesServiceChanges ? Layout.observes : 0) | (requiresBond ? Layout.requiresBond : 0))
        let stored = subscriptions.prefix(RestorationState.limit)
        writer.u16(UInt16(clamping: stored.count))
        for subscription in stored {
            writer.storedUUID(subscription.uuid)
            if let service = subscription.service { writer.storedUUID(service) } else { writer.u8(0) }
            writer.u16(subscription.index.map { UInt16(clamping: $0) } ?? Layout.noIndex)
            writer.u8(subscription.prefersIndications ? 1 : 0)
        }
    }
}

extension GATTCache.Validation {
    fileprivate var code: UInt8 {
        switch self {
        case .required: 0
        case .whenPossible: 1
        case .skipped: 2
        }
    }

    fileprivate init?(code: UInt8) {
        switch code {
        case 0: self = .required
        case 1: self = .whenPossible
        case 2: self = .skipped
        default: return nil
        }
    }
}

extension ByteWriter {
    /// Appends an optional duration.
    mutating func stateDuration(_ duration: Duration?) {
        u64(UInt64(bitPattern: duration.map { max(0, $0.saturatedNanoseconds) } ?? -1))
    }
}

extension ByteReader {
    @_lifetime(self: copy self)
    mutating func stateDuration(_ field: String) throws(MalformedPacket) -> Duration? {
        let start = offset
        guard let bits = u64() else { throw .state(at: start, .tooShort) }
        let nanoseconds = Int64(bitPattern: bits)
        guard nanoseconds >= -1 else { throw .state(at: start, .invalidField(field)) }
        return nanoseconds < 0 ? nil : .nanoseconds(nanoseconds)
    }

    @_lifetime(self: copy self)
    mutating func stateCount(_ field: String) throws(MalformedPacket) -> Int {
        let start = offset
        guard let count = u16() else { throw .state(at: start, .tooShort) }
        guard Int(count) <= RestorationState.limit else { throw .state(at: start, .invalidField(field)) }
        return Int(count)
    }

    @_lifetime(self: copy self)
    fileprivate mutating func recoveryTimes() throws(MalformedPacket) -> [UInt64] {
        let start = offset
        guard let count = u8(), Int(count) <= Layout.recoveryLimit else {
            throw .state(at: start, .invalidField("number of recovery times"))
        }
        var times: [UInt64] = []
        for _ in 0..<count {
            guard let time = u64() else { throw .state(at: offset, .tooShort) }
            times.append(time)
        }
        return times
    }

    /// Reads the same number of times by the clock of one boot.
    @_lifetime(self: copy self)
    fileprivate mutating func recoveryBoot(_ count: Int) throws(MalformedPacket) -> RestorationState.RecoveryBoot {
        guard let high = u64(), let low = u64() else { throw .state(at: offset, .tooShort) }
        var times: [BootInstant] = []
        for _ in 0..<count {
            guard let time = u64() else { throw .state(at: offset, .tooShort) }
            times.append(BootInstant(nanoseconds: Int64(bitPattern: time)))
        }
        let isAdapterLeftOff = try storedFlag("adapter left off", in: RestorationState.form)
        return RestorationState.RecoveryBoot(
            identifier: BootIdentifier(high: high, low: low), times: times, isAdapterLeftOff: isAdapterLeftOff)
    }

    @_lifetime(self: copy self)
    private mutating func someDuration(_ field: String) throws(MalformedPacket) -> Duration {
        guard let duration = try stateDuration(field) else { throw .state(at: offset, .invalidField(field)) }
        return duration
    }

    @_lifetime(self: copy self)
    fileprivate mutating func persistedPeer() throws(MalformedPacket) -> RestorationState.Peer {
        let start = offset
        guard let peer = try storedPeer(in: RestorationState.form) else {
            throw .state(at: start, .invalidField("persisted peer"))
        }
        var persisted = RestorationState.Peer(peer, reconnect: try reconnect())
        persisted.resetBackoffAfter = try someDuration("back-off reset")
        persisted.readyTimeout = try stateDuration("ready time-out")
        persisted.timeout = try stateDuration("time-out")
        guard let mtu = u16() else { throw .state(at: offset, .tooShort) }
        persisted.mtu = mtu == 0 ? nil : Int(mtu)
        if try storedFlag("parameters", in: RestorationState.form) { persisted.parameters = try parameters() }
        guard let code = u8() else { throw .state(at: offset, .tooShort) }
        guard let validation = GATTCache.Validation(code: code) else {
            throw .state(at: offset, .invalidField("validation"))
        }
        persisted.validation = validation
        guard let flags = u8() else { throw .state(at: offset, .tooShort) }
        guard flags <= Layout.observes | Layout.requiresBond else { throw .state(at: offset, .invalidField("flags")) }
        persisted.observesServiceChanges = flags & Layout.observes != 0
        persisted.requiresBond = flags & Layout.requiresBond != 0
        for _ in 0..<(try stateCount("number of subscriptions")) {
            persisted.subscriptions.append(try persistedSubscription())
        }
        return persisted
    }

    @_lifetime(self: copy self)
    private mutating func reconnect() throws(MalformedPacket) -> ReconnectPolicy {
        let start = offset
        guard let kind = u8() else { throw .state(at: start, .tooShort) }
        switch kind {
        case Layout.never: return .never
        case Layout.custom: return .custom
        case Layout.backoff:
            let initial = try someDuration("first pause")
            let longest = try someDuration("longest pause")
            guard let bits = u64(), let attempts = u32() else { throw .state(at: offset, .tooShort) }
            let jitter = Double(bitPattern: bits)
            guard jitter >= 0, jitter <= 1 else { throw .state(at: start, .invalidField("jitter")) }
            return .backoff(
                initial: initial, max: longest, jitter: jitter,
                attempts: attempts == Layout.anyNumber ? nil : Int(attempts))
        default: throw .state(at: start, .invalidField("policy"))
        }
    }

    @_lifetime(self: copy self)
    private mutating func parameters() throws(MalformedPacket) -> ConnectionParameters {
        let start = offset
        guard let shortest = u16(), let longest = u16(), let latency = u16(), let timeout = u16() else {
            throw .state(at: start, .tooShort)
        }
        // Whether they fit each other was checked at their creation, with lengths that need not be whole units.
        guard (0x0006...0x0C80).contains(shortest), (shortest...0x0C80).contains(longest), latency <= 0x01F3,
            (0x000A...0x0C80).contains(timeout)
        else { throw .state(at: start, .invalidField("connection parameters")) }
        return ConnectionParameters(
            intervalMin: shortest, intervalMax: longest, latency: latency, timeout: timeout)
    }

    @_lifetime(self: copy self)
    private mutating func persistedSubscription() throws(MalformedPacket) -> RestorationState.Subscription {
        let start = offset
        guard let uuid = try storedUUID("characteristic", in: RestorationState.form) else {
            throw .state(at: start, .invalidField("characteristic"))
        }
        let service = try storedUUID("service", in: RestorationState.form)
        guard let index = u16() else { throw .state(at: offset, .tooShort) }
        return RestorationState.Subscription(
            uuid, service: service, index: index == Layout.noIndex ? nil : Int(index),
            prefersIndications: try storedFlag("indications", in: RestorationState.form))
    }
}
