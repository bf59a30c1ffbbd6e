/// One line of the diagnosis: what a check has seen, and what helps.
struct Finding: Hashable, Sendable {
    /// How bad it is.
    enum Level: String, Hashable, Sendable {
        case ok
        /// Works, but may be in the way.
        case warn
        /// Something cannot work.
        case fail
        /// Could not be looked at.
        case skip
    }

    let level: Level
    /// What it is in one word with dashes; scripts may rely on it.
    let id: String
    /// The adapter that it is about, such as `hci0`.
    var adapter: String?
    /// The evidence.
    let text: String
    /// What to do, a command where there is one. Every failure and warning has it.
    var remedy: String?
    /// What `--fix` would do about it.
    var fix: Fix?
    /// What a failure ends the program with.
    var status = ExitStatus.noAdapter

    static func ok(_ id: String, _ text: String, adapter: String? = nil) -> Finding {
        Finding(level: .ok, id: id, adapter: adapter, text: text)
    }

    static func skip(_ id: String, _ text: String, adapter: String? = nil) -> Finding {
        Finding(level: .skip, id: id, adapter: adapter, text: text)
    }

    static func warn(
        _ id: String, _ text: String, adapter: String? = nil, remedy: String, fix: Fix? = nil
    ) -> Finding {
        Finding(level: .warn, id: id, adapter: adapter, text: text, remedy: remedy, fix: fix)
    }

    static func fail(
        _ id: String, _ text: String, adapter: String? = nil, remedy: String, fix: Fix? = nil,
        status: ExitStatus = .noAdapter
    ) -> Finding {
        Finding(
            level: .fail, id: id, adapter: adapter, text: text, remedy: remedy, fix: fix, status: status)
    }
}

/// What `blescan doctor` may change when it is told to, in the order in which that is done.
enum Fix: String, CaseIterable, Hashable, Sendable {
    /// Lifts the software's block of the radio.
    case rfkill
    /// Switches adapters on.
    case up
    /// Switches the Low Energy side of adapters on.
    case le
    /// Ends a scan that its program has left behind.
    case staleScan = "stale-scan"
}
