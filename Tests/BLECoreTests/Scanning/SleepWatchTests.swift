import BLECore
import TestSupport
import Testing

@Suite(.row("O19")) struct SleepWatchTests {
    private let start = BootInstant(nanoseconds: 5_000_000_000)

    @Test func aDeadlineThatIsServedLateShowsASleep() {
        var watch = SleepWatch()
        let cases: [(delay: Duration, hasSlept: Bool)] = [
            (.zero, false), (.milliseconds(9_999), false), (.seconds(10), true), (.seconds(8 * 3600), true),
        ]
        for (delay, expected) in cases {
            let hasSlept = watch.hasSlept(since: start, at: start + delay)
            #expect(hasSlept == expected, "\(delay)")
        }
    }

    /// A machine that serves each deadline late is busy.
    @Test(arguments: [false, true]) func fewDelaysInARowAreTakenForSleeps(isHeard: Bool) {
        var watch = SleepWatch()
        var found: [Bool] = []
        for _ in 1...5 { found.append(watch.hasSlept(since: start, at: start + .seconds(10))) }
        #expect(found == [true, true, true, false, false])
        if isHeard {
            watch.heard()
        } else {
            _ = watch.hasSlept(since: start, at: start)
        }
        let hasSlept = watch.hasSlept(since: start, at: start + .seconds(10))
        #expect(hasSlept)
    }
}
