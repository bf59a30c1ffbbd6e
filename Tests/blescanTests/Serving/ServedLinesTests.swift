import BLELinux
import Glibc
import Testing

@testable import blescan

/// The lines of `blescan serve`, where their reader takes none for a time, or none any more.
@Suite(.timeLimit(.minutes(5))) struct ServedLinesTests {
    /// A pipe that the test reads.
    private final class Reader: Sendable {
        let reading: Int32
        let writing: Int32

        init() {
            var ends: [Int32] = [-1, -1]
            _ = unsafe pipe(&ends)
            (reading, writing) = (ends[0], ends[1])
        }

        deinit {
            close(reading)
            close(writing)
        }

        /// Writes until there is no room.
        func fill() {
            _ = fcntl(writing, F_SETFL, O_NONBLOCK)
            let page = [UInt8](repeating: 0x2E, count: 4_096)
            while unsafe write(writing, page, page.count) > 0 {}
        }

        /// Takes the lines that the pipe holds now.
        func lines() -> [String] {
            _ = fcntl(reading, F_SETFL, O_NONBLOCK)
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while case let count = unsafe read(reading, &buffer, buffer.count), count > 0 {
                bytes += buffer.prefix(count)
            }
            return bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
        }
    }

    private func warning(_ text: String) -> String {
        String(decoding: Console.messageBytes(Console.warning(text)), as: UTF8.self)
    }

    @Test func messagesWithoutRoomAreCounted() async {
        let reader = Reader()
        let notes = ServedNotes(to: LineOutput(reader.writing))
        for number in 0..<(ServedLines.limit + 5) { notes.note("\(number)") }
        notes.finish()
        await notes.write()
        let expected: [String] =
            ["0", warning("5 messages came faster than they were printed")] + (1..<ServedLines.limit).map { "\($0)" }
        #expect(reader.lines() == expected)
    }

    @Test func linesThatAReaderHasNotTakenUntilTheEndAreCounted() async {
        let (stopped, reader) = (Reader(), Reader())
        stopped.fill()
        let notes = ServedNotes(to: LineOutput(reader.writing))
        let lines = ServedLines(to: LineOutput(stopped.writing), reportingTo: notes)
        for _ in 0..<3 { lines.add([0x41]) }
        lines.finish()
        await lines.write()
        notes.finish()
        await notes.write()
        #expect(reader.lines() == [warning("3 lines came faster than they were printed")])
    }

    /// A full disk, on which results end the program.
    @Test func messagesThatCannotBeWrittenEndNothing() async {
        let full = unsafe open("/dev/full", O_WRONLY | O_CLOEXEC)
        defer { close(full) }
        let notes = ServedNotes(to: LineOutput(full))
        notes.warn("a message")
        notes.finish()
        await notes.write()
        #expect(Interrupt.status == nil)
    }
}
