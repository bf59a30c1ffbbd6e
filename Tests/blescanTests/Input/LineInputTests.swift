import Foundation
import Glibc
import Testing

@testable import blescan

@Suite struct LineInputTests {
    private static let tooLong = InputLine.tooLong("more than 65536 bytes")
    private static let longest = String(repeating: "0", count: InputLine.limit)

    private func lines(_ text: String) async throws -> [InputLine] {
        let folder = try TestFolder()
        try text.write(toFile: folder["lines"], atomically: true, encoding: .utf8)
        let descriptor = unsafe open(folder["lines"], O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        let input = LineInput(descriptor)
        var lines: [InputLine] = []
        while let line = await input.next() { lines.append(line) }
        return lines
    }

    /// A part of it would be another operation of `talk`.
    @Test func aLineThatIsTooLongIsNotCut() async throws {
        let (tooLong, longest) = (Self.tooLong, Self.longest)
        let lines = try await lines(
            "\(longest)0\na\n\(longest)\n\(longest)\(longest)\(longest)\nb\n\(longest)0")
        #expect(lines == [tooLong, .whole("a"), .whole(longest), tooLong, .whole("b"), tooLong])
    }

    @Test func aCarriageReturnBelongsToTheEndAtAnyLength() async throws {
        let longest = Self.longest
        let lines = try await lines("a\r\n\r\n\(longest)\r\n\(longest)0\r\n\(longest)\r0\nb\r\n\(longest)\r")
        #expect(
            lines == [
                .whole("a"), .whole(""), .whole(longest), Self.tooLong, Self.tooLong, .whole("b"), Self.tooLong,
            ])
    }
}
