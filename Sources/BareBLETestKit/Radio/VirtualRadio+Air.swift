internal import BLECore
internal import BLELinux
internal import Glibc

// Advertisements and connection attempts: which adapter receives which peripheral, and when.

extension VirtualRadio {
    /// The adapters whose controllers receive advertisements.
    private var listening: [RadioAdapter] {
        adapters.all.filter { isUp($0.index) && $0.isListening }
    }

    /// Sets the timer to the next advertisement that an adapter may receive.
    func scheduleAdvertisements() {
        peripherals.schedule(isReceived: !listening.isEmpty) { [weak self] in
            self?.assumeIsolated { $0.advertise() }
        }
    }

    private func advertise() {
        for placement in peripherals.due() {
            peripherals.passEvent(of: placement)
            for adapter in listening { deliver(placement, to: adapter) }
        }
        scheduleAdvertisements()
    }

    private func deliver(_ placement: PlacedPeripherals.Placement, to adapter: RadioAdapter) {
        guard let advertisement = placement.advertisement, let rssi = placement.proximity.rssi else { return }
        for report in adapter.reports(of: placement.peer, advertisement, rssi: rssi) { send(report, adapter.index) }
        let peripheral = placement.peripheral
        guard advertisement.isConnectable, let current = peripherals[peripheral], !current.isLinked,
            !current.isConnecting, isInitiated(placement.peer, by: adapter)
        else { return }
        guard placement.connectionDelay > .zero else { return respond(peripheral, to: adapter) }
        peripherals.setConnecting(peripheral, true)
        let index = adapter.index
        _ = loop.schedule(at: loop.now() + placement.connectionDelay) { [weak self] in
            self?.assumeIsolated { radio in
                guard radio.peripherals[peripheral]?.isConnecting == true else { return }
                radio.peripherals.setConnecting(peripheral, false)
                if let adapter = radio.adapters[index] { radio.respond(peripheral, to: adapter) }
            }
        }
    }

    private func isInitiated(_ peer: PeerID, by adapter: RadioAdapter) -> Bool {
        // The kernel looks for the identity of a private address that it resolves.
        adapter.initiates(to: peer) || adapter.hasKernelConnect(to: management.peer(onAir: peer, adapter.index))
    }

    /// Completes a connection attempt, if it is still pending and the peer still advertises.
    private func respond(_ peripheral: VirtualPeripheral, to adapter: RadioAdapter) {
        guard let placement = peripherals[peripheral], placement.isHeard, isUp(adapter.index),
            let rssi = placement.proximity.rssi, isInitiated(placement.peer, by: adapter)
        else { return }
        let peer = placement.peer
        let status = peripherals.takeStatus(of: peripheral)
        guard adapter.initiates(to: peer) else {
            return completeKernelConnect(status, peer, peripheral, adapter, rssi)
        }
        let (handle, actions) = adapter.respond(status, rssi: rssi)
        if handle != nil, adapter.hidesLink(with: peripheral) {
            peripherals.setLinked(peripheral, true)
            return scheduleAdvertisements()
        }
        let link = handle.map { LinkName(adapter: adapter.index, handle: $0) }
        if let link { begin(link, peripheral, peer) }
        perform(actions, adapter.index)
        if let link { handOnInitiated(link, peer) }
    }

    private func completeKernelConnect(
        _ status: HCIStatus, _ peer: PeerID, _ peripheral: VirtualPeripheral, _ adapter: RadioAdapter, _ rssi: Int8
    ) {
        guard let connect = adapter.takeKernelConnect(to: management.peer(onAir: peer, adapter.index)) else { return }
        guard status.isSuccess else {
            // The kernel maps only some statuses to their own errno; the others are ENOSYS.
            return connect.fate.withLock { $0 = status == .connectionLimitExceeded ? EMLINK : ENOSYS }
        }
        let link = LinkName(adapter: adapter.index, handle: adapter.accept(peer, rssi: rssi))
        begin(link, peripheral, peer, fate: connect.fate)
        _ = attach(link, connect.end, connect.descriptor, connect.security)
    }
}
