internal import BLECore
internal import Logging

/// Decodes the values of one typed subscription, and counts and logs those that it leaves out.
struct ValueDecoder<Value: Sendable>: Sendable {
    typealias Decode = @Sendable (ReceivedValue) throws(MalformedPacket) -> Value

    private let log: LinkLog
    private let policy: SubscribeOptions.MalformedValuePolicy
    private let decode: Decode
    private let leftOut = DropCounter()

    init(_ policy: SubscribeOptions.MalformedValuePolicy, _ log: LinkLog, _ decode: @escaping Decode) {
        self.policy = policy
        self.log = log
        self.decode = decode
    }

    /// The number of values left out so far.
    var malformedInTotal: Int { leftOut.count }

    /// Returns the value; `nil` for one that is left out.
    func value(of received: ReceivedValue) throws(BLEError) -> Value? {
        do throws(MalformedPacket) {
            return try decode(received)
        } catch {
            let reference = CharacteristicReference.handle(received.handle)
            let failure = BLEError(
                malformed: received.bytes, error, subject: log.peer, during: "decode a value of \(reference)")
            guard policy == .skip else { throw failure }
            leftOut.add(1)
            note(failure)
            return nil
        }
    }

    /// A peer that sends malformed values a thousand times a second fills no disk.
    private func note(_ failure: BLEError) {
        log.report(
            .warning, "malformed value left out", ["reason": "\(failure.reason)", "so far": "\(malformedInTotal)"])
    }
}

extension ValueDecoder where Value: GATTReadable {
    /// Makes values as their type specifies.
    init(_ policy: SubscribeOptions.MalformedValuePolicy, _ log: LinkLog) {
        self.init(policy, log) { value throws(MalformedPacket) in try Value(value: value.bytes) }
    }
}

/// One consumer's decoding: the value that came last, and what was dropped and left out right before it.
struct ValueDecoding<Value: Sendable> {
    private let decoder: ValueDecoder<Value>
    /// The value that was decoded or refused last, as received; `nil` before the first.
    private(set) var last: ReceivedValue?
    /// The number of values left out since `begin()`.
    private(set) var malformedBefore = 0
    /// The number of entries dropped before marks and before left-out values; the next value reports it.
    private var dropped = 0

    init(_ decoder: ValueDecoder<Value>) {
        self.decoder = decoder
    }

    /// The next value is requested.
    mutating func begin() {
        malformedBefore = 0
    }

    /// Counts entries that were dropped before a mark.
    mutating func lost(_ count: Int) {
        dropped += count
    }

    /// Returns the decoded value; `nil` for one that is left out.
    mutating func value(of value: ReceivedValue) throws(BLEError) -> Value? {
        let received = value.with(droppedBefore: value.droppedBefore + dropped)
        dropped = 0
        last = received
        if let value = try decoder.value(of: received) { return value }
        malformedBefore += 1
        dropped = received.droppedBefore
        return nil
    }
}
