/// The packets of a channel, in the order in which the peer sent them.
///
/// A channel has one sequence: use it from one task. It ends after the last packet when either side closes the
/// channel; when the link is lost it throws. A slow consumer loses nothing: reading pauses, and the peer runs out of
/// credits until the consumer continues.
public struct PacketSequence: AsyncSequence, Sendable {
    /// The element type: the bytes of a packet.
    public typealias Element = [UInt8]
    /// The error that the sequence may end with.
    public typealias Failure = BLEError

    let channel: L2CAPChannel

    /// Returns an iterator over the packets.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(channel: channel)
    }

    /// An iterator over the packets.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let channel: L2CAPChannel
        private var batch: [[UInt8]] = []
        private var position = 0

        init(channel: L2CAPChannel) {
            self.channel = channel
        }

        /// Returns the next packet; `nil` after the channel was closed or the task was cancelled.
        ///
        /// - Throws: `BLEError` with `.disconnected`, once, if the link was lost; `.busy` while another task waits for
        ///   a packet of this channel.
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
