public import BLECore
internal import BLELinux
internal import Logging

// Connects `ATTLink` with the tasks and the other owners of the peripheral.

extension Peripheral {
    /// Begins to read the socket.
    func startReading() throws(BLEError) {
        let failure = link.startReading(id: id) { [weak self] signal in
            guard let self else { return }
            // Closures that capture nothing take no memory.
            switch signal {
            case .readable: assumeIsolated { $0.link.readable($0.happened) }
            case .writable: assumeIsolated { $0.link.writable($0.happened) }
            case .timePassed: assumeIsolated { $0.link.timePassed($0.happened) }
            }
        }
        controls?.watchLoss { [weak self] status in
            self?.assumeIsolated { $0.controllerHasLost(status) }
        }
        if let failure {
            throw BLEError(
                .system, subject: name, during: "watch the link", because: "\(failure.call) failed",
                hint: failure.adapterRemedy, errorNumber: failure.errno)
        }
    }

    /// Has the controller's reports read before packets of the link, from now on: neither the end of the encryption nor
    /// its beginning must be overtaken by what comes after it. A link that is neither served nor encrypted needs none.
    func readEventsBeforePackets() {
        guard controls != nil else { return }
        link.onReading { [weak self] in
            self?.assumeIsolated { $0.readEvents() }
        }
    }

    private func readEvents() {
        controls?.readEvents()
        serverSecurityMayHaveChanged()
    }

    /// Passes an event of the link to the other owners.
    func happened(_ event: ATTLink.Event) {
        switch event {
        case .value(let handle, let value, let isIndication): deliver(value, from: handle, isIndication: isIndication)
        case .written(let operation):
            if let collector = subscriptionHub.collector(for: operation) {
                subscriptionHub.requestWritten(for: collector)
            }
        case .read: logWarnings()
        case .ended(let errno): linkEnded(errno)
        case .unusable(let reason): close(reason)
        }
    }

    /// The controller has dropped this link: it was reset, or reports that it has no such link.
    private func controllerHasLost(_ status: HCIStatus?) {
        // Earlier packets can still be read; so may the end, with its reason.
        link.readLast(happened)
        if !link.isEnding { close(status.map { .other($0, errorNumber: nil) } ?? .adapterLost) }
    }

    private func linkEnded(_ errno: Int32) {
        guard let controls else { return close(DisconnectReason(errno: errno, status: nil), code: errno) }
        link.stopWatching()
        Task(executorPreference: loop) {
            let status = await controls.lastReason()
            await self.close(DisconnectReason(errno: errno, status: status), code: errno)
        }
    }

    // MARK: The end

    /// The error of a call that finds the link ended, or was pending when it ended.
    ///
    /// - Parameter isReplaced: Whether a session replaces the link, so that the hint does not ask for that.
    func endError(during operation: String, isReplaced: Bool = false) -> BLEError {
        let reason = end ?? .other(nil, errorNumber: nil)
        let silence = reason == .attTimeout ? silenceHint : nil
        var hint = silence ?? (isReplaced ? reason.hintInSession : reason.hint)
        if reason == .supervisionTimeout, let supervision = controls?.supervisionHint {
            hint = hint.map { "\($0) \(supervision)" } ?? supervision
        }
        return BLEError(
            .disconnected, subject: name, during: operation, because: "\(reason)", hint: hint,
            hciStatus: reason.hciStatus, errorNumber: reason.errorNumber, origin: reason.origin)
    }

    /// What may be the case where nothing at all has come from the peer of a link by an adapter; `nil` for any other.
    var silenceHint: String? {
        guard let controls, !link.hasReceived else { return nil }
        return "Nothing has come from the device on this link. \(controls.silenceHint())"
    }

    /// What the peer of this link has sent that is no response, as a hint where the expected one does not come; `nil`
    /// if there was nothing of the kind. Values, and the requests of a peer that is a client too, are regular.
    var strayHint: String? {
        let statistics = link.statistics
        let count = statistics.peerCommandsIgnored &+ statistics.unexplainedResponses &+ statistics.emptyPackets
        guard count > 0 else { return nil }
        let packets = count == 1 ? "1 packet that is no response" : "\(count) packets that are no responses"
        return "On this link the peer has sent \(packets): it may not be an ATT server; `--trace` shows what it sends."
    }

    /// Returns the error for an operation that has failed, and not by the end of the link.
    func error(_ failure: OperationFailure, during operation: String) -> BLEError {
        let error = BLEError(failure, subject: name, during: operation)
        guard case .timedOut = failure, let hint = error.hint, let strayHint else { return error }
        return error.hinting("\(hint) \(strayHint)")
    }

    /// Ends the link: pending calls fail, then the subscriptions and channels end, then the tasks that wait for the end
    /// resume.
    ///
    /// The tasks of each step that run on the loop are resumed before those of the next step, however many jobs that
    /// takes.
    func close(_ cause: DisconnectReason, code: Int32 = 0) {
        guard let (reason, handlers) = ending.end(cause) else { return }
        for handler in handlers { handler(reason) }
        link.traceEnd(reason)
        logEnd(reason)
        logWarnings(isEnd: true)
        link.close(code, happened)
        interruptCollectors()
        rememberBonded(reason)
        scheduler.linkLost()
        peerDatabase.linkLost()
        let ended = reason.isIntended ? nil : endError(during: "continue a subscription")
        let streams = subscriptionHub.linkLost()
        loop.afterJobs { [self] in
            assumeIsolated { peripheral in
                for stream in streams { stream.finish(ended) }
                peripheral.peerDatabase.endObservers(ended)
                peripheral.endChannels(reason)
                peripheral.loop.afterJobs { peripheral.assumeIsolated { $0.ending.resumeWaiters() } }
            }
        }
    }

    // MARK: Statistics

    /// The counters of this link so far: requests sent, values received, packets refused and dropped.
    public var statistics: ATTStatistics {
        var statistics = link.statistics
        subscriptionHub.count(in: &statistics)
        peerDatabase.count(in: &statistics)
        return statistics
    }

    /// Logs problems of links to this peer, within the rate limit of the log. At the end of a link the rest is logged,
    /// unless the peer connects and disconnects repeatedly.
    private func logWarnings(isEnd: Bool = false) {
        let statistics = statistics
        // Called after each packet that was read; on most links there is never anything to log.
        guard isEnd || statistics.hasProblems else { return }
        guard let text = warnings.line(counts: statistics.forEachProblem, isEnd: isEnd, at: loop.now()) else { return }
        logger.warning("problems on the link", metadata: ["peer": "\(name)", "so far": "\(text)"])
    }

    /// Logs the end of a link, as a warning if the peer has caused it.
    private func logEnd(_ reason: DisconnectReason) {
        switch reason {
        case .protocolViolation, .attTimeout: log.report(.warning, "link closed", ["reason": "\(reason)"])
        case .requested, .detached, .byPeer, .supervisionTimeout, .adapterLost, .other:
            logger.debug("link ended", metadata: ["peer": "\(name)", "reason": "\(reason)"])
        }
    }

    /// The number of closures that are called when this link ends; tests check that they do not accumulate.
    package var endHandlerCount: Int { ending.handlerCount }

    /// The number of calls, tasks and subscriptions that wait for this link; tests check what is left after its end.
    package var outstanding: Int {
        link.operationCount + scheduler.outstanding + ending.waiterCount + peerDatabase.outstanding
            + subscriptionHub.outstanding + channels.count
    }
}
