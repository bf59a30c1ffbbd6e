import BareBLE
import BareBLETestKit
import Testing

/// The Swift in Sessions.md. What needs a radio is compiled only.
@Suite struct SessionSampleTests {
    private func begin(_ central: Central, _ peer: PeerID) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Sessions.md
        let session = try await central.session(with: peer) { device in
            try await device.write([0x2A, 0x17], to: 0x2A39)
        }
        let level = try await session.withPeripheral { device in
            try await device.read(.batteryLevel)
        }
        // out
        _ = level
    }

    private func decide(_ central: Central, _ peer: PeerID) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Sessions.md
        let session = try await central.session(
            with: peer, Session.Options(connect: ConnectOptions(timeout: nil)),
            reconnect: { loss, failures in
                loss.reason == .supervisionTimeout ? .seconds(1) : failures < 10 ? .seconds(30) : nil
            })
        // out
        _ = session
    }

    private func listen(_ session: Session) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Sessions.md
        for try await event in session.events {
            switch event {
            case .connecting(let attempt): print("attempt", attempt)
            case .ready: print("ready")
            case .disconnected(let loss): print(loss.error, "next:", loss.delay as Any)
            case .servicesChanged(let handles): print("look again at", handles)
            case .gaveUp(let error): print(error.hint ?? "")
            default: continue
            }
        }
        // out
    }

    private func values(_ session: Session) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Sessions.md
        for try await element in await session.subscribe(to: .heartRateMeasurement) {
            switch element {
            case .began: print("listening")
            case .value(let beat): print(beat.beatsPerMinute)
            case .interrupted(let error): print("no values until it begins again:", error)
            }
        }
        // out
    }

    private func times(_ session: Session, _ central: Central) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Sessions.md
        let start = central.clock.now
        var beats = await session.subscribe(to: .heartRateMeasurement).makeAsyncIterator()
        while let element = try await beats.next() {
            guard case .value(let beat) = element, let time = beats.last?.time else { continue }
            print("after", time - start, beat.beatsPerMinute)
        }
        // out
    }
}
