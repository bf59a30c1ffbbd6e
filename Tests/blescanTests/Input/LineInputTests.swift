import Foundation
import Glibc
import Testing

@testable import blescan

@Suite struct LineInputTests {
    /// A part of it would be another operation of `talk`.
    @Test func aLineThatIsTooLongIsNotCut() async throws {
        let tooLong = InputLine.tooLong("more than 65536 bytes")
        let longest = String(repeating: "0", count: 65_536)
        let folder = try TestFolder()
        try "\(longest)0\na\n\(longest)\n\(longest)\(longest)\(longest)\nb\n\(longest)0".write(
            toFile: folder["lines"], atomically: true, encoding: .utf8)
        let descriptor = unsafe open(folder["lines"], O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        let input = LineInput(descriptor)
        var lines: [InputLine] = []
        while let line = await input.next() { lines.append(line) }
        #expect(lines == [tooLong, .whole("a"), .whole(longest), tooLong, .whole("b"), tooLong])
    }
}
