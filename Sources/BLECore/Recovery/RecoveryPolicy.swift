extension RecoveryPolicy {
    /// A step that may make an adapter receive again, in the order in which the steps are taken. Each takes more away
    /// from others than the one before.
    public enum Step: Int, CaseIterable, Comparable, Hashable, Sendable {
        /// The scan is ended, set up and begun again. The air is not heard for some milliseconds.
        case rescan
        /// The events that the controller reports are switched on again, then as `rescan`.
        case eventMasks
        /// The adapter is switched off and on: all links of all programs end.
        case power
        /// The radio is blocked and unblocked by the kernel's switch (rfkill): as `power`.
        case radioSwitch
        /// The USB port is reset: the adapter goes away and comes back, and its driver loads the firmware again.
        case usbPort
        /// The driver is unbound from the device and bound again: as `usbPort`, also for an adapter on a UART.
        case driver

        /// The step's name, which is stable: `rescan`, `event-masks`, `power`, `radio-switch`, `usb-port` or `driver`.
        public var name: String {
            switch self {
            case .rescan: "rescan"
            case .eventMasks: "event-masks"
            case .power: "power"
            case .radioSwitch: "radio-switch"
            case .usbPort: "usb-port"
            case .driver: "driver"
            }
        }

        /// Returns the step with a name; `nil` if there is none.
        public init?(name: String) {
            guard let step = Self.allCases.first(where: { $0.name == name }) else { return nil }
            self = step
        }

        /// A Boolean value that indicates whether all links of the adapter end with this step.
        public var endsLinks: Bool { self >= .power }

        /// Returns a Boolean value that indicates whether the first step is taken before the second one.
        public static func < (first: Step, second: Step) -> Bool { first.rawValue < second.rawValue }
    }
}

extension RecoveryPolicy.Step: CustomStringConvertible {
    /// The step's name.
    public var description: String { name }
}

extension RecoveryPolicy {
    /// The reason for which steps of recovery are taken.
    public enum Reason: Hashable, Sendable {
        /// No report with data has come for so long, while the scan ran.
        case silence(Duration)
        /// So many commands had no response within half a minute.
        case commandTimeouts(Int)
        /// The controller has a link to the peer that neither the kernel nor any program has: the peer is silent until
        /// it ends that link itself, or the adapter is switched off.
        case suspectedLink(PeerID)
        /// The controller has refused each attempt to begin a scan for so long, and no link is up that would explain
        /// it.
        case scanRefused(Duration)
        /// The controller has refused each attempt to begin a scan for so long, and has advertised all the time: it may
        /// not be able to do both. No step is taken for that; a scan is tried again as soon as this program advertises
        /// no more.
        case scanRefusedWhileAdvertising(Duration)
    }
}

/// The reason that a step of recovery was not taken, or did not succeed.
package enum RecoveryFailure: Error, Hashable, Sendable {
    /// This process may not take it, and no helper program does it for it: with the system's message.
    case notPermitted(String)
    /// So many links of other programs are up.
    case linksOfOthers(Int)
    /// So many links of this program are up, which are worth more than the one that is to be ended.
    case linksInUse(Int)
    /// The kernel's switch (rfkill) blocks the radio.
    case blocked
    /// The adapter has no part that the step is for, such as a USB port.
    case notApplicable
    /// The adapter did not come back in time.
    case adapterGone
    /// Another program takes a step for this adapter.
    case underWay
    /// It was tried too often: with the helper's reason.
    case refused(String)
    /// The helper program has taken no request, has ended without a response, or cannot note the step: nothing was
    /// done, as far as is known.
    case unavailable(String)
    /// The helper program has not responded in time: whether the step is taken is not known.
    case noResponse(String)
    /// The system has refused it: with its message.
    case failed(String)

    /// A Boolean value that indicates whether the step was not taken, for the sake of links or of other programs, or
    /// for want of a helper program that takes the request.
    package var wasRefused: Bool {
        switch self {
        case .linksOfOthers, .linksInUse, .underWay, .refused, .unavailable: true
        case .notPermitted, .blocked, .notApplicable, .adapterGone, .noResponse, .failed: false
        }
    }
}

/// The steps that are permitted so that an adapter receives again.
///
/// The steps up to the permitted one are taken one after the other, each only after the one before had no effect. A run
/// of steps that end links is followed by a pause of 1, 5 and then 30 minutes, and there are four in an hour at most.
/// With `Configuration.stateStore` that holds over restarts of the program.
public struct RecoveryPolicy: Hashable, Sendable {
    /// The limit of the steps that recovery may take.
    public enum Limit: Int, Comparable, Hashable, Sendable {
        /// Nothing is done: silence is reported alone.
        case none
        /// Steps that end no link: `RecoveryPolicy.Step.rescan` and `.eventMasks`.
        case rescan
        /// The adapter is also switched off and on: `.power` and `.radioSwitch`.
        case power
        /// The device is also set up again: `.usbPort` and `.driver`.
        case usb

        /// Returns a Boolean value that indicates whether the second one permits more.
        public static func < (first: Limit, second: Limit) -> Bool { first.rawValue < second.rawValue }
    }

    /// The limit of the steps that recovery may take.
    public var limit: Limit
    /// A Boolean value that indicates whether links of other programs may be ended too.
    /// It has an effect with the limit `usb`.
    public var endsLinksOfOthers: Bool
    /// The socket of the helper program `bareble-recover`, which takes the steps for which this process has no right;
    /// `nil` for none.
    public var helper: String?

    /// Creates a policy.
    public init(
        _ limit: Limit, endsLinksOfOthers: Bool = false, helper: String? = "/run/bareble/recover.socket"
    ) {
        self.limit = limit
        self.endsLinksOfOthers = endsLinksOfOthers
        self.helper = helper
    }

    /// Nothing is done.
    public static let none = RecoveryPolicy(.none)
    /// The scan is begun again, and the events are switched on again. The default.
    public static let rescan = RecoveryPolicy(.rescan)
    /// The adapter is also switched off and on.
    public static let power = RecoveryPolicy(.power)
    /// The device is also set up again.
    public static let usb = RecoveryPolicy(.usb)

    /// Returns a Boolean value that indicates whether a step may be taken at all.
    package func permits(_ step: Step) -> Bool {
        switch step {
        case .rescan, .eventMasks: limit >= .rescan
        case .power, .radioSwitch: limit >= .power
        case .usbPort, .driver: limit >= .usb
        }
    }
}
