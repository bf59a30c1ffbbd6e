import BLELinux
import Foundation
import Glibc

/// A terminal without a screen, which collects all output.
final class PseudoTerminal: Sendable {
    /// The program's end of the terminal.
    let side: FileHandle
    private let master: Int32
    private let written = Lock(Data())
    private let hasEnded = Lock(false)
    /// Whether the thread that reads closes the master.
    private let isHungUp = Lock(false)

    /// Creates a terminal with so many columns.
    init(columns: UInt16 = 80) throws {
        let master = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        self.master = master
        // unlockpt and ptsname, which the module of the C library lacks.
        var (isLocked, number) = (Int32(0), UInt32(0))
        guard master >= 0, unsafe ioctl(master, 0x4004_5431, &isLocked) == 0,
            unsafe ioctl(master, 0x8004_5430, &number) == 0
        else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        let descriptor = unsafe open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(descriptor, UInt(TIOCSWINSZ), &size)
        side = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        Thread { [weak self] in
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(master, $0.baseAddress, $0.count) }
                guard let self else { return }
                if isHungUp.withLock(\.self) {
                    close(master)
                    return hasEnded.withLock { $0 = true }
                }
                guard count > 0 else { return hasEnded.withLock { $0 = true } }
                written.withLock { $0.append(contentsOf: buffer.prefix(count)) }
            }
        }.start()
    }

    deinit {
        if !isHungUp.withLock(\.self) { close(master) }
    }

    /// Ends the terminal, as closing its window does: nothing can be written to it or read from it any more.
    func hangUp() {
        isHungUp.withLock { $0 = true }
        // While a thread reads from the master it stays open: this ends the read.
        let bytes = Array(" ".utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(side.fileDescriptor, $0.baseAddress, $0.count) }
    }

    /// The output so far. A terminal ends lines with a carriage return too.
    var text: String {
        written.withLock { String(decoding: $0, as: UTF8.self) }.replacingOccurrences(of: "\r\n", with: "\n")
    }

    /// All output, once the programs that wrote it have ended: their last bytes may still be on the way then. No other
    /// program can have this terminal afterwards.
    func whole() async throws -> String {
        try side.close()
        try await waited(for: "the terminal's end") { hasEnded.withLock(\.self) }
        return text
    }

    /// Whether it echoes what is typed, and passes on whole lines.
    var isCooked: Bool {
        var settings = termios()
        _ = unsafe tcgetattr(side.fileDescriptor, &settings)
        let cooked = tcflag_t(ICANON | ECHO | IEXTEN)
        return settings.c_lflag & cooked == cooked
    }

    /// Types keys, as a user does.
    func type(_ keys: String) {
        let bytes = Array(keys.utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(master, $0.baseAddress, $0.count) }
    }

    /// Waits until `text` was written.
    func shown(_ text: String) async throws {
        try await waited(for: "the terminal shows `\(text)`; it has: \(self.text.debugDescription)") {
            self.text.contains(text)
        }
    }
}
