import BLECore
import Testing

/// Smoothing and levels, in virtual time. Expected strengths are the exact averages of the weight 2^(-age / half-life).
@Suite struct ProximityTests {
    private let start = BootInstant(nanoseconds: 5_000_000_000)

    @Test func nothingHeardIsNeitherNearNorFar() {
        var proximity = Proximity()
        #expect(proximity.level == nil && proximity.strength == nil)
        let level = proximity.heard(nil, at: start)
        #expect(level == nil && proximity.strength == nil)
    }

    @Test(
        arguments: [(-30, .immediate), (-45, .immediate), (-46, .near), (-70, .near), (-71, .far)]
            as [(Int8, Proximity.Level)])
    func theFirstStrengthGivesTheFirstLevel(rssi: Int8, level: Proximity.Level) {
        var proximity = Proximity()
        let changes = [0, 1].map { proximity.heard(rssi, at: start + .seconds($0)) }
        #expect(changes == [level, nil])
        #expect(proximity.level == level && abs((proximity.strength ?? 0) - Double(rssi)) < 1e-9)
    }

    @Test func whatLiesAHalfLifeBackCountsHalf() throws {
        // A step after 8 s at -80, held for n half-lives: -80 + 20 (1 - 2^-n) / (1 - 2^-(n + 4)).
        for count in 1...4 {
            var proximity = Proximity()
            _ = proximity.heard(-80, at: start)
            _ = proximity.heard(-80, at: start + .seconds(8))
            _ = proximity.heard(-60, at: start + .seconds(8))
            _ = proximity.heard(-60, at: start + .seconds(8) + .seconds(2 * count))
            let past = 1 / Double(1 << count)
            let expected = -80 + 20 * (1 - past) / (1 - past / 16)
            #expect(abs(try #require(proximity.strength) - expected) < 1e-9)
        }
    }

    @Test(arguments: [1, 2, 3, 7, 10, 50, 1000]) func theRateOfReportsMakesNoDifference(rate: Int) throws {
        // 6 s at -50, a walk away at 5 dB a second down to -90, then 4 s there.
        func strength(_ time: Double) -> Double { max(-90, min(-50, -50 - 5 * (time - 6))) }
        func smoothed(_ rate: Int) throws -> Double {
            var proximity = Proximity()
            for index in 0...(18 * rate) {
                let time = Double(index) / Double(rate)
                _ = proximity.heard(Int8(strength(time).rounded()), at: start + .nanoseconds(Int64(time * 1e9)))
            }
            return try #require(proximity.strength)
        }
        #expect(abs(try smoothed(rate) - smoothed(100)) < 0.5)
    }

    @Test func aBurstOfReportsWeighsNoMoreThanOne() throws {
        var once = Proximity()
        var often = Proximity()
        for second in 0..<10 {
            let now = start + .seconds(second)
            let rssi: Int8 = second.isMultiple(of: 2) ? -60 : -70
            _ = once.heard(rssi, at: now)
            // The same strength from three channels, and again within the millisecond.
            for channel in 0..<3 { _ = often.heard(rssi, at: now + .microseconds(300 * channel)) }
        }
        #expect(abs(try #require(once.strength) - (try #require(often.strength))) < 0.1)
    }

    @Test func aJumpForAMomentChangesNoLevel() {
        var proximity = Proximity()
        var changes: [Proximity.Level] = []
        for tenth in 0..<300 {
            // Near, with a fade of 25 dB in every tenth report.
            let rssi: Int8 = tenth % 10 == 9 ? -90 : -62
            if let level = proximity.heard(rssi, at: start + .milliseconds(100 * tenth)) { changes.append(level) }
        }
        #expect(changes == [.near])
    }

    @Test func aLevelIsReachedAtItsThresholdAndLeftBelowIt() {
        var proximity = Proximity(Proximity.Settings(near: -70, immediate: -45, hysteresis: 6, halfLife: .zero))
        var levels: [Proximity.Level?] = []
        for (index, rssi) in ([-80, -71, -70, -74, -76, -77, -71, -70, -44, -51, -52, -40, -90] as [Int8]).enumerated()
        {
            _ = proximity.heard(rssi, at: start + .seconds(index))
            levels.append(proximity.level)
        }
        #expect(
            levels == [
                .far, .far, .near, .near, .near, .far, .far, .near, .immediate, .immediate, .near, .immediate, .far,
            ])
    }

    @Test func noiseAtAThresholdDoesNotFlicker() {
        func changes(_ hysteresis: Double) -> Int {
            var proximity = Proximity(Proximity.Settings(hysteresis: hysteresis, halfLife: .milliseconds(500)))
            var changes = 0
            var state: UInt64 = 42
            for tenth in 0..<3000 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let noise = Int8(truncatingIfNeeded: Int((state >> 33) % 11)) - 5
                if proximity.heard(-70 + noise, at: start + .milliseconds(100 * tenth)) != nil { changes += 1 }
            }
            return changes
        }
        #expect(changes(0) > 100)
        #expect(changes(6) <= 2)
    }

    @Test func oddClocksAndSettingsDoNoHarm() throws {
        for halfLife: Duration in [.zero, .seconds(-1), .nanoseconds(1), .seconds(1 << 40), .microseconds(1)] {
            var proximity = Proximity(Proximity.Settings(hysteresis: -5, halfLife: halfLife))
            for now in [0, 1, 5, 3, .max, .min, 7] as [Int64] {
                _ = proximity.heard(-128, at: BootInstant(nanoseconds: now))
                _ = proximity.heard(127, at: BootInstant(nanoseconds: now))
            }
            let strength = try #require(proximity.strength)
            #expect(strength >= -128 && strength <= 127)
        }
    }
}
