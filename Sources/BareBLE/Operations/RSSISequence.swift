internal import BLECore
internal import BLELinux

/// The signal strength of a peer, in dBm, measured repeatedly while the sequence is iterated.
///
/// Each iterator measures at once, and then at most once in the interval. Nothing is requested, and no timer runs,
/// unless a task waits for the next value. A slow consumer misses measurements, which are not repeated. The sequence
/// ends when this program ends the link, and throws `BLEError` as `Peripheral.rssi()` does.
public typealias RSSISequence = BLESequence<Int>

extension Peripheral {
    /// Returns the peer's signal strength, in dBm, at most once in `interval`, while the sequence is iterated.
    public nonisolated func rssi(every interval: Duration) -> RSSISequence {
        BLESequence { [self] in
            let last = Lock<BootInstant?>(nil)
            return BLESequence<Int>.AsyncIterator { () async throws(BLEError) in
                if let last = last.withLock({ $0 }) { _ = await self.disconnected(by: last + interval) }
                if Task.isCancelled { return [] }
                let now = self.loop.now()
                last.withLock { $0 = now }
                do throws(BLEError) {
                    return [StreamEntry(try await self.rssi())]
                } catch {
                    if error.code == .cancelled { return [] }
                    if error.code == .disconnected, await self.disconnectReason == .requested { return [] }
                    throw error
                }
            }
        }
    }
}
