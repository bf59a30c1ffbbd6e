internal import BLECore
internal import BLELinux
internal import Glibc

// Advertisements and connection attempts: which adapter receives which peripheral, and when.

extension VirtualRadio {
    /// The adapters whose controllers receive advertisements.
    private var listening: [UInt16] {
        controllers.filter { isUp($0.key) && ($0.value.controller.isListening || !$0.value.kernelCalls.isEmpty) }
            .map(\.key).sorted()
    }

    /// Sets the timer to the next advertisement that an adapter may receive.
    func scheduleAdvertisements() {
        if let advertisingTimer { loop.cancel(advertisingTimer) }
        advertisingTimer = nil
        guard !listening.isEmpty else { return }
        let now = loop.now()
        for index in placements.indices {
            guard placements[index].due < now, let interval = placements[index].advertisement?.interval else {
                continue
            }
            // Advertising events also pass while no adapter receives.
            let beat = interval.saturatedNanoseconds
            let (beats, rest) = (now - placements[index].start).saturatedNanoseconds.quotientAndRemainder(
                dividingBy: beat)
            placements[index].due = placements[index].start + .nanoseconds((beats + (rest > 0 ? 1 : 0)) * beat)
        }
        guard let next = placements.filter(\.isHeard).map(\.due).min() else { return }
        advertisingTimer = loop.schedule(at: next) { [weak self] in
            self?.assumeIsolated { $0.advertise() }
        }
    }

    private func advertise() {
        advertisingTimer = nil
        let now = loop.now()
        let heard = placements.filter { $0.isHeard && $0.due <= now }
        for placement in heard {
            if let index = self.placement(of: placement.peripheral), let interval = placement.advertisement?.interval {
                placements[index].due = placement.due + interval
            }
            for adapter in listening { deliver(placement, to: adapter) }
        }
        scheduleAdvertisements()
    }

    private func deliver(_ placement: Placement, to adapter: UInt16) {
        guard let controller = controllers[adapter]?.controller, let advertisement = placement.advertisement,
            let rssi = placement.proximity.rssi
        else { return }
        if controller.isScanning, controllers[adapter]?.controller.mayReport(placement.peer) == true {
            for report in controller.reports(of: placement.peer, advertisement, rssi: rssi) { send(report, adapter) }
        }
        guard advertisement.isConnectable, let index = self.placement(of: placement.peripheral),
            !placements[index].isLinked, !placements[index].isAnswering, isCalled(placement.peer, by: adapter)
        else { return }
        guard placement.connectionDelay > .zero else { return respond(placement.peripheral, to: adapter) }
        placements[index].isAnswering = true
        let peripheral = placement.peripheral
        _ = loop.schedule(at: loop.now() + placement.connectionDelay) { [weak self] in
            self?.assumeIsolated { radio in
                guard let index = radio.placement(of: peripheral), radio.placements[index].isAnswering else { return }
                radio.placements[index].isAnswering = false
                radio.respond(peripheral, to: adapter)
            }
        }
    }

    private func isCalled(_ peer: PeerID, by adapter: UInt16) -> Bool {
        guard let running = controllers[adapter] else { return false }
        // The kernel looks for the identity of a private address that it resolves.
        let known = management.peer(onAir: peer, adapter)
        return running.controller.call?.peer == peer || running.kernelCalls.contains { $0.peer == known }
    }

    /// Completes a connection attempt, if it is still pending and the peer still advertises.
    private func respond(_ peripheral: VirtualPeripheral, to adapter: UInt16) {
        guard let index = placement(of: peripheral), placements[index].isHeard, isUp(adapter),
            let rssi = placements[index].proximity.rssi, isCalled(placements[index].peer, by: adapter)
        else { return }
        let peer = placements[index].peer
        let status = placements[index].refusals.isEmpty ? .success : placements[index].refusals.removeFirst()
        if controllers[adapter]?.controller.call?.peer == peer {
            guard let (handle, actions) = controllers[adapter]?.controller.respond(status, rssi: rssi) else { return }
            if handle != nil, controllers[adapter]?.controller.hidesLink() == true {
                controllers[adapter]?.hiddenPeers.append(peripheral)
                change(peripheral) { $0.isLinked = true }
                return scheduleAdvertisements()
            }
            if let handle { begin(handle, adapter, peripheral, peer) }
            perform(actions, adapter)
            if let handle { handOnInitiated(adapter, handle, peer) }
        } else {
            completeKernelConnect(status, peer, peripheral, adapter, rssi)
        }
    }

    private func completeKernelConnect(
        _ status: HCIStatus, _ peer: PeerID, _ peripheral: VirtualPeripheral, _ adapter: UInt16, _ rssi: Int8
    ) {
        let known = management.peer(onAir: peer, adapter)
        guard let position = controllers[adapter]?.kernelCalls.firstIndex(where: { $0.peer == known }),
            let call = controllers[adapter]?.kernelCalls.remove(at: position)
        else { return }
        guard status.isSuccess else {
            // The kernel maps only some statuses to their own errno; the others are ENOSYS.
            return call.fate.withLock { $0 = status == .connectionLimitExceeded ? EMLINK : ENOSYS }
        }
        guard let handle = controllers[adapter]?.controller.accept(peer, rssi: rssi) else { return }
        begin(handle, adapter, peripheral, peer, fate: call.fate)
        _ = attach(adapter, handle, call.end, call.descriptor, call.security)
    }
}

extension VirtualRadio.Placement {
    /// True if it is advertising within range.
    var isHeard: Bool { advertisement != nil && proximity.rssi != nil && !isLinked }
}
