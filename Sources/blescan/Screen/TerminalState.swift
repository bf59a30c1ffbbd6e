// What this program has changed of its terminal: the settings, which a screen and the prompt of `talk` change, and the
// display of a screen. It is restored in one way, whatever ends the use of the terminal:
//
// - The screen and the prompt restore it at their end, on ^Z, and at `exit`.
// - Each signal in `endings` is handled here: it restores the terminal, and then ends the program as it ends any other.
//   SIGQUIT is sent to a program that hangs, so this needs no other part of it.
//
// A handler can neither take a lock nor allocate memory: the thread that it interrupts may be doing that. It makes
// system calls alone, and reads what was stored before the terminal was changed. Nothing is restored after SIGKILL, a
// trap, and the rare signals that nothing handles, such as SIGPROF.

import BLELinux
import Glibc
import Synchronization

/// The terminal as it was, while this program has changed it.
// Unchecked and safe: the pointer is constant, and its memory stays. It is written with the lock held and `isChanged`
// false: then no handler reads it.
@safe final class TerminalState: @unchecked Sendable {
    /// That of standard input and output.
    static let shared = TerminalState()

    /// The signals that end a program by default, and that come from users and from the limits of a shell.
    private static let endings = [SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU]

    /// The former settings.
    private let settings = UnsafeMutablePointer<termios>.allocate(capacity: 1)
    /// Whether the settings are changed.
    private let isChanged = Atomic(false)
    /// Whether a screen covers the display.
    private let isCovered = Atomic(false)
    /// Whether a signal is ending the program.
    private let hasEndingSignal = Atomic(false)
    /// Whether signals are handled. It is held while the settings change.
    private let handlesSignals = Lock(false)

    private init() {}

    /// Whether a screen is on the display.
    var hasScreen: Bool { isCovered.load(ordering: .acquiring) }

    /// Whether a signal is ending the program, and restores the terminal: nothing may be drawn any more.
    var isEnding: Bool { hasEndingSignal.load(ordering: .acquiring) }

    /// Changes the settings; returns `false` if that fails.
    ///
    /// - Parameters:
    ///   - isForScreen: Whether a screen follows, which has to go with the changes.
    ///   - change: Changes the settings as they were before the first change.
    func change(isForScreen: Bool = false, _ change: (inout termios) -> Void) -> Bool {
        handlesSignals.withLock { handlesSignals in
            if !handlesSignals { Self.handleSignals() }
            handlesSignals = true
            var changed = termios()
            if isChanged.load(ordering: .acquiring) {
                changed = unsafe settings.pointee
            } else {
                guard unsafe tcgetattr(STDIN_FILENO, &changed) == 0 else { return false }
                unsafe settings.initialize(to: changed)
                isChanged.store(true, ordering: .releasing)
            }
            if isForScreen { isCovered.store(true, ordering: .releasing) }
            change(&changed)
            return unsafe tcsetattr(STDIN_FILENO, TCSANOW, &changed) == 0
        }
    }

    /// Restores the terminal; returns `false` if it is unchanged, or another call restores it.
    @discardableResult
    func restore() -> Bool {
        let isMine = handlesSignals.withLock { _ in
            guard isChanged.load(ordering: .acquiring) else { return false }
            restoreSettings()
            isChanged.store(false, ordering: .releasing)
            return true
        }
        guard isMine else { return false }
        // Without the lock: a terminal may take nothing for any time.
        if hasScreen { Terminal.restoreDisplay() }
        isCovered.store(false, ordering: .releasing)
        return true
    }

    private func restoreSettings() {
        _ = unsafe tcsetattr(STDIN_FILENO, TCSANOW, settings)
    }

    // MARK: Signals

    private static func handleSignals() {
        for number in endings where !EndSignals.isIgnored(number) {
            signal(number) { number in TerminalState.shared.end(by: number) }
        }
    }

    /// Restores the terminal, and ends the program by the signal that is handled.
    private func end(by number: Int32) {
        hasEndingSignal.store(true, ordering: .releasing)
        // In the background the terminal is another program's. Without job control there is no other one.
        let front = tcgetpgrp(STDIN_FILENO)
        if front < 0 || front == getpgrp() {
            if isChanged.load(ordering: .acquiring) { restoreSettings() }
            if hasScreen { Terminal.restoreDisplay() }
        }
        signal(number, SIG_DFL)
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, number)
        unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(number)
    }
}
