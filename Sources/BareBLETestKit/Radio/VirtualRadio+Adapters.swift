package import BLECore
internal import BLELinux
internal import BareBLE
internal import Glibc

// The adapters: their state changes, and the paths of commands and events.

extension VirtualRadio {
    /// Adds another adapter, which is switched on.
    ///
    /// - Parameter isExtended: Pass true for a controller with the extended commands of Bluetooth 5.
    /// - Returns: Its name, such as `hci1`.
    @discardableResult
    public func addAdapter(isExtended: Bool = true) -> String {
        addAdapter(isExtended ? .bluetooth5 : .bluetooth4)
    }

    /// Adds another adapter, which is switched on.
    ///
    /// - Returns: Its name, such as `hci1`.
    @discardableResult
    public func addAdapter(_ personality: VirtualPersonality) -> String {
        let adapter = RadioAdapter(adapters.next, Self.address(of: adapters.next), personality)
        plug(adapter, isUp: true)
        perform(management.adapterAdded(adapter.index, adapter.address, isUp: true))
        return "hci\(adapter.index)"
    }

    private func plug(_ adapter: RadioAdapter, isUp: Bool) {
        let (index, address) = (adapter.index, adapter.address)
        adapters.add(adapter)
        machine.withLock { machine in
            machine.add(ControllerInfo(index: index, name: "hci\(index)", address: address, isUp: isUp))
        }
    }

    /// Gives an adapter's controller another personality. Its links end, as when another controller is plugged in.
    public func setPersonality(_ personality: VirtualPersonality, of name: String = "hci0") {
        guard let index = index(of: name) else { return }
        let isUp = isUp(index)
        if isUp { setPower(index, false) }
        adapters[index]?.replaceController(
            VirtualController(address: Self.address(of: index), personality: personality))
        if isUp { setPower(index, true) }
    }

    /// Returns a Boolean value that indicates whether an adapter scans, for any program. A scan outlives a program that
    /// does not end it.
    public func isScanning(_ name: String = "hci0") -> Bool {
        adapter(name)?.isScanning ?? false
    }

    /// Switches an adapter off, like `hciconfig down`: its links end, and commands are rejected.
    public func powerOff(_ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        setPower(index, false)
    }

    /// Switches an adapter on.
    public func powerOn(_ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        setPower(index, true)
    }

    /// Resets an adapter, like `hciconfig reset`: its links end, and its state is cleared.
    public func reset(_ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        fallSilent(index)
        send(VirtualController.commandComplete(.reset, [0]), index)
    }

    /// Unplugs an adapter.
    public func unplug(_ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        machine.withLock { $0.remove(index) }
        fallSilent(index)
        announcements.announce(.removed, of: index)
        perform(management.adapterRemoved(index))
        adapters.unplug(index)
    }

    /// Plugs in an adapter that was unplugged, optionally under another name. Does nothing if no adapter of this name
    /// was unplugged, or if the new name is in use.
    ///
    /// - Parameters:
    ///   - name: The name when it was unplugged.
    ///   - newName: The new name, or `nil` for the same.
    ///   - isUp: Pass true to switch it on as well; the kernel does not.
    public func plugIn(_ name: String = "hci0", as newName: String? = nil, isUp: Bool = false) {
        plugIn(name, as: newName, isUp: isUp, after: .driver)
    }

    private func plugIn(
        _ name: String, as newName: String?, isUp: Bool, after action: VirtualPersonality.Recovery
    ) {
        guard let old = Self.number(of: name), let new = Self.number(of: newName ?? name), adapters[new] == nil,
            let controller = adapters.takeUnplugged(old)
        else { return }
        let adapter = RadioAdapter(new, returning: controller, isUp: isUp, after: action)
        plug(adapter, isUp: isUp)
        announcements.announce(.added, of: new)
        let hasLowEnergy = machine.withLock { $0.hasLowEnergy(new) }
        perform(management.adapterAdded(new, adapter.address, isUp: isUp, hasLowEnergy: hasLowEnergy))
    }

    /// Sets the program's permissions. An adapter in use checks them when it is opened again.
    public func setPermissions(_ permissions: VirtualPermissions) {
        machine.withLock { $0.setPermissions(permissions) }
    }

    /// Enables or disables LE on a dual-mode adapter.
    public func setLowEnergy(_ isOn: Bool, _ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        machine.withLock { $0.setLowEnergy(of: index, isOn) }
        management.lowEnergyChanged(index, isOn)
    }

    /// Returns a Boolean value that indicates whether others may bond with an adapter.
    package func isBondable(_ name: String = "hci0") -> Bool { index(of: name).map(management.isBondable) ?? false }

    /// Makes an adapter bondable, as the kernel does when it switches one on that nothing manages, or not.
    package func setBondable(_ isOn: Bool, _ name: String = "hci0") {
        if let index = index(of: name) { management.bondableChanged(index, isOn) }
    }

    /// Has an adapter share its antenna with Wi-Fi, or not.
    package func setSharedAntenna(_ isShared: Bool, _ name: String = "hci0") {
        machine.withLock { $0.setSharedAntenna(isShared, name) }
    }

    /// Has the kernel's switch keep an adapter off once it is off, or not any more.
    package func block(_ isBlocked: Bool = true, _ name: String = "hci0") {
        machine.withLock { $0.block(isBlocked, name) }
    }

    /// Has the controller not respond to so many of the next attempts to switch the adapter on.
    package func failPowerUps(_ count: Int, _ name: String = "hci0") {
        machine.withLock { $0.failPowerUps(count, name) }
    }

    /// Has an adapter that a step of recovery takes away return after that time, and off; `nil` has it return at once,
    /// and on.
    package func delayReturn(by absence: Duration?, _ name: String = "hci0") {
        machine.withLock { $0.setAbsence(absence, name) }
    }

    /// Makes an adapter's controller ignore commands, or respond again.
    package func silence(_ isSilent: Bool, _ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        adapters[index]?.silence(isSilent)
        if !isSilent { powerChanged(index) }
    }

    // MARK: Internals

    func index(of name: String) -> UInt16? {
        machine.withLock { machine in machine.adapters.first { $0.name == name }?.index }
    }

    func adapter(_ name: String) -> RadioAdapter? {
        index(of: name).flatMap { adapters[$0] }
    }

    private static func number(of name: String) -> UInt16? {
        name.hasPrefix("hci") ? UInt16(name.dropFirst(3)) : nil
    }

    func isUp(_ index: UInt16) -> Bool {
        machine.withLock { $0.isUp(index) }
    }

    /// Switches an adapter; its links end when it is switched off.
    func setPower(_ index: UInt16, _ isUp: Bool) {
        machine.withLock { _ = $0.setPower(of: index, isUp) }
        announcements.announce(isUp ? .switchedOn : .switchedOff, of: index)
        if !isUp {
            fallSilent(index)
            adapters[index]?.switchedOff()
        }
        powerChanged(index)
    }

    /// Takes a step of recovery, as the helper program does.
    func recover(_ index: UInt16, by step: RecoveryPolicy.Step) async throws(RecoveryFailure) {
        switch step {
        case .rescan, .eventMasks: throw .notApplicable
        case .power: try cyclePower(index)
        case .radioSwitch:
            block(false, "hci\(index)")
            try cyclePower(index)
            adapters[index]?.unblocked()
        case .usbPort: try await takeAway("hci\(index)", by: .usbPort)
        case .driver: try await takeAway("hci\(index)", by: .driver)
        }
    }

    private func cyclePower(_ index: UInt16) throws(RecoveryFailure) {
        setPower(index, false)
        switch machine.withLock({ $0.powerUpFailure(of: index) }) {
        case nil: setPower(index, true)
        case ERFKILL?: throw .blocked
        case let errno?: throw .failed(SystemCallError(call: "HCIDEVUP", errno: errno).description)
        }
    }

    /// Takes an adapter away, and waits for its return: it is switched on then.
    private func takeAway(_ name: String, by action: VirtualPersonality.Recovery) async throws(RecoveryFailure) {
        let absence = machine.withLock { $0.absence(of: name) }
        unplug(name)
        guard let absence else { return plugIn(name, as: nil, isUp: true, after: action) }
        let isInTime = absence <= Self.returnLimit
        _ = loop.schedule(at: loop.now() + absence) { [weak self] in
            self?.assumeIsolated { $0.plugIn(name, as: nil, isUp: isInTime, after: action) }
        }
        try? await CentralClock(loop: loop).sleep(for: min(absence, Self.returnLimit))
        if !isInTime { throw .adapterGone }
    }

    /// How long the helper program waits for an adapter.
    private static let returnLimit: Duration = .seconds(10)

    /// Ends the activities of an adapter without events; only the kernel knows.
    private func fallSilent(_ index: UInt16) {
        for link in links.names(of: index) { end(link, .localHostTerminated, reporting: false) }
        for peripheral in adapters[index]?.fallSilent() ?? [] { peripherals.setLinked(peripheral, false) }
        scheduleAdvertisements()
        advertisingChanged(index)
    }

    /// A driver resets the USB port of a controller that does not respond.
    private func resetPort(of index: UInt16) {
        guard let adapter = adapters[index], adapter.personality.isResetWhenSilent else { return }
        let address = adapter.address
        _ = loop.schedule(at: loop.now() + Self.portResetDelay) { [weak self] in
            self?.assumeIsolated { radio in
                guard radio.adapters[index]?.address == address else { return }
                radio.unplug("hci\(index)")
                let next = (radio.adapters.all.last?.index ?? index) + 1
                radio.plugIn("hci\(index)", as: "hci\(max(next, index + 1))", isUp: true)
            }
        }
    }

    private static let portResetDelay: Duration = .seconds(2)

    // MARK: Bytes

    /// Opens both sockets of a program.
    func open(_ index: UInt16) -> Result<(commands: Int32, reports: Int32), SystemCallError> {
        guard let adapter = adapters[index] else { return .failure(SystemCallError(call: "bind", errno: ENODEV)) }
        do throws(TestLinkError) {
            let (commands, theirCommands) = try PeerLink.open(on: loop)
            let (reports, theirReports) = try PeerLink.open(on: loop)
            let number = newSocket()
            let mayCommand = machine.withLock { $0.permissions.contains(.commands) }
            adapter.add(number, commands: commands, reports: reports, mayCommand: mayCommand)
            commands.start(
                packet: { [weak self] packet in self?.assumeIsolated { $0.received(packet, of: number, index) } },
                ended: { [weak self] in self?.assumeIsolated { $0.adapters[index]?.remove(number) } })
            return .success((theirCommands, theirReports))
        } catch {
            return .failure(SystemCallError(call: "socketpair", errno: EMFILE))
        }
    }

    /// Has changes of adapters announced, as the kernel does to programs with CAP_NET_RAW.
    package func announceChanges() { announcements.begin() }

    func openDeviceEvents() -> Int32? {
        guard announcements.isOn, let (ours, theirs) = try? PeerLink.open(on: loop) else { return nil }
        let number = newSocket()
        announcements.add(number, ours)
        ours.start(
            packet: { _ in },
            ended: { [weak self] in self?.assumeIsolated { $0.announcements.remove(number) } })
        return theirs
    }

    private func received(_ packet: [UInt8], of number: UInt64, _ index: UInt16) {
        packetExchanged(isCommand: true)
        guard isUp(index), let adapter = adapters[index], !adapter.isSilent,
            packet.first == HCIPacketType.command.rawValue,
            let command = try? HCICommandPacket(packet.span.extracting(droppingFirst: 1))
        else { return }
        let actions = adapter.execute(command, of: number)
        if command.opcode == .writeLEHostSupport, command.parameters.first == 1 {
            machine.withLock { $0.setLowEnergy(of: index, true) }
            management.lowEnergyChanged(index, true)
        }
        perform(actions, index)
        if command.opcode == .disconnect { dropUnknownLink(command, index) }
    }

    /// The kernel drops a link that the controller refuses to disconnect because it does not have it.
    private func dropUnknownLink(_ command: HCICommandPacket, _ index: UInt16) {
        var reader = ByteReader(command.parameters.span)
        guard let handle = reader.u16(), adapters[index]?.hasLink(handle) != true else { return }
        end(LinkName(adapter: index, handle: handle), .unspecified, reporting: false)
    }

    /// Returns a Boolean value that indicates whether a program uses an adapter, and so sees what happens to it.
    package func isInUse(_ name: String = "hci0") -> Bool {
        adapter(name)?.isInUse ?? false
    }

    /// Another program, without a central here, sends a command.
    package func foreign(_ command: HCICommandPacket, _ name: String = "hci0") {
        guard let adapter = adapter(name) else { return }
        perform(adapter.execute(command, of: nil), adapter.index)
    }

    func perform(_ actions: [VirtualController.Action], _ index: UInt16) {
        for action in actions {
            switch action {
            case .send(let packet): send(packet, index)
            case .sendLater(let packet, let time):
                _ = loop.schedule(at: loop.now() + time) { [weak self] in
                    self?.assumeIsolated { $0.send(packet, index) }
                }
            case .unresponsive: resetPort(of: index)
            case .listeningChanged: scheduleAdvertisements()
            case .advertisingChanged: advertisingChanged(index)
            case .disconnect(let handle): disconnect(LinkName(adapter: index, handle: handle))
            case .update(let handle, let parameters):
                adapters[index]?.setParameters(parameters, of: handle)
                send(VirtualController.updateComplete(handle, parameters), index)
            case .changePHY(let handle, let transmit, let receive):
                adapters[index]?.setPHY(transmit, receive, of: handle)
                send(VirtualController.phyUpdateComplete(handle, transmit, receive), index)
            case .encrypt(let handle, let key):
                encrypt(LinkName(adapter: index, handle: handle), with: key, isKernels: false)
            }
        }
    }

    /// Sends an event to all programs that use the adapter.
    func send(_ packet: [UInt8], _ index: UInt16) {
        for (delay, packet) in adapters[index]?.shape(packet) ?? [] {
            guard let delay else {
                pass(packet, index)
                continue
            }
            _ = loop.schedule(at: loop.now() + delay) { [weak self] in
                self?.assumeIsolated { $0.pass(packet, index) }
            }
        }
    }

    private func pass(_ packet: [UInt8], _ index: UInt16) {
        adapters[index]?.pass(packet)
        packetExchanged(isCommand: false)
    }
}
