internal import BLECore
internal import BLELinux
internal import Glibc

// Links: from the controller's event to the descriptor, and to their end.

extension VirtualRadio {
    /// The time that a link stays up without a socket.
    static let unattachedTime: Duration = .seconds(2)
    /// The time from the beginning of a link to the change of its PHY.
    private static let changeTime: Duration = .milliseconds(200)

    /// Registers a link that has no socket yet.
    func begin(
        _ name: LinkName, _ peripheral: VirtualPeripheral, _ peer: PeerID, fate: Lock<Int32?> = Lock(nil)
    ) {
        links.begin(name, RadioLink(.peripheral(peripheral), peer, fate: fate))
        peripherals.setLinked(peripheral, true)
        scheduleAdvertisements()
        end(name, .localHostTerminated, after: Self.unattachedTime)
        securityBegan(name, peripheral, peer)
    }

    /// Passes the far end of a link to its peripheral.
    func attach(_ name: LinkName, _ descriptor: Int32) {
        guard let peripheral = links[name]?.peripheral else {
            return _ = FarEnd(descriptor)
        }
        let isHeld = peripherals.isOutOfRange(peripheral)
        let loss = adapters[name.adapter]?.personality.losesData
        peripheral.assumeIsolated { peripheral in
            peripheral.connect(over: descriptor, losing: loss) { [weak self] in
                self?.assumeIsolated { $0.end(name, .remoteUserTerminated, reporting: true) }
            } clientGone: { [weak self] in
                // The kernel keeps a link without a socket for a while.
                self?.assumeIsolated { $0.end(name, .localHostTerminated, after: Self.unattachedTime) }
            }
            if isHeld { peripheral.hold(true) }
        }
        if isHeld { loseTouch(name) }
        if adapters[name.adapter]?.losesLinks == true { breakSoon(name, peripheral) }
    }

    /// The two controllers change to a PHY that one of them does not support correctly.
    private func breakSoon(_ name: LinkName, _ peripheral: VirtualPeripheral) {
        _ = loop.schedule(at: loop.now() + Self.changeTime) { [weak self] in
            self?.assumeIsolated { radio in
                guard radio.links[name]?.peripheral === peripheral else { return }
                peripheral.assumeIsolated { $0.hold(true) }
                radio.loseTouch(name)
            }
        }
    }

    /// Starts the supervision timeout of a link whose peer is out of range.
    func loseTouch(_ name: LinkName) {
        guard links[name]?.isEnding != true,
            let timeout = adapters[name.adapter]?.supervisionTimeout(of: name.handle)
        else { return }
        end(name, .connectionTimeout, after: timeout)
    }

    func end(_ name: LinkName, _ reason: HCIStatus, after pause: Duration) {
        links.end(name, after: pause) { [weak self] in
            self?.assumeIsolated { $0.end(name, reason, reporting: true) }
        }
    }

    /// Ends a link that a program has disconnected by a command.
    func disconnect(_ name: LinkName) {
        guard let time = links.disconnectionTime, let fate = links[name]?.fate else {
            return end(name, .localHostTerminated, reporting: true)
        }
        // Until then the kernel has it, and attaches another socket to it.
        links.setAttached(name, false)
        _ = loop.schedule(at: loop.now() + time) { [weak self] in
            self?.assumeIsolated { radio in
                guard radio.links[name]?.fate === fate else { return }
                radio.end(name, .localHostTerminated, reporting: true)
            }
        }
    }

    /// Ends a link. Pass true for `reporting` unless the controller cannot report it, because it was reset or removed.
    func end(_ name: LinkName, _ reason: HCIStatus, reporting: Bool) {
        guard let link = links.remove(name) else { return }
        adapters[name.adapter]?.linkEnded(name.handle)
        link.fate.withLock { $0 = Self.errno(of: reason) }
        if reporting { send(VirtualController.disconnectionComplete(name.handle, reason), name.adapter) }
        link.waiting?.close()
        perform(management.linkEnded(name, reason))
        listeners.withdraw(name)
        switch link.partner {
        case .central(let central):
            central.assumeIsolated { $0.linkEnded(reason, isForgotten: link.isForgotten) }
        case .peripheral(let peripheral) where link.isForgotten:
            peripheral.assumeIsolated { $0.forgottenConnectionLost() }
        case .peripheral(let peripheral):
            peripheral.assumeIsolated { $0.connectionLost() }
            peripherals.setLinked(peripheral, false)
            scheduleAdvertisements()
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
        let index = machine.withLock { machine in machine.adapters.first { $0.address == own && $0.isUp }?.index }
        guard let index, let adapter = adapters[index] else { return failure(EHOSTUNREACH) }
        guard machine.withLock({ $0.hasLowEnergy(index) }) else { return failure(ECONNREFUSED) }
        let known = links.names(of: index).first { management.peer(of: $0) == peer }
        if let known, links[known]?.isAttached == true { return failure(EBUSY) }
        do throws(SystemCallError) {
            let (ours, theirs) = try LinkSocket.pair()
            if let known, let fate = links[known]?.fate {
                let isWaiting = attach(known, FarEnd(theirs), ours, security)
                return .success((ours, fate, isWaiting, known.handle))
            }
            perform(adapter.kernelInitiates(), index)
            let fate = Lock<Int32?>(nil)
            let connect = KernelConnect(
                peer: peer, end: FarEnd(theirs), descriptor: ours, security: security, fate: fate)
            adapter.begin(connect)
            _ = loop.schedule(at: loop.now() + timeout) { [weak self] in
                self?.assumeIsolated { $0.giveUp(connect, index) }
            }
            scheduleAdvertisements()
            return .success((ours, fate, true, nil))
        } catch {
            return .failure(error)
        }
    }

    private func giveUp(_ connect: KernelConnect, _ adapter: UInt16) {
        connect.fate.withLock { $0 = $0 ?? ECONNREFUSED }
        adapters[adapter]?.end(connect)
        perform(management.initiatingEnded(adapter))
        scheduleAdvertisements()
    }

    private func failure<Value>(_ errno: Int32) -> Result<Value, SystemCallError> {
        .failure(SystemCallError(call: "connect", errno: errno))
    }
}
