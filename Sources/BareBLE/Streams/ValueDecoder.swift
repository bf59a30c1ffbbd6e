internal import BLECore
internal import BLELinux
internal import Logging

/// The logger for values that do not fit their type, and the peer's name.
struct ValueLog: Sendable {
    let logger: Logger
    let peer: String
    /// Limits such lines, for a known peer across its subscriptions.
    let troubles: PeerTroubles
    let loop: EventLoop
}

/// Decodes the values of one typed subscription, and counts and logs those that it leaves out.
struct ValueDecoder<Value: Sendable>: Sendable {
    typealias Decode = @Sendable (ReceivedValue) throws(MalformedPacket) -> Value

    private let log: ValueLog
    private let policy: MalformedValuePolicy
    private let decode: Decode
    private let leftOut = DropCounter()

    init(_ policy: MalformedValuePolicy, _ log: ValueLog, _ decode: @escaping Decode) {
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
        guard let unsaid = log.troubles.admit("malformed value left out", at: log.loop.now()) else { return }
        var metadata: Logger.Metadata = [
            "peer": "\(log.peer)", "reason": "\(failure.reason)", "so far": "\(malformedInTotal)",
        ]
        if unsaid > 0 { metadata["left out"] = "\(unsaid)" }
        log.logger.warning("malformed value left out", metadata: metadata)
    }
}

extension ValueDecoder where Value: GATTReadable {
    /// Decodes values as their type defines.
    init(_ policy: MalformedValuePolicy, _ log: ValueLog) {
        self.init(policy, log) { value throws(MalformedPacket) in try Value(value: value.bytes) }
    }
}
