import CoreBluetooth
import TestSupport
import Testing

/// A program whose main queue is served by `dispatchMain()`.
@Suite(.timeLimit(.minutes(10))) struct DispatchMainTests {
    @Test func theTutorialReadsABeltOnTheMainQueue() async throws {
        let (process, output) = (Process(), Pipe())
        process.executableURL = BuiltPrograms.url("corebluetooth-dispatch-walk")
        process.standardOutput = output
        let status: Int32 = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do {
                try process.run()
            } catch {
                continuation.resume(throwing: error)
            }
        }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let lines = text.split(separator: "\n")
        #expect(status == 0)
        #expect(
            lines.filter { $0 != "rate" } == [
                "ready", "found Virtual HRM", "connected", "service 180D", "notifying true", "location 1",
                "disconnected true",
            ])
        // The first rate may come before the location.
        #expect(lines.contains("rate"))
        #expect(!lines.prefix { $0 != "notifying true" }.contains("rate"))
    }
}
