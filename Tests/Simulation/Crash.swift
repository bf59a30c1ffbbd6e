import Glibc
import Synchronization

/// Says which seed it was when the process traps, or when a seed takes so long that time must stand in it.
enum Crash {
    /// How many seconds one seed may take.
    private static let limit: UInt32 = 60
    private static let seed = Atomic<UInt64>(0)

    static func begin(_ number: UInt64) {
        seed.store(number, ordering: .relaxed)
        alarm(limit)
    }

    static func watch() {
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGALRM] {
            signal(number) { number in Crash.report(number) }
        }
    }

    /// Only what a handler of signals may do: no memory is asked for.
    private static func report(_ number: Int32) {
        write(number == SIGALRM ? "not ok simulation hangs in seed " : "not ok simulation crashed in seed ")
        var rest = seed.load(ordering: .relaxed)
        var divisor: UInt64 = 1
        while rest / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            var digit = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest / divisor)
            _ = unsafe Glibc.write(1, &digit, 1)
            rest %= divisor
            divisor /= 10
        }
        write("\n")
        _exit(128 + number)
    }

    private static func write(_ text: StaticString) {
        _ = unsafe Glibc.write(1, text.utf8Start, text.utf8CodeUnitCount)
    }
}
