import BLECore
import BareBLE

/// The values that centrals write to characteristics of a virtual device that send them back, or send replies, in the
/// order of the writes.
final class ServedEchoes: Sendable {
    /// A value, and what is sent for it.
    struct Entry: Sendable {
        let central: ConnectedCentral
        let characteristic: PublishedCharacteristic
        let value: [UInt8]
        /// The values to send, in their order.
        let replies: [[UInt8]]
        /// The first characteristic with this UUID sends them.
        let target: BluetoothUUID
    }

    /// The values that are not taken yet.
    let entries: AsyncStream<Entry>
    private let continuation: AsyncStream<Entry>.Continuation

    init() {
        (entries, continuation) = AsyncStream.makeStream(of: Entry.self, bufferingPolicy: .bufferingOldest(256))
    }

    /// Adds the value that a characteristic has after a request.
    ///
    /// - Throws: `ATTRefusal` with Insufficient Resources if there is no room: the central writes faster than values
    ///   are sent.
    func add(
        _ value: [UInt8], of request: LocalValue.WriteRequest, sending replies: [[UInt8]], from target: BluetoothUUID
    ) throws(ATTRefusal) {
        let entry = Entry(
            central: request.central, characteristic: request.characteristic, value: value, replies: replies,
            target: target)
        if case .dropped = continuation.yield(entry) { throw ATTRefusal(.insufficientResources) }
    }
}
