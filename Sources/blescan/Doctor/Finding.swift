/// One line of the diagnosis: a check's finding and its remedy.
struct Finding: Hashable, Sendable {
    /// The severity of a finding.
    enum Level: String, Hashable, Sendable {
        case ok
        /// It works, with a restriction.
        case warn
        /// Something cannot work.
        case fail
        /// It could not be checked.
        case skip
    }

    let level: Level
    /// The stable identifier, one word with dashes, for scripts.
    let id: String
    /// The affected adapter, such as `hci0`.
    var adapter: String?
    /// The evidence.
    let text: String
    /// The remedy, a command where there is one. Every failure and warning has one.
    var remedy: String?
    /// The repair of `--fix` for it.
    var fix: Fix?
    /// The exit status for a failure.
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

/// The repairs that `blescan doctor` makes on request, in this order.
enum Fix: String, CaseIterable, Hashable, Sendable {
    /// Removes the software block of the radio.
    case rfkill
    /// Switches adapters on.
    case up
    /// Switches Low Energy on.
    case le
    /// Ends a scan that its program has left running.
    case staleScan = "stale-scan"
    /// Switches adapters off and on.
    case cycle
}
