// The terminal while a screen uses it: the alternate screen, without a cursor, and keys are read as they are pressed.
//
// Every end of the program but those that `TerminalState` names leaves the terminal as it was: the owner calls `leave`,
// and `exit` does once more, which is safe from any thread, any number of times; before other signals `TerminalState`
// does it. ^C and ^Z still send their signals; ^\ does not, because it would end the program without disconnecting.
//
// A terminal may take nothing forever: its connection hangs, or its reader has stopped. So no lock is held during a
// write, and no write waits longer than its caller requests. The keyboard is restored first, which needs no writing.

import BLECore
import BLELinux
import Glibc

/// The terminal of standard input and output.
enum Terminal {
    private static let isRegistered = Lock(false)
    /// The messages for users in the meantime.
    private static let notes = Lock<(deferred: [StyledText], moreCount: Int)>(([], 0))
    private static let mostNotes = 16

    /// Whether a screen uses the terminal.
    static var isTaken: Bool { TerminalState.shared.hasScreen }

    /// Defers a message for users until the terminal is restored; returns `false` if no screen uses it.
    static func deferring(_ note: StyledText) -> Bool {
        guard isTaken else { return false }
        notes.withLock { notes in
            if notes.deferred.count < mostNotes { notes.deferred.append(note) } else { notes.moreCount += 1 }
        }
        return true
    }

    /// Whether a screen can be shown.
    static var isUsable: Bool { obstacle == nil }

    /// The reason that a screen cannot be shown, for users: both streams must be a capable terminal, and this program
    /// must be in the foreground.
    static var obstacle: String? {
        if isatty(STDIN_FILENO) != 1 { return "standard input is not a terminal" }
        if !Console.isTerminal { return "standard output is not a terminal" }
        return limitation ?? (isInFront ? nil : "this program is in the background")
    }

    /// The reason that text on the terminal cannot be overwritten, for users.
    static var limitation: String? {
        let type = ScreenLook.variable("TERM") ?? ""
        if type.isEmpty { return "TERM is not set" }
        return type == "dumb" ? "TERM is dumb, a terminal that can only print lines" : nil
    }

    /// Whether this program is in the foreground, and not another one of the shell's jobs.
    static var isInFront: Bool { tcgetpgrp(STDIN_FILENO) == getpgrp() }

    /// Columns and rows.
    static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Takes the terminal; returns `false` if that fails.
    static func enter() -> Bool {
        isRegistered.withLock { isRegistered in
            if !isRegistered { atexit { Terminal.leave() } }
            isRegistered = true
        }
        let isRaw = TerminalState.shared.change(isForScreen: true) { raw in
            raw.c_iflag &= ~tcflag_t(IXON | ICRNL | INLCR | IGNCR)
            raw.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN)
            raw.c_cc.1 = 0  // VQUIT
        }
        return isRaw && write("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[H\u{1B}[2J")
    }

    /// Returns the sequence after which the terminal reports the mouse as keys, or no longer.
    static func mouseSequence(_ isReported: Bool) -> String {
        isReported ? "\u{1B}[?1000h\u{1B}[?1006h" : "\(mouseEnd)"
    }

    private static var mouseEnd: StaticString { "\u{1B}[?1006l\u{1B}[?1000l" }

    /// Restores the terminal.
    static func leave() {
        guard TerminalState.shared.restore() else { return }
        let (deferred, moreCount) = notes.withLock { notes in
            defer { notes = ([], 0) }
            return notes
        }
        for note in deferred { Console.note(note) }
        if moreCount > 0 { Console.warn("\(moreCount.counted("more message")) after these") }
    }

    /// Restores the display, by system calls alone: `TerminalState` calls it in a handler of signals, too.
    static func restoreDisplay() {
        guard !writeEnd() else { return }
        // Unread output would only delay this.
        tcflush(STDOUT_FILENO, TCOFLUSH)
        _ = writeEnd()
    }

    private static func writeEnd() -> Bool {
        write(mouseEnd) && write("\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
    }

    /// Returns the new input; `nil` if the terminal is gone.
    static func read() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count) }
        if count > 0 { return Array(buffer.prefix(count)) }
        return count < 0 && (errno == EINTR || errno == EAGAIN) ? [] : nil
    }

    /// Writes all of it; returns `false` if the terminal is gone, or takes no more for a second, or when `isWanted`
    /// returns `false`.
    static func write(_ bytes: [UInt8], while isWanted: (() -> Bool)? = nil) -> Bool {
        unsafe bytes.withUnsafeBytes { unsafe write($0.baseAddress, $0.count, while: isWanted) }
    }

    private static func write(_ text: StaticString) -> Bool {
        unsafe write(text.utf8Start, text.utf8CodeUnitCount)
    }

    /// Does the same with memory of the caller's, and takes none itself.
    private static func write(
        _ bytes: UnsafeRawPointer?, _ count: Int, while isWanted: (() -> Bool)? = nil
    ) -> Bool {
        var written = 0
        var attemptsLeft = isWanted == nil ? 10 : Int.max
        while written < count {
            var wanted = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
            let ready = unsafe poll(&wanted, 1, 100)
            if ready == 0 || (ready < 0 && errno == EINTR) {
                attemptsLeft -= 1
                guard attemptsLeft > 0, isWanted?() ?? true else { return false }
                continue
            }
            // A frame is drawn by another thread than the one that handles a signal, and its rest would be on the
            // shell's display. This thread ends with the program.
            while isWanted != nil, TerminalState.shared.isEnding { poll(nil, 0, 100) }
            // The kernel stores output for a terminal in pieces of this size: if there is room, there is room for one,
            // and the call does not wait.
            let length = min(256, count - written)
            let result = unsafe Glibc.write(STDOUT_FILENO, bytes?.advanced(by: written), length)
            if result > 0 {
                written += result
            } else if errno != EINTR, errno != EAGAIN {
                return false
            }
        }
        return true
    }

    /// Runs `body` with the signals of job control enabled on this thread, which stop the program at once if a shell
    /// can resume it, and are ignored otherwise.
    static func heedingTheShell(_ body: () -> Void) {
        var signals = sigset_t()
        var former = sigset_t()
        unsafe sigemptyset(&signals)
        for number in [SIGTSTP, SIGTTOU, SIGTTIN] { unsafe sigaddset(&signals, number) }
        // A signal that is watched has a handler, which only makes it watched.
        let handler = signal(SIGTSTP, SIG_DFL)
        unsafe pthread_sigmask(SIG_UNBLOCK, &signals, &former)
        body()
        unsafe pthread_sigmask(SIG_SETMASK, &former, nil)
        _ = signal(SIGTSTP, handler)
    }

    /// Returns the time on the clock of the scan results.
    static func now() -> BootInstant {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return BootInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
