public import BLECore
internal import BLELinux

// Scans with an end: one device, a list of devices, one device and a link to it. Each has stopped scanning when it returns.

extension Central {
    /// The first device that matches the filter and the condition. The radio no longer scans for it when it is returned.
    ///
    /// - Parameters:
    ///   - filter: Which devices are looked at.
    ///   - settings: How the radio listens.
    ///   - timeout: How long to look for it, from when the radio listens; `nil` for as long as the task lives. A controller that does not
    ///     answer ends the call before that, in some seconds.
    ///   - condition: What else must hold of the device.
    /// - Throws: `BLEError` with `.timedOut` when none was heard in time, `.cancelled`, and the codes of a scan's beginning.
    public func first(
        _ filter: ScanFilter = .any, _ settings: ScanSettings = .balanced, timeout: Duration? = .seconds(10),
        where condition: @Sendable (Sighting) -> Bool = { _ in true }
    ) async throws(BLEError) -> Sighting {
        try await find(filter, settings, timeout) { condition($0) ? $0 : nil }
    }

    /// The devices that match and are heard in a time, or the first `count` of them; in the order in which they were found, each
    /// as it was heard last.
    ///
    /// It ends with whichever comes first. At most 4,096 devices are kept; the ones silent for longest make room.
    ///
    /// - Parameters:
    ///   - filter: Which devices are looked at.
    ///   - settings: How the radio listens.
    ///   - duration: How long to listen; `nil` for as long as it takes to hear `count` of them.
    ///   - count: How many are enough; `nil` for all.
    /// - Throws: `BLEError` with `.cancelled`, and the codes of a scan's beginning.
    public func collect(
        _ filter: ScanFilter = .any, _ settings: ScanSettings = .balanced, for duration: Duration? = .seconds(5),
        count: Int? = nil
    ) async throws(BLEError) -> [Sighting] {
        if let count, count <= 0 { return [] }
        let monitor = try await monitor(filter, settings, lostAfter: nil, duration: duration)
        var changes = monitor.changes.makeAsyncIterator()
        while monitor.count < count ?? .max, try await changes.next() != nil {}
        await monitor.stop()
        if Task.isCancelled { throw scanCancelledError(during: "find devices") }
        return monitor.devices.prefix(count ?? .max).map(\.sighting)
    }

    /// Looks for a device that accepts connections and connects to the first that matches, in one call.
    ///
    /// The scan has stopped before the connect begins; scans that run beside make way for it as for every connect.
    ///
    /// - Parameters:
    ///   - filter: Which devices are looked at.
    ///   - settings: How the radio listens.
    ///   - options: How to connect, and how long that may take.
    ///   - timeout: How long to look for it; `nil` for as long as the task lives.
    ///   - condition: What else must hold of the device.
    /// - Returns: The link, and what was heard of the device when it was found.
    /// - Throws: `BLEError` as `first(_:_:timeout:where:)` and `connect(_:_:)` do.
    public func connect(
        toFirst filter: ScanFilter, _ settings: ScanSettings = .balanced, _ options: ConnectOptions = ConnectOptions(),
        timeout: Duration? = .seconds(10), where condition: @Sendable (Sighting) -> Bool = { _ in true }
    ) async throws(BLEError) -> (peripheral: Peripheral, sighting: Sighting) {
        var connectable = filter
        connectable.connectableOnly = true
        let (peer, sighting) = try await find(connectable, settings, timeout) { sighting -> (PeerID, Sighting)? in
            guard let peer = sighting.peer, condition(sighting) else { return nil }
            return (peer, sighting)
        }
        return (try await connect(peer, options), sighting)
    }

    /// Looks for a device, connects to the first that matches, runs `body`, and disconnects whatever comes of it.
    ///
    /// `body` runs where the caller does, and may change the caller's state: variables, properties of an actor, or of the main actor.
    ///
    /// - Throws: `BLEError` as `connect(toFirst:_:_:timeout:where:)` does, and what `body` throws.
    public nonisolated func withConnection<Value>(
        toFirst filter: ScanFilter, _ settings: ScanSettings = .balanced, _ options: ConnectOptions = ConnectOptions(),
        timeout: Duration? = .seconds(10), where condition: @Sendable (Sighting) -> Bool = { _ in true },
        _ body: (Peripheral, Sighting) async throws -> Value
    ) async throws -> Value {
        let (peripheral, sighting) = try await connect(
            toFirst: filter, settings, options, timeout: timeout, where: condition)
        return try await disconnecting(peripheral) { try await body(peripheral, sighting) }
    }

    /// Scans until something is found in what is heard.
    private func find<Found>(
        _ filter: ScanFilter, _ settings: ScanSettings, _ timeout: Duration?, _ pick: (Sighting) -> Found?
    ) async throws(BLEError) -> Found {
        let everything = settings.duplicates(.all).rssiDelta(nil)
        var events = scan(filter, everything, duration: timeout).makeAsyncIterator()
        while let event = try await events.next() {
            switch event {
            case .found(let sighting), .updated(let sighting):
                guard let found = pick(sighting) else { continue }
                await events.stop()
                return found
            case .lost, .dropped, .paused, .resumed:
                continue
            }
        }
        await events.stop()
        if Task.isCancelled { throw scanCancelledError(during: "find a device") }
        throw BLEError(
            .timedOut, subject: configuration.adapter.description, during: "find a device",
            because: "none that matches was heard in \(timeout ?? .zero)",
            hint: "Check that it is near, switched on, advertising, and not connected elsewhere.")
    }

    private func scanCancelledError(during operation: String) -> BLEError {
        BLEError(
            .cancelled, subject: configuration.adapter.description, during: operation,
            because: "the task was cancelled")
    }
}
