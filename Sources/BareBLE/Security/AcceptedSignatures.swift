internal import BLECore
internal import BLELinux

// Which counters are accepted of the signed writes of peers.
//
// The disk has the counter of a write before that is executed, so that no other write with it ever is, whenever the
// process ends. It has it ahead: what is stored is higher by up to `block`, so that a peer makes the disk write once in
// that many signed writes. After a crash, the counters that were stored and not used are skipped: writes with them are
// dropped. A regular end stores the exact counter. A peer that skips counters would make the disk write more often: it
// may do so a few times in a minute, and its further writes are dropped.
//
// Invariants
// - A count belongs to a key, as the specification has it, and not to a bond: a peer that distributes its key again
//   goes on counting, and what it has signed before is not accepted.
// - `stored` is never above what the disk has while a bond has the key. It is raised after the disk was written and
//   lowered before, both in the turn of the job that writes: a job may end long after the task that has waited for it.

/// The counts of the signed writes of peers, by their keys.
final class AcceptedSignatures: Sendable {
    enum Decision: Equatable {
        case accepted
        /// It was used before.
        case used
        /// The disk has to have this as the lowest counter first; `nil` for none.
        case needsStorage(UInt32?)
        /// Skipped counters have made the disk write too often in the last minute.
        case skipsTooOften
    }

    private struct Count {
        /// The lowest counter that is accepted.
        var lowest: UInt64
        /// The lowest counter that the next run accepts.
        var stored: UInt64
        /// The number of counters that were accepted since the disk was written.
        var used: UInt64 = 0
        /// When the disk was to be written although few counters were used.
        var skips: [BootInstant] = []
    }

    /// The number of counters that one write to the disk covers.
    static let block: UInt64 = 64
    /// How often the disk is written in `skipTime` for a peer that has used less than half of a block.
    static let skipLimit = 8
    static let skipTime: Duration = .seconds(60)

    private let counts = Lock<[Secret128: Count]>([:])

    /// Accepts a counter, if it is new and the disk covers it.
    ///
    /// - Parameter signing: The key, and the lowest counter that the disk has for it.
    func accept(_ counter: UInt32, by signing: BondRecord.Signing, at now: BootInstant) -> Decision {
        counts.withLock { counts in
            let onDisk = Self.bound(signing.counter)
            var count = counts[signing.key] ?? Count(lowest: onDisk, stored: onDisk)
            defer { counts[signing.key] = count }
            let counter = UInt64(counter)
            guard counter >= count.lowest else { return .used }
            guard counter >= count.stored else {
                count.lowest = counter + 1
                count.used += 1
                return .accepted
            }
            if count.used < Self.block / 2 {
                count.skips.removeAll { $0 + Self.skipTime <= now }
                guard count.skips.count < Self.skipLimit else { return .skipsTooOften }
                count.skips.append(now)
            }
            return .needsStorage(UInt32(exactly: counter + Self.block))
        }
    }

    /// Returns the lowest counter that the disk is to have where at least `lowest` is needed. Another link with the key
    /// may have needed more meanwhile: what the disk has is never lowered.
    func raise(to lowest: UInt32?, by key: Secret128) -> UInt32? {
        let needed = Self.bound(lowest)
        return UInt32(exactly: max(needed, counts.withLock { $0[key]?.stored } ?? needed))
    }

    /// The disk has a lowest counter for a key.
    func stored(_ lowest: UInt32?, by key: Secret128) {
        counts.withLock { counts in
            counts[key]?.stored = Self.bound(lowest)
            counts[key]?.used = 0
        }
    }

    /// Returns the exact counters of those keys for which the disk has higher ones, and accepts none from now on that
    /// these do not cover.
    func takeExact() -> [Secret128: UInt32?] {
        counts.withLock { counts in
            var exact: [Secret128: UInt32?] = [:]
            for (key, count) in counts where count.stored != count.lowest {
                exact[key] = .some(UInt32(exactly: count.lowest))
                counts[key]?.stored = count.lowest
            }
            return exact
        }
    }

    /// Whether `takeExact` returns any.
    var isAhead: Bool { counts.withLock { $0.values.contains { $0.stored != $0.lowest } } }

    /// Returns a key and the lowest counter that is accepted with it, which is that of this process if there is one.
    func current(_ signing: BondRecord.Signing) -> BondRecord.Signing {
        guard let lowest = counts.withLock({ $0[signing.key]?.lowest }) else { return signing }
        return BondRecord.Signing(
            key: signing.key, counter: UInt32(exactly: max(lowest, Self.bound(signing.counter))))
    }

    /// Drops the counts of keys without a bond, if there are more than bonds could have.
    func limit(to bonded: @autoclosure () -> Set<Secret128>) {
        counts.withLock { counts in
            guard counts.count > 2 * BondFile.recordLimit else { return }
            let bonded = bonded()
            counts = counts.filter { bonded.contains($0.key) }
        }
    }

    /// The lowest counter as a number; beyond all counters where all have been used.
    private static func bound(_ lowest: UInt32?) -> UInt64 { lowest.map(UInt64.init) ?? UInt64(UInt32.max) + 1 }
}
