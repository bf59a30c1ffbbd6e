public import BLECore
internal import BLELinux
internal import Logging

extension Peripheral {
    /// What happened on the link so far, counted: requests sent, values received, packets refused and lost.
    public var statistics: ATTStatistics {
        var statistics = client.statistics
        statistics.unwantedValues = unwantedValues
        statistics.droppedValues = droppedValues.count
        statistics.droppedByKernel = Int(socket?.droppedPackets ?? formerDrops)
        return statistics
    }

    /// Logs what should not happen, not more often than the log wants to know; at the end of the link, what is left to tell.
    func tellTroubles(isEnd: Bool = false) {
        let statistics = statistics
        let isDue = troubleLog.isDue(counts: statistics.forEachTrouble, at: loop.now())
        guard isDue || isEnd && troubleLog.hasRest(counts: statistics.forEachTrouble) else { return }
        logger.warning(
            "trouble on the link",
            metadata: ["peer": "\(name)", "so far": "\(TroubleLog.text(statistics.forEachTrouble))"])
    }
}
