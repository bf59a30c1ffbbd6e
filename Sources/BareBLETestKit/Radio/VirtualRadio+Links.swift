internal import BLECore
internal import BLELinux
internal import Glibc

// Links: from the controller's event to the descriptor, and to their end.

extension VirtualRadio {
    /// Registers a link that has no socket yet.
    func begin(
        _ handle: ConnectionHandle, _ adapter: UInt16, _ peripheral: VirtualPeripheral, _ peer: PeerID,
        fate: Lock<Int32?> = Lock(nil)
    ) {
        controllers[adapter]?.links[handle] = RadioLink(partner: .peripheral(peripheral), peer: peer, fate: fate)
        change(peripheral) { $0.isLinked = true }
        end(adapter, handle, .localHostTerminated, after: Self.unattachedTime)
        securityBegan(VirtualManagement.LinkName(adapter: adapter, handle: handle), peripheral, peer)
    }

    /// Passes the far end of a link to its peripheral.
    func attach(_ adapter: UInt16, _ handle: ConnectionHandle, _ descriptor: Int32) {
        guard let peripheral = controllers[adapter]?.links[handle]?.peripheral else {
            return _ = LinkEndpoint(descriptor)
        }
        let isHeld = placement(of: peripheral).map { placements[$0].proximity.rssi == nil } ?? true
        peripheral.assumeIsolated { peripheral in
            peripheral.connect(over: descriptor) { [weak self] in
                self?.assumeIsolated { $0.end(adapter, handle, .remoteUserTerminated, reporting: true) }
            } clientGone: { [weak self] in
                // The kernel keeps a link without a socket for a while.
                self?.assumeIsolated { $0.end(adapter, handle, .localHostTerminated, after: Self.unattachedTime) }
            }
            if isHeld { peripheral.hold(true) }
        }
        if isHeld { loseTouch(adapter, handle) }
        if controllers[adapter]?.controller.losesLinks == true { breakSoon(adapter, handle, peripheral) }
    }

    /// The two controllers change to a PHY that one of them does not master.
    private func breakSoon(_ adapter: UInt16, _ handle: ConnectionHandle, _ peripheral: VirtualPeripheral) {
        _ = loop.schedule(at: loop.now() + Self.changeTime) { [weak self] in
            self?.assumeIsolated { radio in
                guard radio.controllers[adapter]?.links[handle]?.peripheral === peripheral else { return }
                peripheral.assumeIsolated { $0.hold(true) }
                radio.loseTouch(adapter, handle)
            }
        }
    }

    /// How long after its beginning a link changes its PHY.
    private static let changeTime: Duration = .milliseconds(200)

    /// Starts the supervision timeout of a link whose peer is out of range.
    func loseTouch(_ adapter: UInt16, _ handle: ConnectionHandle) {
        guard let running = controllers[adapter], running.links[handle]?.timer == nil,
            let parameters = running.controller.links[handle]?.parameters
        else { return }
        end(adapter, handle, .connectionTimeout, after: parameters.supervisionTimeout)
    }

    /// Cancels the pending end of a link.
    func keepUp(_ adapter: UInt16, _ handle: ConnectionHandle) {
        controllers[adapter]?.links[handle]?.timer.map(loop.cancel)
        controllers[adapter]?.links[handle]?.timer = nil
    }

    func end(_ adapter: UInt16, _ handle: ConnectionHandle, _ reason: HCIStatus, after pause: Duration) {
        keepUp(adapter, handle)
        controllers[adapter]?.links[handle]?.timer = loop.schedule(at: loop.now() + pause) { [weak self] in
            self?.assumeIsolated { $0.end(adapter, handle, reason, reporting: true) }
        }
    }

    /// Ends a link. Pass true for `reporting` unless the controller cannot report it, because it was reset or removed.
    func end(_ adapter: UInt16, _ handle: ConnectionHandle, _ reason: HCIStatus, reporting: Bool) {
        keepUp(adapter, handle)
        guard let link = controllers[adapter]?.links.removeValue(forKey: handle) else { return }
        controllers[adapter]?.controller.links[handle] = nil
        link.fate.withLock { $0 = Self.errno(of: reason) }
        if reporting { send(VirtualController.disconnectionComplete(handle, reason), adapter) }
        link.waiting?.close()
        let name = VirtualManagement.LinkName(adapter: adapter, handle: handle)
        perform(management.linkEnded(name, reason))
        withdrawWaiting(name)
        switch link.partner {
        case .central(let central):
            central.assumeIsolated { $0.linkEnded(reason, isForgotten: link.isForgotten) }
        case .peripheral(let peripheral) where link.isForgotten:
            peripheral.assumeIsolated { $0.forgottenConnectionLost() }
        case .peripheral(let peripheral):
            peripheral.assumeIsolated { $0.connectionLost() }
            change(peripheral) { $0.isLinked = false }
        }
    }

    private static func errno(of reason: HCIStatus) -> Int32 {
        switch reason {
        case .connectionTimeout: ETIMEDOUT
        case .localHostTerminated: ECONNABORTED
        case .micFailure: ENOSYS
        default: ECONNRESET
        }
    }

    // MARK: Kernel requests

    /// Connects a socket from the adapter with this address, to an established link or by the kernel's own means.
    func connect(
        from own: BluetoothAddress, to peer: PeerID, timeout: Duration, security: SocketSecurity.Level?
    ) -> Result<
        (descriptor: Int32, fate: Lock<Int32?>, isConnecting: Bool, handle: ConnectionHandle?), SystemCallError
    > {
        let adapter = machine.withLock { machine in machine.adapters.first { $0.address == own && $0.isUp }?.index }
        guard let adapter, let running = controllers[adapter] else { return failure(EHOSTUNREACH) }
        if machine.withLock({ $0.withoutLowEnergy.contains(adapter) }) { return failure(ECONNREFUSED) }
        let known = running.links.sorted { $0.key < $1.key }.first { handle, _ in
            management.peer(of: VirtualManagement.LinkName(adapter: adapter, handle: handle)) == peer
        }
        if let known, known.value.isAttached { return failure(EBUSY) }
        do throws(SystemCallError) {
            let (ours, theirs) = try LinkSocket.pair()
            if let known {
                let isWaiting = attach(adapter, known.key, LinkEndpoint(theirs), ours, security)
                return .success((ours, known.value.fate, isWaiting, known.key))
            }
            if let actions = controllers[adapter]?.controller.kernelInitiates() { perform(actions, adapter) }
            let fate = Lock<Int32?>(nil)
            let call = KernelCall(
                peer: peer, end: LinkEndpoint(theirs), descriptor: ours, security: security, fate: fate)
            controllers[adapter]?.kernelCalls.append(call)
            _ = loop.schedule(at: loop.now() + timeout) { [weak self] in
                self?.assumeIsolated { $0.giveUp(call, adapter) }
            }
            scheduleAdvertisements()
            return .success((ours, fate, true, nil))
        } catch {
            return .failure(error)
        }
    }

    private func giveUp(_ call: KernelCall, _ adapter: UInt16) {
        call.fate.withLock { $0 = $0 ?? ECONNREFUSED }
        controllers[adapter]?.kernelCalls.removeAll { $0.end === call.end }
        scheduleAdvertisements()
    }

    private func failure<Value>(_ errno: Int32) -> Result<Value, SystemCallError> {
        .failure(SystemCallError(call: "connect", errno: errno))
    }
}
