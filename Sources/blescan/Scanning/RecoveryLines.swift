import ArgumentParser
import BLECore
import BareBLE

/// The limit of what a scan may do when its adapter has stopped reporting.
enum RecoveryChoice: String, ExpressibleByArgument, CaseIterable, Sendable {
    /// Nothing: silence is reported alone.
    case nothing = "none"
    /// The scan is begun again, and the events are switched on again.
    case rescan
    /// The adapter is also switched off and on.
    case power
    /// The device is also set up again.
    case usb

    /// What the library may do.
    var policy: RecoveryPolicy {
        switch self {
        case .nothing: .none
        case .rescan: .rescan
        case .power: .power
        case .usb: .usb
        }
    }

    /// Whether a step may switch the adapter off, or take it away: the scan then waits for its return.
    var endsLinks: Bool {
        switch self {
        case .nothing, .rescan: false
        case .power, .usb: true
        }
    }
}

extension RecoveryEvent {
    /// Returns the line for users, without the name of the program.
    func line(_ adapter: String) -> String {
        switch self {
        case .began(let step, let reason): "\(adapter): recovery step \(step) begins, because \(reason.words)"
        case .failed(let step, let error):
            "\(adapter): recovery step \(step) was not taken: \(error.reason)"
                + (error.code == .notPermitted ? "; see bareble-recover(8), the helper that may" : "")
        case .recovered(let step?, let time):
            "\(adapter) works again after recovery step \(step), \(time.components.seconds) s after the trouble was noticed"
        case .recovered(nil, let time):
            "\(adapter) works again by itself, \(time.components.seconds) s after the trouble was noticed"
        case .exhausted(.scanRefusedWhileAdvertising(let time), _):
            "\(adapter) cannot scan while it advertises: the controller has refused that for "
                + "\(time.components.seconds) s; end the advertisements, or use another adapter"
        case .exhausted(let reason, let next):
            "\(adapter): no permitted recovery step has helped: \(reason.words); "
                + (next.map { "the next run begins in \($0.components.seconds) s" }
                    ?? "permit more by --recover, or unplug the adapter and plug it in again")
        case .dropped(let count): "\(adapter): \(count.counted("event")) of recovery dropped"
        }
    }

    /// Whether it is about beginning the scan again, which the notice of the silence reports too.
    var isRescan: Bool {
        if case .began(.rescan, _) = self { true } else { false }
    }

    /// The name of the object about it.
    fileprivate var objectName: String {
        switch self {
        case .began: "recoveryBegan"
        case .failed: "recoveryFailed"
        case .recovered: "recovered"
        case .exhausted: "recoveryExhausted"
        case .dropped: "recoveryDropped"
        }
    }

    /// The members of the object, without the origin.
    fileprivate var members: [JSONLine.Member] {
        switch self {
        case .began(let step, let reason):
            return [JSONLine.Member(key: "step", value: .string(step.name))] + reason.members
        case .failed(let step, let error):
            return [
                JSONLine.Member(key: "step", value: .string(step.name)),
                JSONLine.Member(key: "error", value: .string(error.reason)),
                JSONLine.Member(key: "code", value: .string(error.code.description)),
            ]
        case .recovered(let step, let time):
            let name: JSONLine = if let step { .string(step.name) } else { .null }
            return [JSONLine.Member(key: "step", value: name), JSONLine.Member(seconds: time, "seconds")]
        case .exhausted(let reason, let next):
            let pause = next.map { JSONLine.Member(seconds: $0, "nextSeconds") }
            return reason.members + [pause ?? JSONLine.Member(key: "nextSeconds", value: .null)]
        case .dropped(let count):
            return [JSONLine.Member(key: "count", value: .integer(count))]
        }
    }
}

extension JSONLine.Member {
    /// Creates a member whose value is a time in whole seconds.
    fileprivate init(seconds time: Duration, _ key: String) {
        self.init(key: key, value: .integer(Int(time.components.seconds)))
    }
}

extension RecoveryPolicy.Reason {
    /// The reason as part of a sentence. It names no device, as the lines of `--redact` do not.
    fileprivate var words: String {
        switch self {
        case .silence(let time): "nothing was heard for \(time.components.seconds) s"
        case .commandTimeouts(let count): "\(count.counted("command")) had no response"
        case .suspectedLink: "the controller has a link that nobody holds"
        case .scanRefused(let time): "the controller has refused to scan for \(time.components.seconds) s"
        case .scanRefusedWhileAdvertising(let time):
            "the controller has refused to scan for \(time.components.seconds) s while it advertised"
        }
    }

    fileprivate var members: [JSONLine.Member] {
        let name: String
        let detail: JSONLine.Member?
        switch self {
        case .silence(let time): (name, detail) = ("silence", JSONLine.Member(seconds: time, "silenceSeconds"))
        case .commandTimeouts(let count):
            (name, detail) = ("commandTimeouts", JSONLine.Member(key: "commands", value: .integer(count)))
        case .suspectedLink: (name, detail) = ("suspectedLink", nil)
        case .scanRefused(let time): (name, detail) = ("scanRefused", JSONLine.Member(seconds: time, "refusedSeconds"))
        case .scanRefusedWhileAdvertising(let time):
            (name, detail) = ("scanRefusedWhileAdvertising", JSONLine.Member(seconds: time, "refusedSeconds"))
        }
        let because = JSONLine.Member(key: "because", value: .string(name))
        return [because] + (detail.map { [$0] } ?? [])
    }
}

extension JSONLine {
    /// Creates the object about an event of recovery.
    init(_ event: RecoveryEvent, origin: ScanLines.Origin) {
        self = .object(Self.members(of: origin, event: event.objectName) + event.members)
    }
}
