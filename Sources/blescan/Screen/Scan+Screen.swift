import BLECore
import BLELinux
import BLEProfiles
import BareBLE

extension Scan {
    /// Whether the live table is used: on a terminal, without an option for lines.
    var showsScreen: Bool {
        !json && !screen.plain && lines.format == nil && lines.count == nil && lines.each == nil && heartbeat == nil
            && Terminal.isUsable
    }

    /// Shows the live table until the time is over or the user quits.
    func scanOnScreen(_ central: Central, _ adapterName: String) async throws -> ScanEnd {
        let command = self
        let began = Terminal.now()
        let table = ScanScreen(
            .init(
                source: adapterName, address: lines.redact ? nil : await central.adapterAddress?.description,
                mode: passive ? "passive scan" : "active scan"),
            ScreenLook(screen.color.color ?? .auto), onlySensors: filters.sensors)
        let isQuit = Lock(false)
        // From now on, so that no step is missed.
        let recoveries = recover.map { _ in central.recoveryEvents }
        let links: ScanBrowser.Links =
            lines.redact ? .unavailable("--redact masks the addresses; scan without it to connect") : .live
        let last = try await LiveScreen.during(
            ScanBrowser(table, links, linkOptions: ConnectionOptions.words(adapter: adapter, bonds: bonds))
        ) { live in
            let driver = LinkDriver(timeout: Self.linkTimeout) { peer, found, body in
                try await command.withLink(to: peer, central, found, body)
            } report: { event in
                live.report(event) { $0.take($1, at: $2) }
            }
            let link = Task { await driver.serve(live.requests) }
            let steps: Task<Void, any Error>? = recoveries.map { recoveries in
                Task { for try await event in recoveries { live.change { $0.report(event.line(adapterName)) } } }
            }
            defer {
                link.cancel()
                steps?.cancel()
            }
            try await central.run {
                let settings = command.settings.duplicates(.all)
                var redaction = command.lines.redact ? AdvertisementRedaction() : nil
                for try await event in central.scan(
                    command.filters.filter, settings, duration: command.duration?.duration)
                {
                    switch event {
                    case .found(let scanResult), .updated(let scanResult):
                        if command.filters.sensors, !scanResult.hasMeasurement { continue }
                        let shown = redaction?.redacted(scanResult) ?? scanResult
                        live.change { $0.take(shown) }
                    case .lost(let scanResult):
                        let shown = redaction?.redacted(scanResult) ?? scanResult
                        live.change { $0.remove(shown.id) }
                    case .dropped(let count): live.change { $0.lose(count) }
                    case .paused:
                        guard command.recover?.endsLinks == true else { throw Self.adapterGone(adapterName) }
                        live.change {
                            $0.report("\(adapterName) went down or away; the scan continues when it is back")
                        }
                    case .resumed:
                        if command.recover?.endsLinks == true {
                            live.change { $0.report("\(adapterName) is back; the scan continues") }
                        }
                    }
                }
                isQuit.withLock { $0 = Task.isCancelled }
                link.cancel()
                await link.value
            }
        }.table
        Console.note("blescan: " + last.closing(after: Terminal.now() - began))
        return ScanEnd(reason: isQuit.withLock { $0 } ? .nothingIsWanted : .timeIsOver, heard: last.reportCount)
    }

    private static let linkTimeout: Duration = .seconds(15)

    /// Connects to a device of the table, runs `body` and disconnects. The scan pauses while the connection is made.
    private func withLink(
        to peer: PeerArgument, _ central: Central, _ found: () -> Void,
        _ body: @Sendable (Peripheral) async throws -> Void
    ) async throws {
        guard case .address(let address, let type?) = peer else { return }
        try expectNoBond(with: address, of: await central.adapterAddress)
        found()
        do {
            let peripheral = try await central.connect(
                PeerID(address: address, type: type),
                ConnectOptions(timeout: Self.linkTimeout, observesServiceChanges: false))
            let result = await Result.of { try await body(peripheral) }
            await peripheral.disconnect()
            try result.get()
        } catch let error as BLEError {
            throw error.advised(peer)
        }
    }

    /// The table has no right to use the keys of bonds, and the link of a bonded device must be encrypted.
    private func expectNoBond(with address: BluetoothAddress, of adapter: BluetoothAddress?) throws {
        // A service may have no home directory, and no bonds then.
        guard let directory = try? BondDirectory(bonds) else { return }
        let options = ConnectionOptions.words(adapter: self.adapter, bonds: bonds)
        let command = EquivalentCommand.browsing(.init(peer: address.description, options: options))
        try BondUse.expectNone(with: address, of: adapter, in: directory, otherwise: command)
    }
}
