import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

// What goes wrong, and what peers do by themselves.

extension World {
    func strike(_ step: Script.Step) {
        eventCounts.add("fault.\(step.verb.rawValue)")
        if step.verb.isOnAdapter { return strikeAdapter(step) }
        guard let peer = peer(step.subject) else { return }
        let (peripheral, status) = (peer.peripheral, HCIStatus(rawValue: UInt8(truncatingIfNeeded: step.first)))
        radio.assumeIsolated { radio in
            switch step.verb {
            case .hangUp: radio.disconnect(peripheral, because: status)
            case .outOfRange: radio.move(peripheral, to: .outOfRange)
            case .restart:
                radio.reset(peripheral)
            case .refuse:
                radio.refuseConnections(
                    to: peripheral, with: [HCIStatus](repeating: status, count: step.second))
            case .delayConnects: radio.delayConnections(to: peripheral, by: .milliseconds(step.first))
            default: break
            }
        }
        switch step.verb {
        case .outOfRange: after(step) { $0.radio.assumeIsolated { $0.move(peripheral, to: .near) } }
        case .restart:
            // Its values are those of the beginning again.
            for value in peer.values.indices { peer.values[value].isUncertain = true }
            peer.isChanged = false
        case .dropResponses: peer.responsesToDrop = step.first
        case .stopResponding:
            peripheral.assumeIsolated { $0.stopResponding() }
            after(step) { _ in peripheral.assumeIsolated { $0.resumeResponding() } }
        default: break
        }
    }

    private func strikeAdapter(_ step: Script.Step) {
        let name = host(step.subject).name
        radio.assumeIsolated { radio in
            switch step.verb {
            case .powerOff: radio.powerOff(name)
            case .unplug: radio.unplug(name)
            case .silence: radio.silence(true, name)
            // One that no program sees leaves all events masked for 90 s, which is longer than a world waits.
            case .reset: if radio.isInUse(name) { radio.reset(name) }
            default: break
            }
        }
        switch step.verb {
        case .powerOff: after(step) { $0.radio.assumeIsolated { $0.powerOn(name) } }
        case .unplug: after(step) { $0.plugIn($0.host(step.subject)) }
        case .silence: after(step) { $0.radio.assumeIsolated { $0.silence(false, name) } }
        case .suspend:
            loop.jump(by: .seconds(step.first))
            suspended += .seconds(step.first)
        default: break
        }
    }

    /// Ends a fault when its time is over, unless everything has been healed before.
    func after(_ step: Script.Step, _ body: @escaping @Sendable (isolated World) -> Void) {
        _ = loop.schedule(at: loop.now() + .milliseconds(step.first)) { [weak self] in
            self?.assumeIsolated { world in if !world.isHealed { body(world) } }
        }
    }

    /// Plugs an adapter in, and has it switched on. A program with bonds does that itself, because the kernel cannot
    /// pair with an adapter that somebody else has switched on.
    func plugIn(_ host: Host) {
        radio.assumeIsolated { $0.plugIn(host.name, isUp: host.store == nil) }
        guard host.store != nil else { return }
        time.task { [central = host.central] in try? await central.ready(powerOn: true) }
    }

    // MARK: Peers

    func move(_ step: Script.Step, _ peer: SimulatedPeer) {
        let peripheral = peer.peripheral
        switch step.verb {
        case .provoke:
            guard peer.kind == .adversary else { return }
            for pdu in peer.conduct.provocation(seen: { eventCounts.add($0) }) {
                peripheral.assumeIsolated { $0.send(raw: pdu) }
            }
        case .changeServices:
            guard peer.kind == .amnesiac else { return }
            peer.isChanged.toggle()
            let device = peer.isChanged ? peer.changedDevice : peer.device
            eventCounts.add("effect.servicesChanged")
            _ = peripheral.assumeIsolated { $0.changeServices(to: device, isAnnounced: step.first == 1) }
        case .outOfSync:
            guard peer.kind == .amnesiac else { return }
            eventCounts.add("effect.outOfSync")
            peripheral.assumeIsolated { $0.becomeUnaware() }
        default: break
        }
    }

    /// Sends values without a request, one every 10 ms.
    func notify(_ step: Script.Step, _ number: Int) async {
        guard let peer = peer(number), !peer.subscribable.isEmpty else { return }
        let value = peer.subscribable[step.first % peer.subscribable.count]
        let uuid = peer.values[value].uuid
        for _ in 0..<step.second {
            let bytes = peer.sentValue(value)
            // A link that cannot carry it now may lose it with its end; the next link begins another row.
            if (try? await peer.peripheral.notify(uuid, bytes)) == true { peer.values[value].sent += 1 }
            await sleep(.milliseconds(10))
        }
    }
}
