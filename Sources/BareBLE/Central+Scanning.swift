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
    /// so long as `.lost`; after `duration` the sequence ends; at most `capacity` events wait for the consumer. Several scans
    /// may run at once and share the radio.
    public nonisolated func scan(
        _ filter: ScanFilter = .any, _ settings: ScanSettings = .balanced, lostAfter: Duration? = nil,
        duration: Duration? = nil, capacity: Int = 4096
    ) -> ScanSequence {
        ScanSequence(
            central: self, settings: settings.matching(filter), lostAfter: lostAfter, duration: duration,
            capacity: capacity)
    }

    /// The first device that matches the filter and the condition.
    ///
    /// - Throws: `BLEError` with `.timedOut` when none was heard in time, and the codes of a scan's beginning.
    public func first(
        _ filter: ScanFilter = .any, _ settings: ScanSettings = .balanced, timeout: Duration = .seconds(10),
        where condition: @Sendable (Sighting) -> Bool = { _ in true }
    ) async throws(BLEError) -> Sighting {
        for try await event in scan(filter, settings.duplicates(.all), duration: timeout) {
            switch event {
            case .found(let sighting), .updated(let sighting): if condition(sighting) { return sighting }
            case .lost, .dropped, .paused, .resumed: continue
            }
        }
        let isCancelled = Task.isCancelled
        throw BLEError(
            isCancelled ? .cancelled : .timedOut, subject: configuration.adapter.description, during: "find a device",
            because: isCancelled ? "the task was cancelled" : "none that matches was heard in \(timeout)",
            hint: isCancelled ? nil : "Check that it is near, switched on, advertising, and not connected elsewhere.")
    }

    func beginScan(
        _ sequence: ScanSequence, into buffer: StreamBuffer<ScanEvent>
    ) async throws(BLEError) -> ScanLease {
        let logger = configuration.logger
        let adapter = adapter
        let id = try await adapter.subscribe(sequence.settings, lostAfter: sequence.lostAfter) { delivery in
            switch delivery {
            case .found(let sighting): buffer.yield(.found(sighting))
            case .updated(let sighting): buffer.yield(.updated(sighting))
            case .lost(let sighting): buffer.yield(.lost(sighting))
            case .notice(let notice):
                logger.debug("scan", metadata: ["notice": "\(notice)"])
                if case .adapterLost = notice { buffer.yield(.paused) }
                if case .adapterBack = notice { buffer.yield(.resumed) }
            }
        }
        let timer = sequence.duration.map { duration in
            loop.schedule(at: loop.now() + duration) { buffer.finish() }
        }
        return ScanLease(id: id, buffer: buffer, adapter: adapter, timer: timer)
    }
}

extension Central {
    /// What messages call the adapter: `hci0` once it has been found, else what was asked for.
    public var adapterName: String {
        get async { await adapter.name }
    }

    /// The adapter's own address; `nil` before it was used for the first time.
    public var adapterAddress: BluetoothAddress? {
        get async { await adapter.address }
    }
}
