public import BLECore
internal import BLELinux
internal import Logging

extension Central {
    /// Makes sure that the adapter can be used, so that later calls do not fail for reasons that are known now.
    ///
    /// With `powerOn` the call switches on an adapter that is down, which requires CAP_NET_ADMIN, and its Low Energy
    /// support, which requires CAP_NET_RAW, or CAP_NET_ADMIN and `Configuration.security`. Without `powerOn` the error
    /// names the command that does it. The call waits for an adapter that is not present yet.
    ///
    /// - Throws: `BLEError` with `.unsupported`, `.noAdapter`, `.adapterDown`, `.blocked`, `.notPermitted`,
    ///   `.cancelled`.
    public func ready(powerOn: Bool = false, timeout: Duration = .seconds(5)) async throws(BLEError) {
        let adapter = adapter
        let deadline = loop.now() + timeout
        while true {
            do {
                return try await adapter.ready(powerOn: powerOn, during: "use the adapter")
            } catch {
                guard [.noAdapter, .adapterDown].contains(error.code), loop.now() < deadline else { throw error }
                let pause = min(deadline, loop.now() + .milliseconds(250))
                if case .cancelled = await adapter.suspend(until: pause, { _ in }).wake {
                    throw await adapter.cancelledError(during: "use the adapter")
                }
            }
        }
    }

    /// The devices that match, as they are heard. Iteration starts the scan; leaving the loop stops it.
    ///
    /// `settings` select how to listen and how to treat repetitions. With `lostAfter`, a device that has been silent
    /// for that time is reported as `.lost`, up to a second later, unless this adapter is connected to it. After
    /// `duration` the sequence ends. At most `capacity` events wait for the consumer. Several scans may run at once
    /// and share the radio.
    public nonisolated func scan(
        _ filter: ScanFilter = .any, _ settings: ScanSettings = .balanced, lostAfter: Duration? = nil,
        duration: Duration? = nil, capacity: Int = 4096
    ) -> ScanSequence {
        ScanSequence(
            central: self, settings: settings.matching(filter), lostAfter: lostAfter, duration: duration,
            capacity: capacity)
    }

    func beginScan(
        _ sequence: ScanSequence, into buffer: StreamBuffer<ScanEvent>
    ) async throws(BLEError) -> ActiveScan {
        let excluded = sequence.excluded
        return try await beginScan(
            sequence.settings, lostAfter: sequence.lostAfter, duration: sequence.duration, excluded: excluded
        ) { delivery in
            switch delivery {
            case .found(let scanResult): buffer.yield(.found(scanResult), bytes: scanResult.payloadLength)
            case .updated(let scanResult): buffer.yield(.updated(scanResult), bytes: scanResult.payloadLength)
            case .lost(let scanResult): buffer.yield(.lost(scanResult), bytes: scanResult.payloadLength)
            case .notice(let notice):
                sequence.noticed?(notice)
                if notice == .adapterLost { buffer.yield(.paused) }
                if notice == .adapterBack { buffer.yield(.resumed) }
            }
        } finish: {
            buffer.finish()
        }
    }

    /// Starts a scan; `finish` is called when its duration is over, or it is stopped.
    func beginScan(
        _ settings: ScanSettings, lostAfter: Duration?, duration: Duration?, excluded: ExcludedPeers? = nil,
        pinned: @escaping @Sendable () -> Set<PeerID> = { [] },
        _ receive: @escaping @Sendable (ScanDelivery) -> Void, finish: @escaping @Sendable () -> Void
    ) async throws(BLEError) -> ActiveScan {
        let logger = configuration.logger
        let adapter = adapter
        let id = try await adapter.subscribe(settings, lostAfter: lostAfter, excluded: excluded, pinned: pinned) {
            if case .notice(let notice) = $0 { logger.debug("scan", metadata: ["notice": "\(notice)"]) }
            receive($0)
        }
        let timer = duration.map { loop.schedule(at: loop.now() + $0) { finish() } }
        return ActiveScan(id: id, adapter: adapter, timer: timer, finish: finish)
    }
}

extension Central {
    /// The adapter's name in messages: `hci0` once it has been found, otherwise the selector.
    public var adapterName: String {
        get async { await adapter.name }
    }

    /// A Boolean value that indicates whether a scan of this central has begun and has not ended: one that a task
    /// iterates, that of a monitor, or one by which a connect looks for its peer.
    ///
    /// It stays `true` while the radio makes way for a connect, and while the adapter is down or away.
    public var isScanning: Bool {
        get async { await adapter.runningScans > 0 }
    }

    /// Returns the latest data of a device that a current or earlier scan has heard, by the address that it advertises
    /// with or by its identity; `nil` for a device that has been silent for more than 5 minutes and is not connected.
    public func scanResult(of peer: PeerID) async -> ScanResult? { await adapter.scanResult(of: peer) }

    /// The former name of `scanResult(of:)`.
    @available(*, deprecated, renamed: "scanResult(of:)")
    public func sighting(of peer: PeerID) async -> ScanResult? { await scanResult(of: peer) }

    /// The adapter's own address; `nil` before its first use.
    public var adapterAddress: BluetoothAddress? {
        get async { await adapter.address }
    }
}

extension Central {
    /// Replaces the identity resolving keys, by identity address; `Configuration.addressHash` computes the hash.
    package func setIdentityKeys(_ keys: [PeerID: Secret128]) async {
        await adapter.setIdentityKeys(keys, configuration.addressHash)
    }
}

/// Counts over the scans of a central.
package struct ScanStatistics: Hashable, Sendable {
    /// The number of reports from the controller, including those that no scan reported.
    package let reports: Int
    /// The number of advertisers heard since the given moment.
    package let devices: Int
}

extension Central {
    /// Returns the number of reports in total, and the number of devices since a moment.
    package func scanStatistics(since moment: BootInstant) async -> ScanStatistics {
        await adapter.scanStatistics(since: moment)
    }
}
