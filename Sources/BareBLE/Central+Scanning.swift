public import BLECore
internal import BLELinux
internal import Logging

extension Central {
    /// Makes sure that the adapter can be used, so that later calls do not fail for reasons that are known now.
    ///
    /// With `powerOn` an adapter that is down is switched on, and so is its Low Energy side; that takes CAP_NET_ADMIN.
    /// Without, the error says which command does it. An adapter that is not there yet is waited for.
    ///
    /// - Throws: `BLEError` with `.unsupported`, `.noAdapter`, `.adapterDown`, `.blocked`, `.notPermitted`, `.cancelled`.
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

    /// The devices that match, as they are heard. Iterating scans; leaving the loop stops.
    ///
    /// `settings` say how to listen and what to do with repetitions; `lostAfter` tells devices that have been silent for
    /// so long as `.lost`, up to a second later, unless this adapter is connected to them; after `duration` the sequence ends; at most `capacity` events wait for the
    /// consumer. Several scans may run at once and share the radio.
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
    ) async throws(BLEError) -> ScanLease {
        let excluded = sequence.excluded
        return try await beginScan(
            sequence.settings, lostAfter: sequence.lostAfter, duration: sequence.duration, excluded: excluded
        ) { delivery in
            switch delivery {
            case .found(let sighting): buffer.yield(.found(sighting), bytes: sighting.payloadLength)
            case .updated(let sighting): buffer.yield(.updated(sighting), bytes: sighting.payloadLength)
            case .lost(let sighting): buffer.yield(.lost(sighting), bytes: sighting.payloadLength)
            case .notice(let notice):
                sequence.noticed?(notice)
                if notice == .adapterLost { buffer.yield(.paused) }
                if notice == .adapterBack { buffer.yield(.resumed) }
            }
        } finish: {
            buffer.finish()
        }
    }

    /// Begins a scan; `finish` is called when its duration is over, and when the lease is.
    func beginScan(
        _ settings: ScanSettings, lostAfter: Duration?, duration: Duration?, excluded: ExcludedPeers? = nil,
        pinned: @escaping @Sendable () -> Set<PeerID> = { [] },
        _ receive: @escaping @Sendable (ScanDelivery) -> Void, finish: @escaping @Sendable () -> Void
    ) async throws(BLEError) -> ScanLease {
        let logger = configuration.logger
        let adapter = adapter
        let id = try await adapter.subscribe(settings, lostAfter: lostAfter, excluded: excluded, pinned: pinned) {
            if case .notice(let notice) = $0 { logger.debug("scan", metadata: ["notice": "\(notice)"]) }
            receive($0)
        }
        let timer = duration.map { loop.schedule(at: loop.now() + $0) { finish() } }
        return ScanLease(id: id, adapter: adapter, timer: timer, finish: finish)
    }
}

extension Central {
    /// What messages call the adapter: `hci0` once it has been found, else what was asked for.
    public var adapterName: String {
        get async { await adapter.name }
    }

    /// What is known of a device from scans that run or have run; of one that was silent for long, nothing.
    public func sighting(of peer: PeerID) async -> Sighting? { await adapter.sighting(of: peer) }

    /// The adapter's own address; `nil` before it was used for the first time.
    public var adapterAddress: BluetoothAddress? {
        get async { await adapter.address }
    }
}

/// What scans of a central have heard.
package struct ScanStatistics: Hashable, Sendable {
    /// How many reports the radio has handed up, those that no scan was told of included.
    package let reports: Int
    /// How many advertisers were heard since the moment that was asked for.
    package let devices: Int
}

extension Central {
    /// What was heard in all, and how many devices since a moment.
    package func scanStatistics(since moment: BootInstant) async -> ScanStatistics {
        await adapter.scanStatistics(since: moment)
    }
}
