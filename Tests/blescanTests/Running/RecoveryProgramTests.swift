import TestSupport
import Testing

/// `bareble-recover`, started by hand so that it takes no step.
@Suite struct RecoveryProgramTests {
    private func run(_ arguments: [String]) async throws -> Outcome {
        try await RunningProgram(arguments, of: BuiltPrograms.url("bareble-recover")).outcome()
    }

    @Test(
        arguments: [
            // No step, and steps that need no helper.
            (["reset", "hci0"], "reset is no step"), (["rescan", "hci0"], "rescan is no step"),
            (["event-masks", "hci0", "--with-links"], "event-masks is no step"),
            (["power"], "give a step and an adapter"), (["power", "hci0", "hci1"], "give a step and an adapter"),
            (["--force", "power", "hci0"], "give a step and an adapter"),
            (["--with-links"], "give a step and an adapter"),
            // A pipe is not the socket of a client.
            ([String](), "standard input is no socket with packets"),
        ]) func whatIsNoRequestIsRefused(_ arguments: [String], _ message: String) async throws
    {
        let outcome = try await run(arguments)
        #expect(outcome.status == 64)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors.hasPrefix("bareble-recover: \(message)\n"))
        #expect(outcome.errors.split(separator: "\n").count == 2, "the error, and a hint")
    }

    /// Where the kernel has no Bluetooth, that is what fails.
    @Test(arguments: ["hci999", "02:00:00:00:00:99"]) func anAdapterThatIsNotThereIsNamed(_ adapter: String)
        async throws
    {
        let outcome = try await run(["power", adapter])
        #expect([69, 70].contains(outcome.status))
        #expect(outcome.errors.hasPrefix("bareble-recover: power, \(adapter): "))
    }

    @Test func theHelpNamesEachStep() async throws {
        let outcome = try await run(["--help"])
        #expect(outcome.status == 0 && outcome.errors.isEmpty)
        for step in ["power", "radio-switch", "usb-port", "driver"] { #expect(outcome.output.contains(step)) }
    }
}
