/// The packets of a channel, in the order in which the peer sent them.
///
/// There is one sequence a channel: use it from one task. It ends when the channel is closed, by either side, behind the packets
/// that arrived before; when the link is lost it throws. A consumer that falls behind loses nothing: reading pauses, and the
/// peer runs out of credits until the consumer goes on.
public struct PacketSequence: AsyncSequence, Sendable {
    /// What the sequence consists of.
    public typealias Element = [UInt8]
    /// What it can end with.
    public typealias Failure = BLEError

    let channel: L2CAPChannel

    /// Walks over the packets.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(channel: channel)
    }

    /// Walks over the packets.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let channel: L2CAPChannel
        private var batch: [[UInt8]] = []
        private var position = 0

        init(channel: L2CAPChannel) {
            self.channel = channel
        }

        /// The next packet; `nil` when the channel was closed or the task is cancelled.
        ///
        /// - Throws: `BLEError` with `.disconnected`, once, when the link was lost; `.busy` while another task waits for a
        ///   packet of this channel.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> [UInt8]? {
            if position == batch.count {
                batch = try await channel.nextBatch()
                position = 0
            }
            guard position < batch.count else { return nil }
            defer { position += 1 }
            return batch[position]
        }
    }
}
