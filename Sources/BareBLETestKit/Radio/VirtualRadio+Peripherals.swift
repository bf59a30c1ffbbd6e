public import BLECore
internal import BLELinux

// The peripherals in the air: placing them, moving them, and what else may happen to them.

extension VirtualRadio {
    /// Places a peripheral with an address and an advertisement that are usual for the device.
    ///
    /// - Parameters:
    ///   - device: What it serves.
    ///   - proximity: How far away it is.
    ///   - latency: How long it takes to answer a request: on air at least one connection interval.
    @discardableResult
    public func add(
        _ device: VirtualDevice, proximity: VirtualProximity = .near, latency: Duration = .milliseconds(30)
    ) -> VirtualPeripheral {
        let peripheral = VirtualPeripheral(device, latency: latency, loop: loop)
        place(peripheral, as: newAddress(), advertising: VirtualAdvertisement(device), proximity: proximity)
        return peripheral
    }

    /// A peripheral for this radio, which is not placed yet: in no other time can it be linked here.
    public nonisolated func peripheral(_ device: VirtualDevice, latency: Duration = .zero) -> VirtualPeripheral {
        VirtualPeripheral(device, latency: latency, loop: loop)
    }

    /// Places a peripheral that `peripheral(_:latency:)` or a virtual time has made; `nil` advertises nothing.
    ///
    /// One that is here already gets the new address, advertisement and place.
    public func place(
        _ peripheral: VirtualPeripheral, as peer: PeerID, advertising advertisement: VirtualAdvertisement?,
        proximity: VirtualProximity = .near
    ) {
        // A test's own mistake, and one that would make it depend on chance.
        precondition(peripheral.loop === loop, "the peripheral lives in another time than the radio")
        if placement(of: peripheral) == nil {
            let now = loop.now()
            placements.append(
                Placement(
                    peripheral: peripheral, peer: peer, advertisement: advertisement, proximity: proximity, start: now,
                    due: now))
        }
        change(peripheral) { placement in
            placement.peer = peer
            placement.advertisement = advertisement
        }
        move(peripheral, to: proximity)
    }

    /// The address that a peripheral has now; `nil` when it is not here.
    public func id(of peripheral: VirtualPeripheral) -> PeerID? {
        placement(of: peripheral).map { placements[$0].peer }
    }

    /// Moves a peripheral nearer or away. Out of range it is heard no more: its link ends after the supervision time, unless it
    /// comes back before.
    public func move(_ peripheral: VirtualPeripheral, to proximity: VirtualProximity) {
        change(peripheral) { $0.proximity = proximity }
        peripheral.assumeIsolated { $0.hold(proximity.rssi == nil) }
        let isLinked = peripheral.assumeIsolated { $0.isConnected }
        forEachLink(of: peripheral) { index, handle in
            if let rssi = proximity.rssi {
                controllers[index]?.controller.links[handle]?.rssi = rssi
                // One that the peripheral forgot when it was reset, or whose socket is gone, is lost for good.
                if let link = controllers[index]?.links[handle], link.isAttached, !link.isForgotten, isLinked {
                    keepUp(index, handle)
                }
            } else {
                loseTouch(index, handle)
            }
        }
    }

    /// Takes a peripheral away for good, as out of range.
    public func remove(_ peripheral: VirtualPeripheral) {
        move(peripheral, to: .outOfRange)
        placements.removeAll { $0.peripheral === peripheral }
        scheduleAdvertisements()
    }

    /// Has a peripheral end its link, for the reason that the controller then tells.
    public func hangUp(_ peripheral: VirtualPeripheral, because reason: HCIStatus = .remoteUserTerminated) {
        forEachLink(of: peripheral) { index, handle in end(index, handle, reason, tell: true) }
    }

    /// Takes a peripheral's battery out and puts it in again: it forgets what was written to it, ends nothing, and advertises again
    /// after `pause`. The central learns of it by the supervision time.
    public func reset(_ peripheral: VirtualPeripheral, advertisingAfter pause: Duration = .milliseconds(500)) {
        peripheral.assumeIsolated { $0.restart() }
        change(peripheral) { [loop] placement in
            placement.isLinked = false
            placement.isAnswering = false
            placement.start = loop.now() + pause
            placement.due = placement.start
        }
        forEachLink(of: peripheral) { index, handle in
            controllers[index]?.links[handle]?.isForgotten = true
            loseTouch(index, handle)
        }
    }

    /// Gives a peripheral another address, as those with private addresses take every quarter of an hour. A link stays.
    public func changeAddress(of peripheral: VirtualPeripheral, to peer: PeerID) {
        change(peripheral) { $0.peer = peer }
    }

    /// Changes what a peripheral advertises; `nil` ends it.
    public func advertise(_ peripheral: VirtualPeripheral, _ advertisement: VirtualAdvertisement?) {
        change(peripheral) { $0.advertisement = advertisement }
    }

    /// Has each connect to a peripheral take so much longer from the moment in which it is heard.
    public func delayConnections(to peripheral: VirtualPeripheral, by delay: Duration) {
        change(peripheral) { $0.connectionDelay = delay }
    }

    /// Has the next connects to a peripheral fail, once for each status.
    public func refuseConnections(to peripheral: VirtualPeripheral, with statuses: [HCIStatus]) {
        change(peripheral) { $0.refusals = statuses }
    }

    // MARK: Inside

    func placement(of peripheral: VirtualPeripheral) -> Int? {
        placements.firstIndex { $0.peripheral === peripheral }
    }

    func change(_ peripheral: VirtualPeripheral, _ change: (inout Placement) -> Void) {
        guard let index = placement(of: peripheral) else { return }
        change(&placements[index])
        scheduleAdvertisements()
    }

    func forEachLink(of peripheral: VirtualPeripheral, _ body: (UInt16, ConnectionHandle) -> Void) {
        for (index, running) in controllers.sorted(by: { $0.key < $1.key }) {
            for (handle, link) in running.links.sorted(by: { $0.key < $1.key }) where link.peripheral === peripheral {
                body(index, handle)
            }
        }
    }
}
