public import BLECore
internal import BLELinux
internal import Logging

/// Counts of what an adapter's radio reported, and of what became of it, since the central was made.
///
/// Whatever is dropped is counted here.
public struct AdapterStatistics: Hashable, Sendable {
    /// Advertising reports read, including those that no scan received.
    public var reports = 0
    /// Packets of the controller, responses among them, that the kernel dropped because this process did not read them
    /// in time.
    public var droppedByKernel = 0
    /// Reports that events announced and that were missing or malformed in them.
    public var reportLosses = AdvertisingReport.Losses()
    /// Long advertisements given up because too many arrived at once.
    public var evictedAdvertisements = 0
    /// Long advertisements given up because their end never came.
    public var abandonedAdvertisements = 0
    /// Advertisements cut at 1,650 bytes.
    public var cutAdvertisements = 0
    /// Devices forgotten because the table was full.
    public var evictedDevices = 0
    /// Reports of newcomers that were dropped because every device in the table is pinned.
    public var refusedDevices = 0
    /// Private addresses that were resolved to the identity of a bonded device.
    public var resolvedAddresses = 0
    /// Private addresses that belong to no device, because the keys of several bonds fit: devices that share a key
    /// cannot be distinguished.
    public var ambiguousAddresses = 0
    /// Packets that were discarded because they arrived on a link to a bonded peer before it was encrypted.
    public var discardedPackets = 0
    /// Pairings that were refused because no task of this program had begun them.
    public var refusedPairings = 0
    /// Signed writes of bonded centrals that were dropped: without the right signature, or because the counter could
    /// not be stored. One with a counter that its link knows as used is dropped before its signature is verified, and
    /// not counted.
    public var refusedSignatures = 0
    /// Security Requests of peers without a bond, which the kernel has refused.
    public var securityRequests = 0
    /// The number of times that the kernel did not take the keys of the bonds.
    public var failedKeyLoads = 0
    /// Commands of the management interface to which the kernel did not respond in time.
    public var managementTimeouts = 0
    /// Packets of the management interface that are no events, or do not fit their layout; ignored.
    public var malformedManagementEvents = 0
    /// Events of scans that were dropped because no task took them; reported in the scans too.
    public var droppedEvents = 0

    /// The number of times that a scan heard nothing for 90 s, or for 30 s where much was heard before; it is re-armed
    /// each time, unless `Configuration.recovery` is `none`.
    public var stalls = 0
    /// Steps of recovery beyond `RecoveryPolicy.Step.rescan` that were begun.
    public var recoverySteps = 0
    /// The number of times that another program changed a running scan.
    public var disturbances = 0
    /// The number of times that another program switched off events of the controller that are needed; they were
    /// switched on again.
    public var maskedEvents = 0
    /// Attempts to arm a scan that failed and were retried.
    public var failedStarts = 0
    /// Those of `failedStarts` that the controller refused as disallowed while it advertised, for this program or, as
    /// far as that is known, for another one. A controller that has begun a scan while it advertised can do both: its
    /// refusals are not counted here.
    public var scansRefusedWhileAdvertising = 0
    /// The number of times that the adapter went down or away, or was reset by another program.
    public var losses = 0
    /// Commands to which the controller did not respond.
    public var commandTimeouts = 0
    /// Connection attempts after which a link may have been up that neither the kernel nor a program holds: the
    /// controller has not reported their end, or reports a link that nobody knows. The device is silent then,
    /// and such a link ends with its supervision timeout or when the adapter is switched off, which
    /// `Configuration.recovery` can permit.
    public var suspectedLinks = 0
    /// Links that have ended without a report of the controller that this program could read. That is noticed by the
    /// response to a command for the link, after which the kernel is made to drop it, or after the end of its socket.
    public var unreportedEnds = 0
    /// Packets that came ahead of the event that reports their link. The kernel drops them: a request of the peer among
    /// them gets no response, so that such a link is made again, once. Looked at while this program has no other link.
    public var packetsAheadOfLinks = 0
    /// Faults that the controller reported.
    public var hardwareErrors = 0
    /// Packets that are no events, and events that do not fit their layout; ignored.
    public var malformedEvents = 0
    /// Events and LE subevents that are not known; ignored.
    public var unknownEvents = 0

    /// Creates counts of zero.
    public init() {}

    /// The former name of `commandTimeouts`.
    @available(*, deprecated, renamed: "commandTimeouts")
    public var unansweredCommands: Int {
        get { commandTimeouts }
        set { commandTimeouts = newValue }
    }

    /// Calls `body` with each count of what should not happen, and with what it counts.
    ///
    /// Devices without a place in the table and events without a reader are not in it: many devices are no fault, and
    /// scans report both.
    func forEachProblem(_ body: (_ count: Int, _ what: StaticString) -> Void) {
        body(stalls, "silent scans re-armed")
        body(recoverySteps, "steps of recovery")
        body(disturbances, "scans changed by another program")
        body(maskedEvents, "events switched off by another program")
        body(failedStarts, "failed attempts to scan")
        body(losses, "losses of the adapter")
        body(commandTimeouts, "commands without a response")
        body(suspectedLinks, "links that may be up and that nobody holds")
        body(unreportedEnds, "links that have ended without a report")
        body(packetsAheadOfLinks, "packets ahead of their links")
        body(hardwareErrors, "hardware errors")
        body(droppedByKernel, "packets that the kernel dropped")
        body(malformedEvents, "malformed events")
        body(reportLosses.reports, "unreadable reports")
        body(discardedPackets, "packets discarded before encryption")
        body(refusedPairings, "refused pairings")
        body(refusedSignatures, "signed writes without the right signature")
        body(failedKeyLoads, "failed loads of keys")
        body(managementTimeouts, "management commands without a response")
        body(malformedManagementEvents, "malformed management events")
        body(ambiguousAddresses, "private addresses that fit several bonds")
        body(evictedAdvertisements + abandonedAdvertisements + cutAdvertisements, "incomplete long advertisements")
    }
}

/// The log of an adapter: its problems, at most once a minute, and once that it never heard anything.
struct AdapterLog {
    let logger: Logger
    private var throttle = WarningThrottle()
    private var hasReportedSilence = false
    private static let causesOfSilence = """
        no device advertises near it; the kernel masks its reports; firmware was not loaded; \
        the antenna is missing or shielded
        """

    init(_ logger: Logger) {
        self.logger = logger
    }

    /// Logs the counts of what should not happen, if there is more than was logged and a line is due.
    mutating func report(_ counts: WarningThrottle.Counts, of adapter: String, at now: BootInstant) {
        guard throttle.isDue(counts: counts, at: now) else { return }
        let text = WarningThrottle.text(counts)
        logger.warning("problems with the adapter", metadata: ["adapter": "\(adapter)", "so far": "\(text)"])
    }

    /// Logs that scans have heard nothing from the beginning, with what is known to cause that.
    mutating func reportSilence(of adapter: String) {
        guard !hasReportedSilence else { return }
        hasReportedSilence = true
        logger.warning(
            "nothing was ever heard by this adapter, although the controller accepts each command",
            metadata: [
                "adapter": "\(adapter)",
                "possible causes": "\(Self.causesOfSilence)",
                "remedy": "`sudo blescan doctor` names the cause it finds, `sudo blescan selftest` tries the adapter",
            ])
    }
}

extension Adapter {
    /// The counts so far.
    package var statistics: AdapterStatistics {
        var statistics = AdapterStatistics()
        hci.count(in: &statistics)
        scan.count(in: &statistics)
        security.count(in: &statistics)
        statistics.recoverySteps = recovery.stepCount
        statistics.losses = monitor.losses
        statistics.suspectedLinks = initiator.suspectedLinks
        statistics.unreportedEnds = links.unreportedEnds
        statistics.packetsAheadOfLinks = links.packetsAhead
        statistics.maskedEvents = identification.maskRepeatCount
        return statistics
    }

    /// Logs what should not happen, at most once a minute.
    func logWarnings() {
        let statistics = statistics
        monitor.reportProblems(statistics.forEachProblem, at: loop.now())
    }
}

extension Central {
    /// The counts of the adapter's events since the central was created.
    public var statistics: AdapterStatistics {
        get async { await adapter.statistics }
    }
}
