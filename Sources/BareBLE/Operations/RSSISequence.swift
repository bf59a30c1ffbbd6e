internal import BLECore
internal import BLELinux

/// How well the controller hears a peer, asked again and again while somebody iterates.
///
/// Nothing is asked, and no timer runs, unless a task waits for the next value. Who is slow misses measurements; they are not
/// made up for.
public struct RSSISequence: AsyncSequence, Sendable {
    /// In dBm.
    public typealias Element = Int
    /// What the sequence can end with.
    public typealias Failure = BLEError

    let peripheral: Peripheral
    let interval: Duration

    /// Walks over the measurements.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(peripheral: peripheral, interval: interval)
    }

    /// Walks over the measurements.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let peripheral: Peripheral
        let interval: Duration
        private var last: BootInstant?

        init(peripheral: Peripheral, interval: Duration) {
            self.peripheral = peripheral
            self.interval = interval
        }

        /// The next measurement, the first one at once; `nil` when this program has ended the link or the task is cancelled.
        ///
        /// - Throws: `BLEError` as `Peripheral.rssi()` does.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> Int? {
            let peripheral = peripheral
            if let last { _ = await peripheral.disconnected(by: last + interval) }
            if Task.isCancelled { return nil }
            last = peripheral.loop.now()
            do {
                return try await peripheral.rssi()
            } catch {
                if error.code == .cancelled { return nil }
                if error.code == .disconnected, await peripheral.disconnectReason == .requested { return nil }
                throw error
            }
        }
    }
}

extension Peripheral {
    /// How well the controller hears the peer, in dBm, at most once in `interval`, while somebody iterates.
    public nonisolated func rssi(every interval: Duration) -> RSSISequence {
        RSSISequence(peripheral: self, interval: interval)
    }
}
