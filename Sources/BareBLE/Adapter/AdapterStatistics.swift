public import BLECore
internal import BLELinux
internal import Logging

/// What an adapter's radio handed up, and what became of it, counted since the central was made.
///
/// Whatever is dropped leaves a number here.
public struct AdapterStatistics: Hashable, Sendable {
    /// Advertising reports read, those that no scan was told of included.
    public var reports = 0
    /// Packets of the controller, answers among them, that the kernel dropped because this process did not read them in time.
    public var droppedByKernel = 0
    /// Reports that events announced and did not hold as they should.
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
    /// Events of scans that were dropped because nobody took them; told in the scans too.
    public var droppedEvents = 0

    /// Scans begun again because nothing was heard for 90 s.
    public var stalls = 0
    /// How often somebody else changed a running scan.
    public var disturbances = 0
    /// Attempts to set a scan up that failed and were repeated.
    public var failedStarts = 0
    /// How often the adapter went down or away, or was reset by somebody else.
    public var losses = 0
    /// Commands that the controller did not answer.
    public var unansweredCommands = 0
    /// Faults that the controller reported.
    public var hardwareErrors = 0
    /// Packets that are no events, and events that do not fit their layout; ignored.
    public var malformedEvents = 0
    /// Events and LE subevents that are not known; ignored.
    public var unknownEvents = 0

    /// Nothing happened yet.
    public init() {}

    /// Calls `body` with each count of what should not happen, and with what it counts.
    ///
    /// Devices without a place in the table and events without a reader are not in it: a crowd is no trouble, and scans are told.
    func forEachTrouble(_ body: (_ count: Int, _ what: StaticString) -> Void) {
        body(stalls, "silent scans begun again")
        body(disturbances, "scans changed by somebody else")
        body(failedStarts, "failed attempts to scan")
        body(losses, "losses of the adapter")
        body(unansweredCommands, "commands without an answer")
        body(hardwareErrors, "hardware errors")
        body(droppedByKernel, "packets that the kernel dropped")
        body(malformedEvents, "malformed events")
        body(reportLosses.reports, "unreadable reports")
        body(evictedAdvertisements + abandonedAdvertisements + cutAdvertisements, "incomplete long advertisements")
    }
}

extension Adapter {
    /// What happened so far.
    package var statistics: AdapterStatistics {
        var statistics = counted
        statistics.droppedByKernel += kernelDrops
        statistics.evictedAdvertisements = assembler.losses.evicted
        statistics.abandonedAdvertisements = assembler.losses.abandoned
        statistics.cutAdvertisements = assembler.losses.cut
        statistics.evictedDevices = table.evictions
        statistics.refusedDevices = table.refusals
        statistics.droppedEvents = droppedEvents.count
        return statistics
    }

    /// What the kernel has dropped on the sockets that are open.
    var kernelDrops: Int { (sockets?.commands.droppedPackets ?? 0) + (sockets?.reports.droppedPackets ?? 0) }

    /// Logs what should not happen, not more often than the log wants to know.
    func tellTroubles() {
        let statistics = statistics
        guard troubleLog.isDue(counts: statistics.forEachTrouble, at: loop.now()) else { return }
        logger.warning(
            "trouble with the adapter",
            metadata: ["adapter": "\(name)", "so far": "\(TroubleLog.text(statistics.forEachTrouble))"])
    }
}

extension Central {
    /// What the adapter's radio handed up, and what became of it, counted since the central was made.
    public var statistics: AdapterStatistics {
        get async { await adapter.statistics }
    }
}
