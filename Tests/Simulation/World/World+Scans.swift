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
        case .found(let sighting), .updated(let sighting):
            sightings.add("scan.heard")
            scansHeard += 1
            // Every view of what was sent is to be had, whatever it is.
            note("h", "\(sighting.peer.map(\.description) ?? "-") \(sighting.name ?? "-") \(sighting.meanings.count)")
            _ = sighting.serviceUUIDs
            _ = sighting.manufacturerData
            guard let peer = peers.first(where: { $0.peer == sighting.peer }), peer.kind == .honest else { return }
            if let name = sighting.name, name != peer.device.name { fail("an honest peer was called \(name)") }
        case .lost: sightings.add("scan.lost")
        case .dropped: sightings.add("scan.dropped")
        case .paused: sightings.add("scan.paused")
        case .resumed: sightings.add("scan.resumed")
        }
    }
}
