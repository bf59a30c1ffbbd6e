import Glibc

/// The messages of `serve`, and the packets of its `--trace`, on standard error.
///
/// They are added on the event loop, which never waits for the reader: see `ServedLines`.
final class ServedNotes: Sendable {
    private let lines: ServedLines

    /// The caller has them written by `write()`.
    init(to output: LineOutput = LineOutput(STDERR_FILENO)) {
        lines = ServedLines(to: output, reportingTo: nil)
    }

    /// Runs `body`, and has its messages written; returns once that is done, or the reader takes no more.
    static func writing(_ body: (ServedNotes) async throws -> Void) async throws {
        let notes = ServedNotes()
        let writing = Task { await notes.write() }
        do {
            try await body(notes)
        } catch {
            notes.finish()
            await writing.value
            throw error
        }
        notes.finish()
        await writing.value
    }

    /// Adds a message for users; never waits.
    func note(_ line: String) { note(StyledText(line)) }

    /// The same for a line with styles.
    func note(_ line: StyledText) {
        guard Interrupt.status == nil else { return }
        lines.add(Console.messageBytes(line))
    }

    /// Adds a warning, as `Console.warn` prints it.
    func warn(_ message: String) { note(Console.warning(message)) }

    /// Writes the messages until `finish()`. A reader that is gone does not end the program.
    func write() async { await lines.write() }

    /// No message follows. What the reader takes without a pause is still written.
    func finish() { lines.finish() }
}
