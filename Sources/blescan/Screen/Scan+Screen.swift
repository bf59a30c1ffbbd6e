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
                mode: passive ? "passive scan" : "active scan"), ScreenLook(screen.color.color ?? .auto))
        let isQuit = Lock(false)
        let last = try await LiveScreen.during(table) { live in
            try await central.run {
                let settings = command.settings.duplicates(.all)
                var redaction = command.lines.redact ? AdvertisementRedaction() : nil
                for try await event in central.scan(
                    command.filters.filter, settings, duration: command.duration?.duration)
                {
                    switch event {
                    case .found(let scanResult), .updated(let scanResult):
                        let shown = redaction?.redacted(scanResult) ?? scanResult
                        live.change { $0.take(shown) }
                    case .lost(let scanResult):
                        let shown = redaction?.redacted(scanResult) ?? scanResult
                        live.change { $0.remove(shown.id) }
                    case .dropped(let count): live.change { $0.lose(count) }
                    case .paused: throw Self.adapterGone(adapterName)
                    case .resumed: continue
                    }
                }
                isQuit.withLock { $0 = Task.isCancelled }
            }
        }
        Console.note("blescan: " + last.closing(after: Terminal.now() - began))
        return ScanEnd(reason: isQuit.withLock { $0 } ? .nothingIsWanted : .timeIsOver, heard: last.reportCount)
    }
}
