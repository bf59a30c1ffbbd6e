import BLECore
import TestSupport
import Testing

@Suite struct ReconnectPolicyTests {
    private static let middle = UInt64(1) << 63

    @Test(.row("L08")) func pausesDoubleUpToTheLongest() {
        let policy = ReconnectPolicy.backoff(initial: .seconds(1), max: .seconds(60), jitter: 0)
        let pauses = (1...9).map { policy.pause(afterFailures: $0, number: $0, chance: 7) }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
        #expect(policy.pause(afterFailures: 1, number: .max, chance: 0) == .seconds(60))
    }

    @Test(
        .row("L08"),
        arguments: [
            (UInt64.zero, 8000), (Self.middle / 2, 9000), (Self.middle, 10000), (Self.middle + Self.middle / 2, 11000),
            (UInt64.max, 12000),
        ])
    func jitterSpreadsToBothSides(_ chance: UInt64, _ milliseconds: Int) {
        let policy = ReconnectPolicy.backoff(initial: .seconds(10), max: .seconds(60), jitter: 0.2)
        let pause = policy.pause(afterFailures: 1, number: 1, chance: chance) ?? .zero
        #expect(abs((pause - .milliseconds(milliseconds)) / .milliseconds(1)) < 0.001)
    }

    @Test func noPauseIsLongerThanTheLongest() {
        let policy = ReconnectPolicy.backoff(initial: .seconds(40), max: .seconds(60), jitter: 1)
        #expect(policy.pause(afterFailures: 2, number: 2, chance: .max) == .seconds(60))
        #expect(policy.pause(afterFailures: 2, number: 2, chance: 0) == .zero)
    }

    @Test func attemptsAreCounted() {
        let policy = ReconnectPolicy.backoff(initial: .seconds(1), jitter: 0, attempts: 3)
        #expect(policy.pause(afterFailures: 2, number: 2, chance: 0) == .seconds(2))
        #expect(policy.pause(afterFailures: 3, number: 3, chance: 0) == nil)
        #expect(ReconnectPolicy.never.pause(afterFailures: 0, number: 1, chance: 0) == nil)
        #expect(ReconnectPolicy.custom.pause(afterFailures: 0, number: 1, chance: 0) == nil)
    }

    /// Values of a file or of a mistake, not of a peer; none may trap.
    @Test(
        arguments: [Duration.zero, .seconds(-5), .seconds(Int64.max), .nanoseconds(1)],
        [0.2, -1, .nan, .infinity, 1e300])
    func oddValuesGiveSomePause(_ time: Duration, _ jitter: Double) throws {
        for (initial, longest) in [(time, Duration.seconds(60)), (.seconds(1), time), (time, time)] {
            let policy = ReconnectPolicy.backoff(initial: initial, max: longest, jitter: jitter)
            for chance in [0, Self.middle, .max] {
                for number in [-1, 0, 1, 64, .max] {
                    let pause = try #require(policy.pause(afterFailures: 1, number: number, chance: chance))
                    #expect(pause >= .zero && pause <= max(longest, .zero))
                }
            }
        }
    }
}
