import Testing

@testable import blescan

/// Times on the command line.
@Suite struct DurationArgumentTests {
    @Test(arguments: [
        ("10", 10_000), ("0.5", 500), ("1e3", 1_000_000), ("10s", 10_000), ("10sec", 10_000), ("500ms", 500),
        ("2m", 120_000), ("5min", 300_000), ("1.5h", 5_400_000), ("1d", 86_400_000), ("1m30s", 90_000),
        ("1m30sec", 90_000), ("1h2min3s4ms", 3_723_004), ("1d1ms", 86_400_001), ("365d", 31_536_000_000),
        ("8760h", 31_536_000_000), ("10.24s", 10_240), ("10240ms", 10_240),
    ])
    func numbersWithUnitsAreAdded(_ text: String, _ milliseconds: Int) throws {
        let argument = try DurationArgument(argument: text)
        #expect(argument.duration == .milliseconds(milliseconds))
        #expect(argument.description == text)
    }

    @Test(arguments: [
        ("1", "1 s"), ("0.5", "0.5 s"), ("1s", "1 s"), ("500ms", "500 ms"), ("1m30sec", "1 min 30 s"),
        ("1.5h", "1.5 h"),
    ])
    func messagesHaveTheUnit(_ text: String, _ words: String) throws {
        #expect(try DurationArgument(argument: text).words == words)
    }

    @Test(arguments: [
        "", "m", "s", "soon", "30s1m", "1m30", "1m2m", "1m2min", "1ms2s", "10 s", "1m 30s", "1.2.3s", "1e3s",
        "5minutes",
        "5M", "nan", "٣s",
    ])
    func anythingElseIsRefused(_ text: String) throws {
        let error = try #require(throws: BadValue.self) { try DurationArgument(argument: text) }
        #expect(error.description.hasPrefix("write 10s,"), "\(error)")
    }

    @Test(arguments: [
        ("-1s", "negative"), ("0", "longer than 0"), ("0m0s", "longer than 0"), ("366d", "8760h"), ("8760h1s", "8760h"),
        ("inf", "8760h"),
    ])
    func thereAreLimits(_ text: String, _ words: String) throws {
        let error = try #require(throws: BadValue.self) { try DurationArgument(argument: text) }
        #expect(error.description.contains(words))
    }
}
