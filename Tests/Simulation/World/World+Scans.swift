import BLECore
import BareBLE
import BareBLETestKit

// What scans hear; of honest peers it has to be true.

extension World {
    func scan(_ step: Script.Step) async {
        await scan(step, host(step.subject).central)
    }

    func scan(_ step: Script.Step, _ central: Central) async {
        await attempt(step) {
            for try await event in central.scan(duration: left(step.first), capacity: max(1, step.second)) {
                self.heard(event)
            }
        }
    }

    func heard(_ event: ScanEvent) {
        switch event {
        case .found(let scanResult), .updated(let scanResult):
            eventCounts.add("scan.heard")
            scansHeard += 1
            // Every view of what was sent is to be had, whatever it is.
            let peer = scanResult.peer.map(\.description) ?? "-"
            note("h", "\(peer) \(scanResult.name ?? "-") \(scanResult.decoded.count)")
            _ = scanResult.serviceUUIDs
            _ = scanResult.manufacturerData
            guard let peer = peers.first(where: { $0.peer == scanResult.peer }), peer.kind == .honest else { return }
            if let name = scanResult.name, name != peer.device.name { fail("an honest peer was called \(name)") }
        case .lost: eventCounts.add("scan.lost")
        case .dropped: eventCounts.add("scan.dropped")
        case .paused: eventCounts.add("scan.paused")
        case .resumed: eventCounts.add("scan.resumed")
        }
    }
}
