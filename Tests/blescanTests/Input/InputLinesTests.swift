import Foundation
import Testing

@testable import blescan

@Suite struct InputLinesTests {
    private static let tooLong = InputLine.tooLong("more than 65536 bytes")

    private func lines(_ text: String) throws -> [InputLine] {
        let file = FileManager.default.temporaryDirectory.appending(path: "lines-\(UUID().uuidString)")
        try Data(text.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var input = try InputLines(path: file.path)
        var result: [InputLine] = []
        while let line = input.next() { result.append(line) }
        return result
    }

    @Test func linesEndInEachUsualWay() throws {
        #expect(try lines("a\nb\r\n\nc") == [.whole("a"), .whole("b"), .whole(""), .whole("c")])
        #expect(try lines("a\n") == [.whole("a")])
        #expect(try lines("") == [])
    }

    @Test func linesMayCrossTheEndOfTheBuffer() throws {
        let long = String(repeating: "0", count: 50_000)
        #expect(try lines("\(long)\n\(long)\n1") == [.whole(long), .whole(long), .whole("1")])
    }

    @Test(arguments: ["\n", "\r\n"]) func aLineHasALimit(_ end: String) throws {
        let longest = String(repeating: "0", count: 65_536)
        #expect(try lines(longest + end + "1") == [.whole(longest), .whole("1")])
        #expect(try lines(longest + "0" + end + "1") == [Self.tooLong, .whole("1")])
    }

    /// The rest of it is no line either.
    @Test(arguments: [65_537, 65_538, 65_539, 200_000]) func aLineThatIsTooLongIsNotCut(_ count: Int) throws {
        let long = String(repeating: "0", count: count)
        #expect(try lines("\(long)\n1") == [Self.tooLong, .whole("1")])
        #expect(try lines(long) == [Self.tooLong])
        // A carriage return at any place is not its end.
        #expect(try lines("\(long.dropLast())\r0\n1") == [Self.tooLong, .whole("1")])
        #expect(try lines("\(long)\r0\n1") == [Self.tooLong, .whole("1")])
    }

    @Test func theNextLineIsWaitedForNoLongerThanAllowed() throws {
        let folder = try TestFolder()
        let path = folder["pipe"]
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let writer = try #require(FileHandle(forUpdatingAtPath: path))
        var input = try InputLines(path: path)
        let isEmptyReady = input.isReady(within: .milliseconds(1))
        #expect(!isEmptyReady)
        try writer.write(contentsOf: Data("a\nb\n".utf8))
        let isFirstReady = input.isReady(within: .seconds(60))
        let first = input.next()
        #expect(isFirstReady && first == .whole("a"))
        let isSecondReady = input.isReady(within: .zero)
        let second = input.next()
        #expect(isSecondReady && second == .whole("b"))
        // The beginning of a line is none.
        try writer.write(contentsOf: Data("c".utf8))
        let isBeginningReady = input.isReady(within: .milliseconds(1))
        #expect(!isBeginningReady)
        try writer.write(contentsOf: Data("d\n".utf8))
        let isWholeReady = input.isReady(within: .seconds(60))
        let third = input.next()
        #expect(isWholeReady && third == .whole("cd"))
        try writer.close()
        let isEndReady = input.isReady(within: .seconds(60))
        let end = input.next()
        #expect(isEndReady && end == nil)
    }

    @Test func aMissingFileFails() {
        #expect(throws: Failure.self) {
            let input = try InputLines(path: "/nowhere/at/all")
            _ = input.isTerminal
        }
    }
}
