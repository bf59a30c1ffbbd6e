import Foundation
import Testing

@testable import blescan

@Suite struct InputLinesTests {
    private func lines(_ text: [UInt8]) throws -> [[UInt8]] {
        let file = FileManager.default.temporaryDirectory.appending(path: "lines-\(UUID().uuidString)")
        try Data(text).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var input = try InputLines(path: file.path)
        var result: [[UInt8]] = []
        while let line = input.next() { result.append(line) }
        return result
    }

    @Test func linesEndInEachUsualWay() throws {
        #expect(try lines(Array("a\nb\r\n\nc".utf8)) == [[0x61], [0x62], [], [0x63]])
        #expect(try lines(Array("a\n".utf8)) == [[0x61]])
        #expect(try lines([]) == [])
    }

    @Test func linesMayCrossTheEndOfTheBuffer() throws {
        let long = [UInt8](repeating: 0x30, count: 50_000)
        #expect(try lines(long + [0x0A] + long + [0x0A] + [0x31]) == [long, long, [0x31]])
    }

    @Test func overlongLinesAreCut() throws {
        let text = [UInt8](repeating: 0x30, count: 200_000) + [0x0A, 0x31]
        #expect(try lines(text).map(\.count) == [65536, 1])
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
        #expect(isFirstReady && first == [0x61])
        let isSecondReady = input.isReady(within: .zero)
        let second = input.next()
        #expect(isSecondReady && second == [0x62])
        // The beginning of a line is none.
        try writer.write(contentsOf: Data("c".utf8))
        let isBeginningReady = input.isReady(within: .milliseconds(1))
        #expect(!isBeginningReady)
        try writer.write(contentsOf: Data("d\n".utf8))
        let isWholeReady = input.isReady(within: .seconds(60))
        let third = input.next()
        #expect(isWholeReady && third == [0x63, 0x64])
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
