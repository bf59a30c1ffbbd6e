package import BLECore
internal import BLELinux
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
        // Unplugged adapters keep their numbers and thereby their addresses.
        let others = Array(controllers.keys) + unplugged.map(\.index)
        let index = others.max().map { $0 + 1 } ?? 0
        machine.withLock { machine in
            machine.adapters.append(
                ControllerInfo(index: index, name: "hci\(index)", address: Self.address(of: index), isUp: true))
        }
        controllers[index] = RunningController(Self.address(of: index), personality)
        perform(management.adapterAdded(index, Self.address(of: index), isUp: true))
        return "hci\(index)"
    }

    /// Gives an adapter's controller another personality. Its links end, as when another controller is plugged in.
    public func setPersonality(_ personality: VirtualPersonality, of name: String = "hci0") {
        guard let index = index(of: name) else { return }
        let isUp = isUp(index)
        if isUp { setPower(index, false) }
        controllers[index]?.controller = VirtualController(address: Self.address(of: index), personality: personality)
        if isUp { setPower(index, true) }
    }

    /// Returns a Boolean value that indicates whether an adapter scans, for any program. A scan outlives a program that
    /// does not end it.
    public func isScanning(_ name: String = "hci0") -> Bool {
        guard let index = index(of: name) else { return false }
        return controllers[index]?.controller.isScanning ?? false
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
        machine.withLock { $0.adapters.removeAll { $0.index == index } }
        fallSilent(index)
        announce(index, 2)
        perform(management.adapterRemoved(index))
        for (_, client) in (controllers[index]?.clients ?? [:]).sorted(by: { $0.key < $1.key }) {
            client.commands.close()
            client.reports.close()
        }
        if let controller = controllers.removeValue(forKey: index)?.controller { unplugged.append((index, controller)) }
    }

    /// Plugs in an adapter that was unplugged, optionally under another name. Does nothing if no adapter of this name
    /// was unplugged, or if the new name is in use.
    ///
    /// - Parameters:
    ///   - name: The name when it was unplugged.
    ///   - newName: The new name, or `nil` for the same.
    ///   - isUp: Pass true to switch it on as well; the kernel does not.
    public func plugIn(_ name: String = "hci0", as newName: String? = nil, isUp: Bool = false) {
        guard let old = Self.number(of: name), let new = Self.number(of: newName ?? name), controllers[new] == nil,
            let place = unplugged.lastIndex(where: { $0.index == old })
        else { return }
        let controller = unplugged.remove(at: place).controller
        controllers[new] = RunningController(returning: controller, isUp: isUp)
        machine.withLock { machine in
            machine.adapters.append(
                ControllerInfo(index: new, name: "hci\(new)", address: controller.address, isUp: isUp))
            machine.adapters.sort { $0.index < $1.index }
        }
        announce(new, 1)
        let hasLowEnergy = machine.withLock { !$0.withoutLowEnergy.contains(new) }
        perform(management.adapterAdded(new, controller.address, isUp: isUp, hasLowEnergy: hasLowEnergy))
    }

    /// Sets the program's permissions. An adapter in use checks them when it is opened again.
    public func setPermissions(_ permissions: VirtualPermissions) {
        machine.withLock { $0.permissions = permissions }
    }

    /// Enables or disables LE on a dual-mode adapter.
    public func setLowEnergy(_ isOn: Bool, _ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        _ = machine.withLock { machine in
            if isOn { machine.withoutLowEnergy.remove(index) } else { machine.withoutLowEnergy.update(with: index) }
        }
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
        _ = machine.withLock { machine in
            if isShared { machine.besideWiFi.update(with: name) } else { machine.besideWiFi.remove(name) }
        }
    }

    /// Makes an adapter's controller ignore commands, or respond again.
    package func silence(_ isSilent: Bool, _ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        controllers[index]?.isSilent = isSilent
        if !isSilent { powerChanged(index) }
    }

    // MARK: Internals

    func index(of name: String) -> UInt16? {
        machine.withLock { machine in machine.adapters.first { $0.name == name }?.index }
    }

    private static func number(of name: String) -> UInt16? {
        name.hasPrefix("hci") ? UInt16(name.dropFirst(3)) : nil
    }

    func isUp(_ index: UInt16) -> Bool {
        machine.withLock { machine in machine.adapters.contains { $0.index == index && $0.isUp } }
    }

    /// Switches an adapter; its links end when it is switched off.
    func setPower(_ index: UInt16, _ isUp: Bool) {
        machine.withLock { _ = $0.setPower(of: index, isUp) }
        announce(index, isUp ? 3 : 4)
        if !isUp {
            fallSilent(index)
            controllers[index]?.isSetUp = false
        }
        powerChanged(index)
    }

    /// Takes a step of recovery, as the helper program does.
    func recover(_ index: UInt16, by step: RecoveryStep) {
        let name = "hci\(index)"
        if step == .power {
            setPower(index, false)
            setPower(index, true)
        } else {
            unplug(name)
            plugIn(name, isUp: true)
        }
    }

    /// Ends the activities of an adapter without events; only the kernel knows.
    private func fallSilent(_ index: UInt16) {
        for handle in (controllers[index]?.links.keys.sorted() ?? []) {
            end(index, handle, .localHostTerminated, reporting: false)
        }
        for call in controllers[index]?.kernelCalls ?? [] { call.fate.withLock { $0 = ECONNABORTED } }
        controllers[index]?.kernelCalls = []
        controllers[index]?.controller.reset()
        for peripheral in controllers[index]?.hiddenPeers ?? [] { change(peripheral) { $0.isLinked = false } }
        controllers[index]?.hiddenPeers = []
        scheduleAdvertisements()
        advertisingChanged(index)
    }

    /// A driver resets the USB port of a controller that does not respond.
    private func resetPort(of index: UInt16) {
        guard let address = controllers[index]?.controller.address,
            controllers[index]?.controller.personality.isResetWhenSilent == true
        else { return }
        _ = loop.schedule(at: loop.now() + Self.portResetDelay) { [weak self] in
            self?.assumeIsolated { radio in
                guard radio.controllers[index]?.controller.address == address else { return }
                radio.unplug("hci\(index)")
                let next = (radio.controllers.keys.max() ?? index) + 1
                radio.plugIn("hci\(index)", as: "hci\(max(next, index + 1))", isUp: true)
            }
        }
    }

    private static let portResetDelay: Duration = .seconds(2)

    // MARK: Bytes

    /// Opens both sockets of a program.
    func open(_ index: UInt16) -> Result<(commands: Int32, reports: Int32), SystemCallError> {
        guard controllers[index] != nil else { return .failure(SystemCallError(call: "bind", errno: ENODEV)) }
        do throws(TestLinkError) {
            let (commands, theirCommands) = try PeerLink.open(on: loop)
            let (reports, theirReports) = try PeerLink.open(on: loop)
            lastClient += 1
            let number = lastClient
            controllers[index]?.clients[number] = Client(commands: commands, reports: reports)
            commands.start(
                packet: { [weak self] packet in self?.assumeIsolated { $0.received(packet, of: number, index) } },
                ended: { [weak self] in self?.assumeIsolated { $0.clientLeft(number, index) } })
            return .success((theirCommands, theirReports))
        } catch {
            return .failure(SystemCallError(call: "socketpair", errno: EMFILE))
        }
    }

    /// Has changes of adapters announced, as the kernel does to programs with CAP_NET_RAW.
    package func announceChanges() { announcements = [:] }

    func openDeviceEvents() -> Int32? {
        guard announcements != nil, let (ours, theirs) = try? PeerLink.open(on: loop) else { return nil }
        lastClient += 1
        let number = lastClient
        announcements?[number] = ours
        ours.start(
            packet: { _ in },
            ended: { [weak self] in self?.assumeIsolated { $0.announcements?[number] = nil } })
        return theirs
    }

    /// Announces that an adapter has come (1) or gone (2), or is on (3) or off (4).
    private func announce(_ index: UInt16, _ change: UInt8) {
        let packet = [0x04, 0xFD, 0x06, 0x01, 0x00, change, 0x00, UInt8(index & 0xFF), UInt8(index >> 8)]
        for (_, socket) in (announcements ?? [:]).sorted(by: { $0.key < $1.key }) { socket.send(packet) }
    }

    private func clientLeft(_ number: UInt64, _ index: UInt16) {
        controllers[index]?.clients.removeValue(forKey: number)?.reports.close()
    }

    private func received(_ packet: [UInt8], of number: UInt64, _ index: UInt16) {
        exchanged?(true)
        guard isUp(index), controllers[index]?.isSilent == false, packet.first == HCIPacketType.command.rawValue,
            let command = try? HCICommandPacket(packet.span.extracting(droppingFirst: 1))
        else { return }
        let actions = execute(command, of: number, index)
        if command.opcode == .writeLEHostSupport, command.parameters.first == 1 {
            _ = machine.withLock { $0.withoutLowEnergy.remove(index) }
            management.lowEnergyChanged(index, true)
        }
        perform(actions, index)
        if command.opcode == .disconnect { dropUnknownLink(command, index) }
    }

    /// The kernel drops a link that the controller refuses to disconnect because it does not have it.
    private func dropUnknownLink(_ command: HCICommandPacket, _ index: UInt16) {
        var reader = ByteReader(command.parameters.span)
        guard let handle = reader.u16(), controllers[index]?.controller.links[handle] == nil else { return }
        end(index, handle, .unspecified, reporting: false)
    }

    private func execute(_ command: HCICommandPacket, of number: UInt64?, _ index: UInt16) -> [VirtualController.Action]
    {
        // Every program sees the commands of the others.
        for (other, client) in (controllers[index]?.clients ?? [:]).sorted(by: { $0.key < $1.key })
        where other != number {
            client.commands.send(command.bytes)
        }
        return controllers[index]?.controller.received(command) ?? []
    }

    /// Returns a Boolean value that indicates whether a program uses an adapter, and so sees what happens to it.
    package func isInUse(_ name: String = "hci0") -> Bool {
        index(of: name).flatMap { controllers[$0] }?.clients.isEmpty == false
    }

    /// Another program, without a central here, sends a command.
    package func foreign(_ command: HCICommandPacket, _ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        perform(execute(command, of: nil, index), index)
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
            case .disconnect(let handle): end(index, handle, .localHostTerminated, reporting: true)
            case .update(let handle, let parameters):
                controllers[index]?.controller.links[handle]?.parameters = parameters
                send(VirtualController.updateComplete(handle, parameters), index)
            case .changePHY(let handle, let transmit, let receive):
                controllers[index]?.controller.links[handle]?.transmit = transmit
                controllers[index]?.controller.links[handle]?.receive = receive
                send(VirtualController.phyUpdateComplete(handle, transmit, receive), index)
            case .encrypt(let handle, let key): encrypt(index, handle, with: key, isKernels: false)
            }
        }
    }

    /// Sends an event to all programs that use the adapter: LE events on one socket, all others on the other.
    func send(_ packet: [UInt8], _ index: UInt16) {
        guard let packet = controllers[index]?.controller.shape(packet) else { return }
        guard let delay = controllers[index]?.controller.delay(of: packet) else { return pass(packet, index) }
        if controllers[index]?.controller.personality.dataLead != nil,
            let handle = VirtualController.handle(ofLinkIn: packet)
        {
            // The peer's request for an MTU of 517.
            let request: [UInt8] = [0x02] + (handle | 0x2000).littleEndianBytes + [7, 0, 3, 0, 4, 0, 0x02, 0x05, 0x02]
            pass(request, index)
        }
        _ = loop.schedule(at: loop.now() + delay) { [weak self] in
            self?.assumeIsolated { $0.pass(packet, index) }
        }
    }

    /// Passes a packet to all programs that use the adapter.
    private func pass(_ packet: [UInt8], _ index: UInt16) {
        for (_, client) in (controllers[index]?.clients ?? [:]).sorted(by: { $0.key < $1.key }) {
            let isLowEnergy = packet.first != HCIPacketType.event.rawValue || packet.dropFirst().first == 0x3E
            (isLowEnergy ? client.reports : client.commands).send(packet)
        }
        exchanged?(false)
    }
}
