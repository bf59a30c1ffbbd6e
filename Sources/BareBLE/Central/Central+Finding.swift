public import BLECore
internal import BLELinux

// Scans that end by themselves: one device, a list of devices, one device and a link to it. Each has stopped scanning
// when it returns.

extension Central {
    /// Returns the first device that matches the filter and the condition. The radio no longer scans for it by then.
    ///
    /// - Parameters:
    ///   - filter: The devices to consider.
    ///   - settings: How the radio listens.
    ///   - timeout: The longest time to wait, counted from when the radio listens; `nil` waits for as long as the task
    ///     lives. A controller that does not respond ends the call earlier, after some seconds.
    ///   - condition: A further condition on the device.
    /// - Throws: `BLEError` with `.timedOut` if no device was heard in time, `.cancelled`, and the codes of a scan's
    ///   start.
    public func first(
        _ filter: ScanFilter = .any, _ settings: ScanSettings = .balanced, timeout: Duration? = .seconds(10),
        where condition: @Sendable (ScanResult) -> Bool = { _ in true }
    ) async throws(BLEError) -> ScanResult {
        try await find(filter, settings, timeout) { condition($0) ? $0 : nil }
    }

    /// Returns the devices that match and are heard in a time, or the first `count` of them, in the order of
    /// discovery, each with its latest data.
    ///
    /// The call ends with whichever comes first. At most 4,096 devices are kept; those silent for longest are dropped.
    ///
    /// - Parameters:
    ///   - filter: The devices to consider.
    ///   - settings: How the radio listens.
    ///   - duration: How long to listen; `nil` listens until `count` devices were heard.
    ///   - count: The number of devices that is enough; `nil` for all.
    /// - Throws: `BLEError` with `.cancelled`, and the codes of a scan's start.
    public func collect(
        _ filter: ScanFilter = .any, _ settings: ScanSettings = .balanced, for duration: Duration? = .seconds(5),
        count: Int? = nil
    ) async throws(BLEError) -> [ScanResult] {
        if let count, count <= 0 { return [] }
        let monitor = try await monitor(filter, settings, lostAfter: nil, duration: duration)
        var changes = monitor.changes.makeAsyncIterator()
        while monitor.count < count ?? .max, try await changes.next() != nil {}
        await monitor.stop()
        if Task.isCancelled { throw scanCancelledError(during: "find devices") }
        return monitor.devices.prefix(count ?? .max).map(\.scanResult)
    }

    /// Scans for a device that accepts connections, and connects to the first match, in one call.
    ///
    /// The scan has stopped before the connection attempt begins; concurrent scans pause for it as for every connect.
    ///
    /// - Parameters:
    ///   - filter: The devices to consider.
    ///   - settings: How the radio listens.
    ///   - options: How to connect, and how long that may take.
    ///   - timeout: The longest time to scan; `nil` scans for as long as the task lives.
    ///   - condition: A further condition on the device.
    /// - Returns: The link, and the device's scan result at the time of discovery.
    /// - Throws: `BLEError` as `first(_:_:timeout:where:)` and `connect(_:_:)` do.
    public func connect(
        toFirst filter: ScanFilter, _ settings: ScanSettings = .balanced, _ options: ConnectOptions = ConnectOptions(),
        timeout: Duration? = .seconds(10), where condition: @Sendable (ScanResult) -> Bool = { _ in true }
    ) async throws(BLEError) -> (peripheral: Peripheral, scanResult: ScanResult) {
        var connectable = filter
        connectable.connectableOnly = true
        let (peer, scanResult) = try await find(connectable, settings, timeout) { scanResult -> (PeerID, ScanResult)? in
            guard let peer = scanResult.peer, condition(scanResult) else { return nil }
            return (peer, scanResult)
        }
        return (try await connect(peer, options), scanResult)
    }

    /// Scans for a device, connects to the first match, runs `body`, and disconnects however `body` ends.
    ///
    /// `body` runs in the caller's isolation and may change the caller's state: variables, and properties of an actor
    /// or the main actor.
    ///
    /// - Throws: `BLEError` as `connect(toFirst:_:_:timeout:where:)` does, and the error of `body`.
    public nonisolated func withConnection<Value>(
        toFirst filter: ScanFilter, _ settings: ScanSettings = .balanced, _ options: ConnectOptions = ConnectOptions(),
        timeout: Duration? = .seconds(10), where condition: @Sendable (ScanResult) -> Bool = { _ in true },
        _ body: (Peripheral, ScanResult) async throws -> Value
    ) async throws -> Value {
        let (peripheral, scanResult) = try await connect(
            toFirst: filter, settings, options, timeout: timeout, where: condition)
        return try await disconnecting(peripheral) { try await body(peripheral, scanResult) }
    }

    /// Scans until `body` finds something.
    private func find<Found>(
        _ filter: ScanFilter, _ settings: ScanSettings, _ timeout: Duration?, _ pick: (ScanResult) -> Found?
    ) async throws(BLEError) -> Found {
        let everything = settings.duplicates(.all).rssiDelta(nil)
        var events = scan(filter, everything, duration: timeout).makeAsyncIterator()
        while let event = try await events.next() {
            switch event {
            case .found(let scanResult), .updated(let scanResult):
                guard let found = pick(scanResult) else { continue }
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
