import BLECore
import BLELinux
import Foundation
import Testing

@testable import blescan

/// The lines of `--trace`.
@Suite struct TraceTests {
    /// 2026-11-21 23:59:59.900 UTC.
    private static let start: Duration = .milliseconds(1_795_305_599_900)

    @Test func eachPacketHasItsTimeAndEachDayItsDate() {
        let lines = Lock<[String]>([])
        let count = Lock(0)
        let trace = Trace {
            let number = count.withLock { count in
                defer { count += 1 }
                return count
            }
            return Self.start + .milliseconds(60 * number)
        } note: { line in
            lines.withLock { $0.append(line) }
        }
        trace.print([0x0A, 0x03, 0x00], isOutgoing: true)
        trace.print([0x0B, 0x41], isOutgoing: false)
        trace.print([0x0A, 0x05, 0x00], isOutgoing: true)
        // The time zone is that of this process.
        func day(_ milliseconds: Int) -> String { Timestamp.Day(of: Self.start + .milliseconds(milliseconds)).text }
        func time(_ milliseconds: Int) -> String {
            String(Timestamp.local(sinceEpoch: Self.start + .milliseconds(milliseconds)).dropFirst(11).prefix(12))
        }
        var expected = [
            "# \(day(0))",
            "< 0a0300                                  # \(time(0))  Read Request (0x0a) handle 0x0003",
            "> 0b41                                    # \(time(60))  Read Response (0x0b) 1 byte",
            "#         41",
        ]
        if day(60) != day(120) { expected.append("# \(day(120))") }
        expected.append(
            "< 0a0500                                  # \(time(120))  Read Request (0x0a) handle 0x0005")
        #expect(lines.withLock(\.self) == expected)
    }

    @Test(arguments: [([], "UTC+05:30"), (["--utc"], "UTC")])
    func timesAreLocalOrInUTC(_ options: [String], _ zone: String) async throws {
        let outcome = try await BuiltProgram.run(
            ["notify", "demo:heart-rate", "2a37", "-n", "1", "--trace"] + options, environment: ["TZ": "IST-5:30"])
        #expect(outcome.status == 0)
        let date = outcome.errors.split(separator: "\n").first { $0.hasPrefix("# 20") }
        #expect(date?.hasSuffix(", \(zone)") == true, "\(outcome.errors)")
        let packets = outcome.errors.split(separator: "\n").filter { $0.hasPrefix("<") || $0.hasPrefix(">") }
        #expect(!packets.isEmpty && packets.allSatisfy { $0.contains(/\ #\ \d\d:\d\d:\d\d\.\d{3}\ \ [A-Z]/) })
    }
}
