import Testing

@testable import blescan

/// The line of progress that the terminal shows at each time.
@Suite struct ProgressLineTests {
    private static let erase = "\r\u{1B}[K"
    private let start = ContinuousClock().now

    private func begun() -> ProgressLine {
        var line = ProgressLine()
        line.begin("connecting", at: start)
        return line
    }

    @Test func whatIsQuickIsDoneInSilence() {
        var line = begun()
        #expect(line.due(at: start + .milliseconds(999), width: 80).isEmpty)
        #expect(line.end().isEmpty)
        #expect(line.due(at: start + .seconds(9), width: 80).isEmpty)
    }

    @Test func itIsRewrittenWhereItHasChanged() {
        var line = begun()
        #expect(line.due(at: start + .seconds(1), width: 80) == Self.erase + "connecting, 1 s")
        #expect(line.due(at: start + .milliseconds(1999), width: 80).isEmpty)
        #expect(line.due(at: start + .seconds(2), width: 80) == Self.erase + "connecting, 2 s")
        line.update("reading 0x0003")
        line.step("value 1 of 7")
        #expect(
            line.due(at: start + .milliseconds(2100), width: 80) == Self.erase + "reading 0x0003, value 1 of 7, 2 s")
        line.step(nil)
        #expect(line.due(at: start + .milliseconds(2200), width: 80) == Self.erase + "reading 0x0003, 2 s")
        #expect(line.end() == Self.erase)
        #expect(line.end().isEmpty)
    }

    /// Other output takes its place, and then it waits again.
    @Test func itMakesRoom() {
        var line = begun()
        #expect(line.makeRoom(at: start + .milliseconds(500)).isEmpty)
        #expect(line.due(at: start + .milliseconds(1499), width: 80).isEmpty)
        #expect(!line.due(at: start + .milliseconds(1500), width: 80).isEmpty)
        #expect(line.makeRoom(at: start + .seconds(3)) == Self.erase)
        #expect(line.due(at: start + .milliseconds(3999), width: 80).isEmpty)
        #expect(line.due(at: start + .seconds(4), width: 80) == Self.erase + "connecting, 4 s")
    }

    /// Some terminals cannot erase a line that reaches the last column.
    @Test(arguments: [(nil, 79), (40, 39), (5, 4), (1, 0), (0, 0)] as [(Int?, Int)])
    func itFitsTheTerminal(_ width: Int?, _ longest: Int) {
        var line = ProgressLine()
        line.begin(String(repeating: "x", count: 200), at: start)
        let text = line.due(at: start + .seconds(1), width: width)
        #expect(text == (longest == 0 ? "" : Self.erase + String(repeating: "x", count: longest)))
    }

    @Test func nothingInItSteersTheTerminal() {
        var line = ProgressLine()
        line.begin("unix:/tmp/\u{1B}[2J\u{202E}ü\n", at: start)
        #expect(line.due(at: start + .seconds(1), width: 80) == Self.erase + "unix:/tmp/?[2J???, 1 s")
    }

    /// The packets show the current operation.
    @Test func requestsShowTheCurrentOperation() {
        var activity = LinkActivity()
        #expect(activity.sent([0x02, 0x05, 0x02]) == "exchanging the MTU")
        #expect(
            activity.sent([0x10, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28])
                == "discovering the database, 2 requests, at 0x0001")
        #expect(
            activity.sent([0x08, 0x21, 0x01, 0xFF, 0xFF, 0x03, 0x28])
                == "discovering the database, 3 requests, at 0x0121")
        #expect(activity.sent([0x08, 0x01, 0x00, 0xFF, 0xFF, 0x19, 0x2A]) == "reading 2a19")
        #expect(activity.sent([0x0A, 0x22, 0x00]) == "reading 0x0022")
        #expect(activity.sent([0x0C, 0x22, 0x00, 0x04, 0x01]) == "reading 0x0022, 260 bytes so far")
        #expect(activity.sent([0x12, 0x22, 0x00, 0x01]) == "writing 0x0022")
        #expect(activity.sent([0x16, 0x22, 0x00, 0x12, 0x00, 0xAB]) == "writing 0x0022, 18 bytes so far")
        // A confirmation requests nothing, and the rest are no requests.
        for packet in [[0x1E], [], [0x10], [0x0C, 0x22], [0xFF, 1, 2]] as [[UInt8]] {
            #expect(activity.sent(packet) == nil)
        }
    }
}
