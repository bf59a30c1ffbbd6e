internal import BLECore
internal import Logging

/// Decodes the values of one typed subscription, and counts and logs those that it leaves out.
struct ValueDecoder<Value: Sendable>: Sendable {
    typealias Decode = @Sendable (ReceivedValue) throws(MalformedPacket) -> Value

    private let log: LinkLog
    private let policy: MalformedValuePolicy
    private let decode: Decode
    private let leftOut = DropCounter()

    init(_ policy: MalformedValuePolicy, _ log: LinkLog, _ decode: @escaping Decode) {
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
    /// Makes values as their type says.
    init(_ policy: MalformedValuePolicy, _ log: LinkLog) {
        self.init(policy, log) { value throws(MalformedPacket) in try Value(value: value.bytes) }
    }
}
