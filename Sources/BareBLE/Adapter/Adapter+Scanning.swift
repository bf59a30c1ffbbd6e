package import BLECore
internal import BLELinux

extension Adapter {
    /// Begins a scan, beside those that run already.
    ///
    /// `receive` is called on the event loop, for each device that passes the settings' filter and rule for
    /// repetitions, from before this call returns until `unsubscribe`; it must return quickly.
    ///
    /// - Parameters:
    ///   - lostAfter: After how much time of listening a silent device is reported as lost; `nil` for never.
    ///   - excluded: The peers that are left out, at any moment.
    ///   - pinned: The peers that keep a place in the table; call `updatePins` when it changes.
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_RAW, `.busy` when another program holds the scanner,
    ///   and the codes of `prepare`, also where the adapter goes while the scan is being armed. Later trouble does not
    ///   end the scan: it is reported as a notice.
    package func subscribe(
        _ settings: ScanSettings, lostAfter: Duration? = nil, excluded: ExcludedPeers? = nil,
        pinned: @escaping @Sendable () -> Set<PeerID> = { [] },
        _ receive: @escaping @Sendable (ScanDelivery) -> Void
    ) async throws(BLEError) -> ScanID {
        try await prepare(during: "scan")
        guard mayCommand else { throw notPermittedError(during: "scan") }
        let id = scan.add(at: loop.now()) { id in
            ScanSubscription(
                id: id, gate: ScanGate(settings), lostAfter: lostAfter, excluded: excluded, pinned: pinned,
                receive: receive)
        }
        scansChanged()
        let (wake, _) = await suspend { number in
            // It may have gone since: no scan would begin before it is back.
            if presence == .up {
                perform(scan.begin(id, number, at: loop.now()))
            } else {
                self.wake(number, .failed(downError(during: "scan")))
            }
        }
        scan.endBegin(id)
        switch wake {
        case .resumed: return id
        case .failed(let error):
            await unsubscribe(id)
            throw error
        case .finished, .managed, .listsLoaded, .encryption, .encrypted, .keyMissing, .paired, .timedOut,
            .cancelled:
            await unsubscribe(id)
            throw cancelledError(during: "scan")
        }
    }

    /// Ends a scan; with the last one, waits until the radio no longer scans.
    package func unsubscribe(_ id: ScanID) async {
        guard scan.remove(id, at: loop.now()) else { return }
        scansChanged()
        if scan.hasScans { perform(scan.applyPlan(at: loop.now())) } else { await stopScanning() }
    }

    /// Ends every scan, and waits until the radio no longer scans: the loop may not be driven much longer.
    package func unsubscribeAll() async {
        scan.removeAll(at: loop.now())
        scansChanged()
        await stopScanning()
    }

    private func scansChanged() {
        if !scan.hasScans {
            // Not after each scan: where it has failed, it is tried again after a pause.
            if recovery.scanEnded() { restorePower() }
        }
        updatePins()
        watchPresence()
        if scan.hasScans { armTimer() } else { resetTimer() }
    }

    private func stopScanning() async {
        perform(scan.stop(at: loop.now()))
        // In a task of its own, because a cancelled one does not wait: while the scan is being armed, the command that
        // ends it is not out yet, and the process may be gone before it is.
        await Task(executorPreference: loop) { await self.awaitRest() }.value
    }

    private func awaitRest() async {
        guard !scan.isResting else { return }
        _ = await suspend(until: loop.now() + .seconds(3)) { if !scan.awaitRest($0) { wake($0) } }
    }

    /// The number of scans that have begun and not ended.
    package var runningScans: Int { scan.runningScans }

    /// Replaces the keys by which private addresses are resolved, by identity address. Without `hash` none is resolved.
    package func setIdentityKeys(_ keys: [PeerID: Secret128], _ hash: AddressResolver.Hash?) {
        scan.setIdentityKeys(keys, hash)
        updatePins()
    }

    /// Returns the identity of the device that uses a private address; `nil` for every other address.
    package func identity(of peer: PeerID) -> PeerID? { scan.identity(of: peer) ?? links.identity(of: peer) }

    /// Returns the address that a device was heard with last, by its identity or by that address, however long ago;
    /// `nil` for one that the table does not have.
    package func addressOnAir(of peer: PeerID) -> PeerID? { scan.addressOnAir(of: peer) }

    /// Returns what is known of a device, by its address on air or its identity: when a scan runs, or has run; `nil`
    /// for one that has been silent for long, unless it is connected.
    package func scanResult(of peer: PeerID) -> ScanResult? {
        scan.scanResult(of: peer, at: loop.now(), linked: links.peers)
    }

    /// What was heard in all, and how many advertisers since a moment.
    func scanStatistics(since moment: BootInstant) -> ScanStatistics { scan.statistics(since: moment) }

    /// Asks every scan again which devices keep a place in the table. So do connected peers: they do not advertise
    /// meanwhile, and what they advertised decides how they are connected to again.
    package func updatePins() { scan.updatePins(links.peers) }
}
