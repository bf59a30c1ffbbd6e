public import BLECore
package import BLELinux
internal import BareBLE
internal import Glibc

// The kernel's Security Manager and management interface of a virtual radio: sockets, the security of links, and the
// encryption that controllers and peripherals perform.

extension VirtualRadio {
    /// The time that a controller takes to encrypt a link, unless it is set.
    static let usualEncryptionTime: Duration = .milliseconds(10)
    /// The time between two looks whether a socket that waits for its encryption was closed.
    static let pollTime: Duration = .milliseconds(500)

    // MARK: Sockets

    /// Opens a socket of the management interface and returns the program's end of it, which the caller owns.
    ///
    /// - Parameter isTrusted: Whether the program has CAP_NET_ADMIN now; `nil` for the radio's permissions.
    package func openManagement(isTrusted: Bool? = nil) -> Result<Int32, SystemCallError> {
        let isTrusted = isTrusted ?? machine.withLock { $0.permissions.contains(.administration) }
        do throws(TestLinkError) {
            let (link, other) = try PeerLink.open(on: loop, bufferSize: 65_536 + 6)
            lastClient += 1
            let number = lastClient
            managementSockets[number] = link
            management.opened(number, isTrusted: isTrusted)
            link.start(
                packet: { [weak self] packet in
                    self?.assumeIsolated { radio in
                        radio.managementCommands += 1
                        radio.perform(radio.management.received(packet, from: number))
                    }
                },
                ended: { [weak self] in
                    self?.assumeIsolated { radio in
                        radio.managementSockets[number] = nil
                        radio.management.closed(number)
                    }
                })
            return .success(other)
        } catch {
            return .failure(SystemCallError(call: "socketpair", errno: EMFILE))
        }
    }

    /// Opens a management socket for the library, on the loop.
    package nonisolated func managementSocket() throws(SystemCallError) -> ManagementSocket {
        ManagementSocket(adopting: try assumeIsolated { $0.openManagement() }.get())
    }

    /// Closes the sockets of the management interface of all programs, which changes nothing else in the kernel.
    package func closeManagement() {
        for (number, link) in managementSockets.sorted(by: { $0.key < $1.key }) {
            management.closed(number)
            link.close()
        }
        managementSockets = [:]
    }

    /// Returns whether the kernel has a Security Manager for an adapter.
    package func hasSecurityManager(_ name: String = "hci0") -> Bool {
        index(of: name).map { management.hasSecurityManager($0) } ?? false
    }

    /// Returns the Long Term Keys that the kernel has for an adapter.
    package func longTermKeys(_ name: String = "hci0") -> [ManagementLongTermKey] {
        index(of: name).map { management.keys(of: $0) } ?? []
    }

    /// Sets the order in which programs see the results of a pairing; `nil` for a random one.
    package func orderResults(_ order: VirtualManagement.ResultOrder?) {
        management.order = order
    }

    /// Sets whether a socket that asked for more than the kernel's keys provide is connected at once, without
    /// encryption, while the kernel pairs; else it never is.
    package func connectWhilePairing(_ isConnected: Bool) {
        management.connectsWhilePairing = isConnected
    }

    /// Sets the time that controllers take to encrypt a link.
    package func delayEncryption(by time: Duration) {
        encryptionTime = time
    }

    /// Makes the controller of an adapter refuse a command about a link from now on; `nil` accepts it again.
    package func refuse(_ opcode: HCIOpcode, with status: HCIStatus?, _ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        controllers[index]?.controller.refusals[opcode] = status
    }

    /// Sets what the hardware of an adapter is from its next coming on: another controller with the same address.
    package func replaceHardware(_ identifier: String, of name: String = "hci0") {
        machine.withLock { $0.hardware[name] = identifier }
    }

    /// Sets whether bluetoothd is seen to have the management interface open.
    package func runBluetoothd(_ runs: Bool) { runsBluetoothd = runs }

    /// Performs what the kernel has decided.
    func perform(_ actions: [VirtualManagement.Action]) {
        for action in actions {
            switch action {
            case .send(let packet, let socket): managementSockets[socket]?.send(packet)
            case .setPower(let adapter, let isUp): setPower(adapter, isUp)
            case .enableLowEnergy(let adapter): _ = machine.withLock { $0.withoutLowEnergy.remove(adapter) }
            case .encrypt(let name, let key):
                encrypt(name.adapter, name.handle, with: VirtualKey(key), isKernels: true)
            case .disconnect(let name): end(name.adapter, name.handle, .localHostTerminated, reporting: true)
            case .encrypted(let name, let security, let bond): paired(name, security, bond)
            case .reportEncryption(let name): reportEncryption(name.adapter, name.handle)
            case .wait(let name): hold(name, true)
            case .proceed(let name): proceed(name)
            case .show(let name, let number):
                controllers[name.adapter]?.links[name.handle]?.peripheral?.assumeIsolated { $0.show(number) }
            case .schedule(let delay, let step): schedule(step, delay)
            case .endGrace(let adapter, let number, let delay):
                _ = loop.schedule(at: loop.now() + delay) { [weak self] in
                    self?.assumeIsolated { $0.management.graceEnded(adapter, number: number) }
                }
            }
        }
        for (name, timer) in pairingTimeouts where !management.isPairing(name) {
            loop.cancel(timer)
            pairingTimeouts[name] = nil
        }
    }

    private func schedule(_ step: VirtualManagement.Step, _ delay: Duration) {
        let timer = loop.schedule(at: loop.now() + delay) { [weak self] in
            self?.assumeIsolated { radio in
                if step.isTimeout { radio.pairingTimeouts[step.link] = nil }
                radio.perform(radio.management.stepDue(step))
            }
        }
        guard step.isTimeout else { return }
        pairingTimeouts.updateValue(timer, forKey: step.link).map(loop.cancel)
    }

    /// Reports a change of an adapter's power to the kernel's Security Manager.
    func powerChanged(_ adapter: UInt16) {
        // A controller that does not respond cannot be set up.
        if isUp(adapter), controllers[adapter]?.isSetUp == false, controllers[adapter]?.isSilent == false {
            controllers[adapter]?.isSetUp = true
            perform(controllers[adapter]?.controller.kernelSetsUp() ?? [], adapter)
        }
        perform(management.powerChanged(adapter, isUp(adapter)))
    }

    // MARK: The security of sockets

    /// Returns the security of a link, by the descriptor of the program's socket; `nil` for another descriptor.
    func security(of descriptor: Int32) -> SocketSecurity? {
        sockets[descriptor].flatMap { management.security(of: $0) }
    }

    /// Requests a level for a link; `nil` for another descriptor, else whether the kernel accepts the request.
    func requestLevel(_ level: SocketSecurity.Level, of descriptor: Int32) -> Bool? {
        guard let name = sockets[descriptor], management.security(of: name) != nil else { return nil }
        guard let actions = management.requestLevel(level, of: name) else { return false }
        perform(actions)
        return true
    }

    /// Connects a socket to a link: at once, or when the link has the level that was requested before.
    ///
    /// - Returns: Whether the socket has to wait.
    func attach(
        _ adapter: UInt16, _ handle: ConnectionHandle, _ end: LinkEndpoint, _ descriptor: Int32,
        _ level: SocketSecurity.Level?
    ) -> Bool {
        guard let link = controllers[adapter]?.links[handle] else { return false }
        let name = VirtualManagement.LinkName(adapter: adapter, handle: handle)
        sockets[descriptor] = name
        controllers[adapter]?.links[handle]?.isAttached = true
        keepUp(adapter, handle)
        if let level { perform(management.socketConnected(name, level)) }
        // What it has sent in clear, before there was a socket, is lost.
        let early = link.isEncrypted ? [] : link.peripheral?.assumeIsolated { $0.security?.earlyPackets } ?? []
        // Whatever the peer sends makes the kernel report the socket as connected.
        guard management.isWaiting(name), early.isEmpty else {
            attach(adapter, handle, end.take())
            for packet in early { link.peripheral?.assumeIsolated { $0.send(raw: packet) } }
            return false
        }
        controllers[adapter]?.links[handle]?.waiting = end
        pollWaiting(name, end)
        return true
    }

    /// Ends a link whose socket was closed while it waited, as the kernel does.
    private func pollWaiting(_ name: VirtualManagement.LinkName, _ end: LinkEndpoint) {
        _ = loop.schedule(at: loop.now() + Self.pollTime) { [weak self] in
            self?.assumeIsolated { radio in
                guard radio.controllers[name.adapter]?.links[name.handle]?.waiting === end else { return }
                if end.isHungUp {
                    radio.controllers[name.adapter]?.links[name.handle]?.waiting = nil
                    radio.end(name.adapter, name.handle, .localHostTerminated, after: Self.unattachedTime)
                } else {
                    radio.pollWaiting(name, end)
                }
            }
        }
    }

    /// The link has the level that its socket waited for.
    private func proceed(_ name: VirtualManagement.LinkName) {
        if let end = controllers[name.adapter]?.links[name.handle]?.waiting {
            controllers[name.adapter]?.links[name.handle]?.waiting = nil
            attach(name.adapter, name.handle, end.take())
        }
        hold(name, false)
    }

    private func hold(_ name: VirtualManagement.LinkName, _ isHeld: Bool) {
        guard let peripheral = controllers[name.adapter]?.links[name.handle]?.peripheral else { return }
        let isOut = placement(of: peripheral).map { placements[$0].proximity.rssi == nil } ?? true
        peripheral.assumeIsolated { $0.hold(isHeld || isOut) }
    }

    // MARK: Encryption

    /// Encrypts a link with a stored key, for the kernel or for a command of a program.
    func encrypt(_ adapter: UInt16, _ handle: ConnectionHandle, with key: VirtualKey, isKernels: Bool) {
        guard let fate = controllers[adapter]?.links[handle]?.fate else { return }
        _ = loop.schedule(at: loop.now() + encryptionTime) { [weak self] in
            self?.assumeIsolated { radio in
                guard let running = radio.controllers[adapter], let link = running.links[handle], link.fate === fate,
                    let peripheral = link.peripheral
                else { return }
                let central = running.controller.address
                switch peripheral.assumeIsolated({ $0.encrypted(with: key, by: central) }) {
                case .encrypted:
                    radio.reportEncryption(adapter, handle)
                    radio.encryptionEnded(adapter, handle, .success, isKernels)
                case .keyMissing:
                    radio.send(VirtualController.encryptionChange(handle, .keyMissing, isOn: false), adapter)
                    radio.encryptionEnded(adapter, handle, .keyMissing, isKernels)
                case .otherKey: radio.end(adapter, handle, .micFailure, reporting: true)
                }
            }
        }
    }

    /// Ends the encryption of a peripheral's link, which stays up.
    package func stopEncryption(of peripheral: VirtualPeripheral) {
        forEachLink(of: peripheral) { adapter, handle in
            controllers[adapter]?.links[handle]?.isEncrypted = false
            peripheral.assumeIsolated { $0.setLinkSecurity(.none) }
            management.encryptionStopped(VirtualManagement.LinkName(adapter: adapter, handle: handle))
            send(VirtualController.encryptionChange(handle, .success, isOn: false), adapter)
        }
    }

    private func encryptionEnded(
        _ adapter: UInt16, _ handle: ConnectionHandle, _ status: HCIStatus, _ isKernels: Bool
    ) {
        let name = VirtualManagement.LinkName(adapter: adapter, handle: handle)
        perform(management.encryptionEnded(name, status, isKernels: isKernels))
    }

    private func reportEncryption(_ adapter: UInt16, _ handle: ConnectionHandle) {
        guard let link = controllers[adapter]?.links[handle] else { return }
        controllers[adapter]?.links[handle]?.isEncrypted = true
        send(
            link.isEncrypted
                ? VirtualController.encryptionKeyRefresh(handle)
                : VirtualController.encryptionChange(handle, .success, isOn: true), adapter)
    }

    private func paired(
        _ name: VirtualManagement.LinkName, _ security: VirtualLinkSecurity, _ bond: VirtualBond?
    ) {
        guard let running = controllers[name.adapter], let link = running.links[name.handle] else { return }
        let central = running.controller.address
        link.peripheral?.assumeIsolated { $0.paired(security, with: central, bond) }
    }

    // MARK: Links

    /// Tells the kernel's Security Manager of a new link, and sends what the peer sends first.
    func securityBegan(_ name: VirtualManagement.LinkName, _ peripheral: VirtualPeripheral, _ peer: PeerID) {
        perform(management.linkBegan(name, peer) { peripheral.assumeIsolated { $0.security } })
        let fate = controllers[name.adapter]?.links[name.handle]?.fate
        let request: @Sendable (VirtualSecurityRequest) -> Void = { [weak self] request in
            self?.assumeIsolated { radio in
                guard let link = radio.controllers[name.adapter]?.links[name.handle], link.fate === fate else { return }
                radio.perform(radio.management.securityRequested(name, request))
            }
        }
        peripheral.assumeIsolated { $0.requestingSecurity = request }
        guard let first = peripheral.assumeIsolated({ $0.security?.request }) else { return }
        _ = loop.schedule(at: loop.now() + encryptionTime) { request(first) }
    }

    // MARK: Private addresses

    /// Changes the address of a peripheral to the next private address of its identity; does nothing if it has none.
    ///
    /// - Returns: The new address.
    @discardableResult
    public func rotateAddress(of peripheral: VirtualPeripheral) -> PeerID? {
        guard let identity = peripheral.assumeIsolated({ $0.security?.identity }) else { return nil }
        lastPrivateAddress &+= 1
        let address = PrivateAddress.address(
            Secret128(padding: identity.key), prand: lastPrivateAddress &* 0x9E37_79B1 >> 4)
        let peer = PeerID(address: address, type: .random)
        changeAddress(of: peripheral, to: peer)
        return peer
    }
}
