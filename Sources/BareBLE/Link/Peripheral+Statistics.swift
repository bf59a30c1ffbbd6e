public import BLECore
internal import BLELinux
internal import Logging

extension Peripheral {
    /// The counts of the link's events so far: requests sent, values received, packets refused and lost.
    public var statistics: ATTStatistics {
        var statistics = client.statistics
        subscriptionHub.count(in: &statistics)
        peerDatabase.count(in: &statistics)
        statistics.droppedByKernel = Int(socket?.droppedPackets ?? formerDrops)
        return statistics
    }

    /// Logs what should not happen on links to this peer, not more often than the log wants to know; at the end of a link, what is left
    /// to tell, unless the peer comes and goes.
    func tellTroubles(isEnd: Bool = false) {
        let statistics = statistics
        guard let text = troubles.line(counts: statistics.forEachTrouble, isEnd: isEnd, at: loop.now()) else { return }
        logger.warning("trouble on the link", metadata: ["peer": "\(name)", "so far": "\(text)"])
    }

    /// Logs the end of a link: where its peer has left no other choice, as a warning.
    func tellEnding(_ reason: DisconnectReason) {
        switch reason {
        case .protocolViolation, .attTimeout: log.tell(.warning, "link given up", ["reason": "\(reason)"])
        case .requested, .detached, .byPeer, .supervisionTimeout, .adapterLost, .other:
            logger.debug("link ended", metadata: ["peer": "\(name)", "reason": "\(reason)"])
        }
    }
}
