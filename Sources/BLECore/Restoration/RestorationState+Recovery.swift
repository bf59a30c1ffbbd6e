// When runs of recovery began, in a form that outlives the program and the boot of the machine.
//
// The time of day may be set at any time, and a machine without a clock of its own begins each boot with a wrong one.
// Within one boot the clock of that boot counts, which nobody sets; only across boots, and in states of earlier
// versions, the time of day does. Where that was set forward, a pause may be left out once. Where it was set back, the
// last run counts as if it had just begun, once: the times are stored again by the clock of this boot.

/// The kernel's identifier of one boot of the machine.
package struct BootIdentifier: Hashable, Sendable {
    /// The first 16 and the last 16 digits.
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads the text of `/proc/sys/kernel/random/boot_id`; `nil` for anything else.
    package init?(_ text: String) {
        var (high, low): (UInt64, UInt64) = (0, 0)
        var count = 0
        for byte in text.utf8 where byte != 0x2D {
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            case 0x61...0x66: digit = byte - 0x61 + 10
            default: return nil
            }
            if count < 16 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
            count += 1
        }
        guard count == 32 else { return nil }
        self.init(high: high, low: low)
    }
}

/// The clocks of the machine at one moment.
package struct MachineTime: Sendable {
    let now: BootInstant
    /// In seconds since 1970-01-01 00:00 UTC.
    let timeOfDay: UInt64
    /// `nil` where the kernel does not report it.
    let boot: BootIdentifier?

    package init(now: BootInstant, timeOfDay: UInt64, boot: BootIdentifier?) {
        self.now = now
        self.timeOfDay = timeOfDay
        self.boot = boot
    }
}

extension RestorationState {
    /// The times of `recoveryTimes`, in the same order, by the clock of the boot in which they were stored.
    struct RecoveryBoot: Hashable, Sendable {
        let identifier: BootIdentifier
        /// Those of earlier boots may be negative.
        let times: [BootInstant]
        /// Whether a step has left the adapter off: a program that was ended meanwhile switches it on when it is
        /// started again.
        let isAdapterLeftOff: Bool
    }

    /// Whether the times of runs are of this boot, so that no clock that is set changes them.
    package func hasRecoveryRuns(of time: MachineTime) -> Bool {
        guard let recoveryBoot else { return false }
        return recoveryBoot.identifier == time.boot && recoveryBoot.times.count == recoveryTimes.count
    }

    /// Whether a step of recovery has left the adapter off in this boot.
    package func isAdapterLeftOff(at time: MachineTime) -> Bool {
        hasRecoveryRuns(of: time) && recoveryBoot?.isAdapterLeftOff ?? false
    }

    /// Keeps the times at which runs of recovery began, and whether a step of theirs has left the adapter off.
    package mutating func setRecoveryRuns(
        _ runs: [BootInstant], isAdapterLeftOff: Bool = false, at time: MachineTime
    ) {
        recoveryTimes = runs.map { run in
            let age = UInt64(max(0, (time.now - run).components.seconds))
            return time.timeOfDay - min(time.timeOfDay, age)
        }
        recoveryBoot = nil
        // A run whose step was refused is none, and the adapter may be off all the same.
        if !runs.isEmpty || isAdapterLeftOff, let boot = time.boot {
            recoveryBoot = RecoveryBoot(identifier: boot, times: runs, isAdapterLeftOff: isAdapterLeftOff)
        }
    }

    /// Returns the times at which runs of recovery began, by the clock of this boot.
    package func recoveryRuns(at time: MachineTime) -> [BootInstant] {
        if hasRecoveryRuns(of: time), let recoveryBoot { return recoveryBoot.times.map { min($0, time.now) } }
        guard let newest = recoveryTimes.max() else { return [] }
        // A clock that was set back indicates nothing about the time since then.
        let age = time.timeOfDay - min(newest, time.timeOfDay)
        var last = time.now + .seconds(-Int64(clamping: age))
        // It began before this boot did.
        if let recoveryBoot, let boot = time.boot, recoveryBoot.identifier != boot { last = min(last, .zero) }
        return recoveryTimes.map { last + .seconds(-Int64(clamping: newest - $0)) }
    }
}
