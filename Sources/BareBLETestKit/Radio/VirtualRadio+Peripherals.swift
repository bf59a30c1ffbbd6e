public import BLECore
internal import BLELinux

// The peripherals: placing and moving them, and their faults.

extension VirtualRadio {
    /// Adds a peripheral with a default address and advertisement for the device.
    ///
    /// - Parameters:
    ///   - device: The device to serve.
    ///   - proximity: The distance.
    ///   - latency: The response time; on air, at least one connection interval.
    @discardableResult
    public func add(
        _ device: VirtualDevice, proximity: VirtualProximity = .near, latency: Duration = .milliseconds(30)
    ) -> VirtualPeripheral {
        let peripheral = VirtualPeripheral(device, latency: latency, loop: loop)
        place(peripheral, as: newAddress(), advertising: VirtualAdvertisement(device), proximity: proximity)
        return peripheral
    }

    /// Creates a peripheral for this radio without placing it. A peripheral of another time cannot be used here.
    public nonisolated func peripheral(_ device: VirtualDevice, latency: Duration = .zero) -> VirtualPeripheral {
        VirtualPeripheral(device, latency: latency, loop: loop)
    }

    /// Places a peripheral that `peripheral(_:latency:)` or a virtual time has created; `nil` advertises nothing.
    ///
    /// If it is already placed, its address, advertisement and distance change.
    public func place(
        _ peripheral: VirtualPeripheral, as peer: PeerID, advertising advertisement: VirtualAdvertisement?,
        proximity: VirtualProximity = .near
    ) {
        // A mistake of the test itself, which would make its result depend on chance.
        precondition(peripheral.loop === loop, "the peripheral lives in another time than the radio")
        peripherals.place(peripheral, as: peer, advertisement, proximity)
        move(peripheral, to: proximity)
    }

    /// Returns the current address of a peripheral, or `nil` if it is not placed.
    public func id(of peripheral: VirtualPeripheral) -> PeerID? {
        peripherals[peripheral]?.peer
    }

    /// Moves a peripheral. Out of range, its link ends after the supervision timeout, unless it returns earlier.
    public func move(_ peripheral: VirtualPeripheral, to proximity: VirtualProximity) {
        peripherals.setProximity(of: peripheral, proximity)
        scheduleAdvertisements()
        peripheral.assumeIsolated { $0.hold(proximity.rssi == nil) }
        let isLinked = peripheral.assumeIsolated { $0.isConnected }
        for name in links.names(of: peripheral) {
            guard let rssi = proximity.rssi else {
                loseTouch(name)
                continue
            }
            adapters[name.adapter]?.setRSSI(rssi, of: name.handle)
            // A link that the peripheral forgot on reset, or whose socket is closed, cannot recover.
            if let link = links[name], link.isAttached, !link.isForgotten, isLinked { links.keep(name) }
        }
    }

    /// Removes a peripheral permanently, as if out of range.
    public func remove(_ peripheral: VirtualPeripheral) {
        move(peripheral, to: .outOfRange)
        peripherals.remove(peripheral)
        scheduleAdvertisements()
    }

    /// Makes a peripheral disconnect, with the reason that the controller then reports.
    public func disconnect(_ peripheral: VirtualPeripheral, because reason: HCIStatus = .remoteUserTerminated) {
        for name in links.names(of: peripheral) { end(name, reason, reporting: true) }
    }

    /// The former name of `disconnect(_:because:)`.
    @available(*, deprecated, renamed: "disconnect(_:because:)")
    public func hangUp(_ peripheral: VirtualPeripheral, because reason: HCIStatus = .remoteUserTerminated) {
        disconnect(peripheral, because: reason)
    }

    /// Power-cycles a peripheral: it loses written state, does not disconnect, and advertises again after `pause`. The
    /// central detects it by the supervision timeout.
    public func reset(_ peripheral: VirtualPeripheral, advertisingAfter pause: Duration = .milliseconds(500)) {
        peripheral.assumeIsolated { $0.restart() }
        peripherals.restart(peripheral, advertisingAfter: pause)
        scheduleAdvertisements()
        for name in links.names(of: peripheral) {
            links.forget(name)
            loseTouch(name)
        }
    }

    /// Ends a peripheral's links, whose events are lost for the kernel too: it has them until a program disconnects
    /// them. The peripheral loses written state.
    package func endUnnoticed(_ peripheral: VirtualPeripheral) {
        peripheral.assumeIsolated { $0.restart() }
        peripherals.setLinked(peripheral, false)
        scheduleAdvertisements()
        for name in links.names(of: peripheral) {
            links.forget(name)
            adapters[name.adapter]?.linkEnded(name.handle)
        }
    }

    /// Changes a peripheral's address, as devices with private addresses do every 15 minutes. An existing link is kept.
    public func changeAddress(of peripheral: VirtualPeripheral, to peer: PeerID) {
        peripherals.setAddress(of: peripheral, peer)
        scheduleAdvertisements()
    }

    /// Changes a peripheral's advertisement; `nil` stops advertising.
    public func advertise(_ peripheral: VirtualPeripheral, _ advertisement: VirtualAdvertisement?) {
        peripherals.setAdvertisement(of: peripheral, advertisement)
        scheduleAdvertisements()
    }

    /// Delays each connection to a peripheral by this time after its advertisement was received.
    public func delayConnections(to peripheral: VirtualPeripheral, by delay: Duration) {
        peripherals.delayConnections(to: peripheral, by: delay)
    }

    /// Makes the next connections to a peripheral fail, one for each status.
    public func refuseConnections(to peripheral: VirtualPeripheral, with statuses: [HCIStatus]) {
        peripherals.refuseConnections(to: peripheral, with: statuses)
    }
}
