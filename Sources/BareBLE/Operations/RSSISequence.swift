internal import BLECore
internal import BLELinux

/// The signal strength of a peer, measured repeatedly while the sequence is iterated.
///
/// Nothing is requested, and no timer runs, unless a task waits for the next value. A slow consumer misses
/// measurements, which are not repeated.
public struct RSSISequence: AsyncSequence, Sendable {
    /// The element type: a signal strength in dBm.
    public typealias Element = Int
    /// The error that the sequence may end with.
    public typealias Failure = BLEError

    let peripheral: Peripheral
    let interval: Duration

    /// Returns an iterator over the measurements.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(peripheral: peripheral, interval: interval)
    }

    /// An iterator over the measurements.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let peripheral: Peripheral
        let interval: Duration
        private var last: BootInstant?

        init(peripheral: Peripheral, interval: Duration) {
            self.peripheral = peripheral
            self.interval = interval
        }

        /// Returns the next measurement, the first one at once; `nil` after this program has ended the link or the
        /// task was cancelled.
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
    /// Returns the peer's signal strength, in dBm, at most once in `interval`, while the sequence is iterated.
    public nonisolated func rssi(every interval: Duration) -> RSSISequence {
        RSSISequence(peripheral: self, interval: interval)
    }
}
