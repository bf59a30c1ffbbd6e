public import BLECore
package import BLELinux
internal import BareBLE
internal import Glibc

// The kernel's Security Manager and management interface of a virtual radio: sockets, the security of links, and the
// encryption that controllers and peripherals perform.

extension VirtualRadio {
    /// The time between two looks whether a socket that waits for its encryption was closed.
    private static let pollTime: Duration = .milliseconds(500)

    // MARK: Sockets

    /// Opens a socket of the management interface and returns the program's end of it, which the caller owns.
    ///
    /// - Parameter isTrusted: Whether the program has CAP_NET_ADMIN now; `nil` for the radio's permissions.
    package func openManagement(isTrusted: Bool? = nil) -> Result<Int32, SystemCallError> {
        let isTrusted = isTrusted ?? machine.withLock { $0.permissions.contains(.administration) }
        if managementSockets.isRefusing { return .failure(SystemCallError(call: "socket", errno: EMFILE)) }
        do throws(TestLinkError) {
            let (link, other) = try PeerLink.open(on: loop, bufferSize: 65_536 + 6)
            let number = newSocket()
            managementSockets.add(number, link)
            management.opened(number, isTrusted: isTrusted)
            link.start(
                packet: { [weak self] packet in
                    self?.assumeIsolated { radio in
                        radio.managementSockets.countPacket()
                        guard !radio.managementSockets.ignores(packet) else { return }
                        let actions = radio.management.received(packet, from: number) { adapter in
                            radio.adapters[adapter]?.personality.listsExtendedCommands ?? true
                        }
                        radio.perform(actions)
                    }
                },
                ended: { [weak self] in
                    self?.assumeIsolated { radio in
                        radio.managementSockets.remove(number)
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

    /// Has the kernel take a packet of the management interface from now on, and not respond to it; `nil` for none.
    package func ignoreManagementPacket(_ packet: [UInt8]?) { managementSockets.ignore(packet) }

    /// Has the kernel open no socket of the management interface: too many descriptors are open.
    package func refuseManagement(_ isRefusing: Bool) { managementSockets.refuse(isRefusing) }

    /// Closes the sockets of the management interface of all programs, which changes nothing else in the kernel.
    package func closeManagement() {
        for number in managementSockets.closeAll() { management.closed(number) }
    }

    /// Returns whether the kernel has a Security Manager for an adapter.
    package func hasSecurityManager(_ name: String = "hci0") -> Bool {
        index(of: name).map { management.hasSecurityManager($0) } ?? false
    }

    /// Returns the Long Term Keys that the kernel has for an adapter.
    package func longTermKeys(_ name: String = "hci0") -> [ManagementLongTermKey] {
        index(of: name).map { management.keys(of: $0) } ?? []
    }

    /// Returns the numbers of the advertising instances that the kernel has for an adapter, of all programs.
    package func instances(_ name: String = "hci0") -> [UInt8] {
        index(of: name).map { management.instances(of: $0) } ?? []
    }

    /// Sets how many advertising instances the kernel can have for an adapter; `nil` for as many as its controller
    /// allows.
    package func limitInstances(to count: UInt8?, _ name: String = "hci0") {
        if let index = index(of: name) { management.limitInstances(to: count, index) }
    }

    /// Sets the order in which programs see the results of a pairing; `nil` for a random one.
    package func orderResults(_ order: VirtualManagement.ResultOrder?) {
        management.orderResults(order)
    }

    /// Sets whether a socket that asked for more than the kernel's keys provide is connected at once, without
    /// encryption, while the kernel pairs; else it never is.
    package func connectWhilePairing(_ isConnected: Bool) {
        management.connectWhilePairing(isConnected)
    }

    /// Sets the time that controllers take to encrypt a link.
    package func delayEncryption(by time: Duration) {
        securityTimers.setEncryptionTime(time)
    }

    /// Sets the time from a program's command that ends a link to its end, which the controller then reports; `nil` for
    /// both at once.
    package func delayDisconnections(by time: Duration?) {
        links.setDisconnectionTime(time)
    }

    /// Makes the controller of an adapter refuse a command about a link from now on; `nil` accepts it again.
    package func refuse(_ opcode: HCIOpcode, with status: HCIStatus?, _ name: String = "hci0") {
        adapter(name)?.refuse(opcode, with: status)
    }

    /// Sets what the hardware of an adapter is from its next coming on: another controller with the same address.
    package func replaceHardware(_ identifier: String, of name: String = "hci0") {
        machine.withLock { $0.replaceHardware(identifier, of: name) }
    }

    /// Sets whether bluetoothd is seen to have the management interface open.
    package func runBluetoothd(_ runs: Bool) { machine.withLock { $0.runBluetoothd(runs) } }

    /// Performs what the kernel has decided.
    func perform(_ actions: [VirtualManagement.Action]) {
        for action in actions {
            switch action {
            case .send(let packet, let socket): managementSockets.send(packet, to: socket)
            case .setPower(let adapter, let isUp): setPower(adapter, isUp)
            case .enableLowEnergy(let adapter): machine.withLock { $0.setLowEnergy(of: adapter, true) }
            case .command(let index, let command):
                guard isUp(index), let adapter = adapters[index] else { continue }
                perform(adapter.execute(command, of: nil), index)
            case .encrypt(let name, let key): encrypt(name, with: VirtualKey(key), isKernels: true)
            case .disconnect(let name): end(name, .localHostTerminated, reporting: true)
            case .encrypted(let name, let security, let bond): paired(name, security, bond)
            case .reportEncryption(let name): reportEncryption(name)
            case .wait(let name): hold(name, true)
            case .proceed(let name): proceed(name)
            case .show(let name, let number): links[name]?.peripheral?.assumeIsolated { $0.show(number) }
            case .schedule(let delay, let step): schedule(step, delay)
            case .endGrace(let adapter, let number, let delay):
                _ = loop.schedule(at: loop.now() + delay) { [weak self] in
                    self?.assumeIsolated { $0.management.graceEnded(adapter, number: number) }
                }
            }
        }
        securityTimers.cancelTimeouts { management.isPairing($0) }
    }

    private func schedule(_ step: VirtualManagement.Step, _ delay: Duration) {
        let due: EventLoop.Handler = { [weak self] in
            self?.assumeIsolated { radio in radio.perform(radio.management.stepDue(step)) }
        }
        if step.isTimeout {
            securityTimers.setTimeout(of: step.link, after: delay, due)
        } else {
            _ = loop.schedule(at: loop.now() + delay, due)
        }
    }

    /// Reports a change of an adapter's power to the kernel's Security Manager.
    func powerChanged(_ adapter: UInt16) {
        if isUp(adapter) { perform(adapters[adapter]?.setUp() ?? [], adapter) }
        perform(management.powerChanged(adapter, isUp(adapter)))
    }

    // MARK: The security of sockets

    /// Returns the security of a link, by the descriptor of the program's socket; `nil` for another descriptor.
    func security(of descriptor: Int32) -> SocketSecurity? {
        links.name(ofSocket: descriptor).flatMap { management.security(of: $0) }
    }

    /// Requests a level for a link; `nil` for another descriptor, else whether the kernel accepts the request.
    func requestLevel(_ level: SocketSecurity.Level, of descriptor: Int32) -> Bool? {
        guard let name = links.name(ofSocket: descriptor), management.security(of: name) != nil else { return nil }
        guard let actions = management.requestLevel(level, of: name) else { return false }
        perform(actions)
        return true
    }

    /// Connects a socket to a link: at once, or when the link has the level that was requested before.
    ///
    /// - Returns: Whether the socket has to wait.
    func attach(
        _ name: LinkName, _ end: FarEnd, _ descriptor: Int32, _ level: SocketSecurity.Level?
    ) -> Bool {
        guard let link = links[name] else { return false }
        links.connect(descriptor, to: name)
        links.setAttached(name, true)
        links.keep(name)
        if let level { perform(management.socketConnected(name, level)) }
        // What it has sent without encryption, before there was a socket, is lost.
        let early = link.isEncrypted ? [] : link.peripheral?.assumeIsolated { $0.security?.earlyPackets } ?? []
        // Whatever the peer sends makes the kernel report the socket as connected.
        guard management.isWaiting(name), early.isEmpty else {
            attach(name, end.take())
            for packet in early { link.peripheral?.assumeIsolated { $0.send(raw: packet) } }
            return false
        }
        links.wait(name, end)
        pollWaiting(name, end)
        return true
    }

    /// Ends a link whose socket was closed while it waited, as the kernel does.
    private func pollWaiting(_ name: LinkName, _ end: FarEnd) {
        _ = loop.schedule(at: loop.now() + Self.pollTime) { [weak self] in
            self?.assumeIsolated { radio in
                guard radio.links[name]?.waiting === end else { return }
                guard end.isHungUp else { return radio.pollWaiting(name, end) }
                _ = radio.links.takeWaiting(name)
                radio.end(name, .localHostTerminated, after: Self.unattachedTime)
            }
        }
    }

    /// The link has the level that its socket waited for.
    private func proceed(_ name: LinkName) {
        if let end = links.takeWaiting(name) { attach(name, end.take()) }
        hold(name, false)
    }

    private func hold(_ name: LinkName, _ isHeld: Bool) {
        guard let peripheral = links[name]?.peripheral else { return }
        let isOut = peripherals.isOutOfRange(peripheral)
        peripheral.assumeIsolated { $0.hold(isHeld || isOut) }
    }

    // MARK: Encryption

    /// Encrypts a link with a stored key, for the kernel or for a command of a program.
    func encrypt(_ name: LinkName, with key: VirtualKey, isKernels: Bool) {
        guard let fate = links[name]?.fate else { return }
        _ = loop.schedule(at: loop.now() + securityTimers.encryptionTime) { [weak self] in
            self?.assumeIsolated { radio in
                guard let central = radio.adapters[name.adapter]?.address, let link = radio.links[name],
                    link.fate === fate, let peripheral = link.peripheral
                else { return }
                switch peripheral.assumeIsolated({ $0.encrypted(with: key, by: central) }) {
                case .encrypted:
                    radio.reportEncryption(name)
                    radio.encryptionEnded(name, .success, isKernels)
                case .keyMissing:
                    radio.send(VirtualController.encryptionChange(name.handle, .keyMissing, isOn: false), name.adapter)
                    radio.encryptionEnded(name, .keyMissing, isKernels)
                case .otherKey: radio.end(name, .micFailure, reporting: true)
                }
            }
        }
    }

    /// Ends the encryption of a peripheral's link, which stays up.
    package func stopEncryption(of peripheral: VirtualPeripheral) {
        for name in links.names(of: peripheral) {
            links.setEncrypted(name, false)
            peripheral.assumeIsolated { $0.setLinkSecurity(.none) }
            management.encryptionStopped(name)
            send(VirtualController.encryptionChange(name.handle, .success, isOn: false), name.adapter)
        }
    }

    private func encryptionEnded(_ name: LinkName, _ status: HCIStatus, _ isKernels: Bool) {
        perform(management.encryptionEnded(name, status, isKernels: isKernels))
    }

    private func reportEncryption(_ name: LinkName) {
        guard let link = links[name] else { return }
        links.setEncrypted(name, true)
        send(
            link.isEncrypted
                ? VirtualController.encryptionKeyRefresh(name.handle)
                : VirtualController.encryptionChange(name.handle, .success, isOn: true), name.adapter)
    }

    private func paired(_ name: LinkName, _ security: VirtualLinkSecurity, _ bond: VirtualBond?) {
        guard let central = adapters[name.adapter]?.address else { return }
        links[name]?.peripheral?.assumeIsolated { $0.paired(security, with: central, bond) }
    }

    // MARK: Links

    /// Reports a new link to the kernel's Security Manager, and sends what the peer sends first.
    func securityBegan(_ name: LinkName, _ peripheral: VirtualPeripheral, _ peer: PeerID) {
        perform(management.linkBegan(name, peer) { peripheral.assumeIsolated { $0.security } })
        let fate = links[name]?.fate
        let request: @Sendable (VirtualSecurityRequest) -> Void = { [weak self] request in
            self?.assumeIsolated { radio in
                guard let link = radio.links[name], link.fate === fate else { return }
                radio.perform(radio.management.securityRequested(name, request))
            }
        }
        peripheral.assumeIsolated { $0.onSecurityRequest(request) }
        guard let first = peripheral.assumeIsolated({ $0.security?.request }) else { return }
        _ = loop.schedule(at: loop.now() + securityTimers.encryptionTime) { request(first) }
    }

    // MARK: Private addresses

    /// Changes the address of a peripheral to the next private address of its identity; does nothing if it has none.
    ///
    /// - Returns: The new address.
    @discardableResult
    public func rotateAddress(of peripheral: VirtualPeripheral) -> PeerID? {
        guard let identity = peripheral.assumeIsolated({ $0.security?.identity }) else { return nil }
        let peer = newPrivateAddress(of: identity)
        changeAddress(of: peripheral, to: peer)
        return peer
    }
}
