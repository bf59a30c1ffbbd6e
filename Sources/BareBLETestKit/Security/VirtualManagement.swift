// The kernel's management interface and its Security Manager, for all adapters of a virtual machine: packets of the
// management sockets, links and requests in, packets and actions on links out. It does what kernels 6.1 to 7.2 were
// seen to do, their traps included, at the level of management packets: there are no Security Manager PDUs.
//
// | owner | what it owns |
// |---|---|
// | `VirtualManagementOutbox` | the sockets, the packets for them, and the actions that follow |
// | `VirtualAdapterSettings`, one for each adapter | its settings, its power, whether it has a Security Manager |
// | `VirtualKernelKeys`, one for each adapter | the keys of its peers |
// | `VirtualInstances`, one for each adapter | its advertising instances |
// | `VirtualKernelLink`, one for each link | its encryption, the commands and the socket that wait for it |
// | `VirtualPairing`, on a link | the association model, the phase, the keys that it makes |
//
// What is left here: it responds to every command once, connects the owners, and decides which key encrypts a link.
//
// Invariants:
// - Settings, keys and instances outlive sockets and power, but not unplugging.
// - A link has one pairing at a time. It ends once: with keys, a failure, or the end of the link.
// - A Pair Device command is completed once, by whatever ends its pairing. Without a link it waits for one, until it is
//   cancelled.
// - It knows neither time nor descriptors: `VirtualRadio` does, and calls `stepDue` later.

package import BLECore
package import BLELinux

/// The kernel's management interface without a kernel.
package final class VirtualManagement {
    /// A link of an adapter.
    package struct LinkName: Hashable, Sendable {
        package let adapter: UInt16
        package let handle: ConnectionHandle

        package init(adapter: UInt16, handle: ConnectionHandle) {
            self.adapter = adapter
            self.handle = handle
        }
    }

    /// Something that is due later.
    package struct Step: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            /// The peer responds, the user of the peer has entered a passkey, or both sides have compared values.
            case proceed
            case reportEncryption
            case reportKeys
            case complete
            case timeOut(progress: Int)
            /// The central has not reacted to a Security Request, whose number is in the place of the pairing's.
            case endRequest
        }

        let link: LinkName
        let pairing: UInt64
        let kind: Kind

        /// True if a newer one of the same link replaces it, and the end of the pairing cancels it.
        var isTimeout: Bool {
            if case .timeOut = kind { return true }
            return false
        }
    }

    /// An action for the owner, in order.
    package enum Action {
        case send([UInt8], to: UInt64)
        /// Switch the adapter, and call `powerChanged`.
        case setPower(UInt16, Bool)
        case enableLowEnergy(UInt16)
        /// Have the controller execute a command of the kernel.
        case command(UInt16, HCICommandPacket)
        /// Encrypt the link with this key, and call `encryptionEnded`.
        case encrypt(LinkName, ManagementLongTermKey)
        case disconnect(LinkName)
        /// A pairing has encrypted the link; the peer keeps the bond. `reportEncryption` follows.
        case encrypted(LinkName, VirtualLinkSecurity, VirtualBond?)
        /// The controller reports the encryption.
        case reportEncryption(LinkName)
        /// The link's socket cannot be read or written until `proceed`.
        case wait(LinkName)
        case proceed(LinkName)
        /// The peer shows this number, or its user enters it.
        case show(LinkName, UInt32)
        case schedule(Duration, Step)
        /// Call `graceEnded` with the number later.
        case endGrace(UInt16, number: UInt64, after: Duration)
    }

    /// The order in which a program sees the results of a pairing, which come on two sockets.
    package enum ResultOrder: Hashable, Sendable, CaseIterable {
        /// The event of the controller, the keys, the completion of Pair Device.
        case encryptionFirst
        case keysFirst
        case completionFirst
    }

    /// The time of a phase of a pairing.
    package static let phase: Duration = .milliseconds(20)
    /// The time for which an adapter that was plugged in is on, though it seems to be off: `HCI_AUTO_OFF_TIMEOUT`.
    package static let grace: Duration = .seconds(2)
    /// The time that a peer's user takes to enter a passkey.
    package static let typing: Duration = .milliseconds(200)
    /// The time between the results of a pairing.
    package static let gap: Duration = .milliseconds(5)
    /// Spec: SMP timeout, Core Vol 3 Part H, 3.4.
    package static let timeout: Duration = .seconds(30)

    /// The order of results; `nil` for a random one.
    private var order: ResultOrder? = .encryptionFirst
    /// Whether a socket that asked for more than the kernel's keys provide is connected at once, at level 1, while the
    /// kernel pairs; else never. Kernels do the one or the other, depending on the moment of the call.
    private var connectsWhilePairing = false

    private var outbox = VirtualManagementOutbox()
    private var hosts: [UInt16: Host] = [:]
    private var numbers: VirtualNumbers
    private var lastPairing: UInt64 = 0
    private var lastGrace: UInt64 = 0

    package init(seed: UInt64 = 0) {
        numbers = VirtualNumbers(seed: seed)
    }

    /// Sets the order in which programs see the results of a pairing; `nil` for a random one.
    func orderResults(_ order: ResultOrder?) {
        self.order = order
    }

    func connectWhilePairing(_ isConnected: Bool) {
        connectsWhilePairing = isConnected
    }

    /// The kernel's state of an adapter.
    private struct Host {
        var settings: VirtualAdapterSettings
        var keys = VirtualKernelKeys()
        var instances = VirtualInstances()
        var links: [ConnectionHandle: VirtualKernelLink] = [:]
        /// Pair Device commands whose peers have no link yet.
        var dials: [ManagementPeer: Dial] = [:]

        /// Returns the identity of a private address that a loaded key resolves.
        func identity(of peer: PeerID) -> ManagementPeer? {
            settings.hasSecurityManager ? keys.identity(of: peer) : nil
        }
    }

    /// A Pair Device command that waits for a link.
    private struct Dial {
        /// The socket of the command.
        let requester: UInt64
        let capability: IOCapability
    }

    private func link(_ name: LinkName) -> VirtualKernelLink? { hosts[name.adapter]?.links[name.handle] }

    @discardableResult
    private func change<Value>(
        _ name: LinkName, _ change: (inout VirtualKernelLink) -> Value
    ) -> Value? {
        guard var link = link(name) else { return nil }
        let value = change(&link)
        hosts[name.adapter]?.links[name.handle] = link
        return value
    }

    @discardableResult
    private func changePairing<Value>(
        _ name: LinkName, _ change: (inout VirtualPairing) -> Value
    ) -> Value? {
        hosts[name.adapter]?.links[name.handle]?.withPairing(change)
    }

    private func find(_ peer: ManagementPeer, _ adapter: UInt16) -> LinkName? {
        let handle = hosts[adapter]?.links.filter { $0.value.peer == peer }.keys.min()
        return handle.map { LinkName(adapter: adapter, handle: $0) }
    }
}

// MARK: - Sockets and adapters

extension VirtualManagement {
    /// Registers a socket; a trusted one was opened with CAP_NET_ADMIN.
    package func opened(_ socket: UInt64, isTrusted: Bool) {
        outbox.opened(socket, isTrusted: isTrusted)
    }

    /// Unregisters a socket, which changes nothing else.
    package func closed(_ socket: UInt64) {
        outbox.closed(socket)
    }

    package func adapterAdded(
        _ adapter: UInt16, _ address: BluetoothAddress, isUp: Bool, hasLowEnergy: Bool = true
    ) -> [Action] {
        var settings = VirtualAdapterSettings(address: address, isUp: isUp, hasLowEnergy: hasLowEnergy)
        outbox.announce(.indexAdded, adapter)
        if !isUp {
            lastGrace += 1
            settings.graceBegan(number: lastGrace)
            outbox.append(.endGrace(adapter, number: lastGrace, after: Self.grace))
        }
        hosts[adapter] = Host(settings: settings)
        return outbox.flush()
    }

    /// The kernel has switched an adapter off that was plugged in a while ago.
    package func graceEnded(_ adapter: UInt16, number: UInt64) {
        hosts[adapter]?.settings.graceEnded(number: number)
    }

    /// Forgets everything about an adapter.
    package func adapterRemoved(_ adapter: UInt16) -> [Action] {
        guard hosts[adapter] != nil else { return [] }
        endDials(adapter, .invalidIndex)
        hosts[adapter] = nil
        outbox.announce(.indexRemoved, adapter)
        return outbox.flush()
    }

    package func powerChanged(_ adapter: UInt16, _ isUp: Bool) -> [Action] {
        guard let (isChange, requester) = hosts[adapter]?.settings.powerChanged(isUp) else { return [] }
        if !isUp { endDials(adapter, .notPowered) }
        if isChange { command(hosts[adapter]?.instances.powerChanged(isUp) ?? [], adapter) }
        guard let settings = hosts[adapter]?.settings else { return outbox.flush() }
        if let requester { outbox.complete(.setPowered, .success, settings.flagBytes, adapter, requester) }
        if isChange, settings.isManaged { outbox.announce(.newSettings(settings.flags), adapter, except: requester) }
        return outbox.flush()
    }

    package func lowEnergyChanged(_ adapter: UInt16, _ isOn: Bool) {
        hosts[adapter]?.settings.lowEnergyChanged(isOn)
    }

    /// Returns a Boolean value that indicates whether others may bond with an adapter.
    package func isBondable(_ adapter: UInt16) -> Bool { hosts[adapter]?.settings.isBondable ?? false }

    /// Makes an adapter, which is under management from then on, bondable or not; no program is notified.
    package func bondableChanged(_ adapter: UInt16, _ isOn: Bool) {
        hosts[adapter]?.settings.bondableChanged(isOn)
    }

    /// Returns a Boolean value that indicates whether the adapter has a Security Manager.
    package func hasSecurityManager(_ adapter: UInt16) -> Bool {
        hosts[adapter]?.settings.hasSecurityManager ?? false
    }

    /// The Long Term Keys that the kernel has.
    package func keys(of adapter: UInt16) -> [ManagementLongTermKey] { hosts[adapter]?.keys.longTerm ?? [] }
}

// MARK: - Commands

extension VirtualManagement {
    /// Processes a packet of a socket. The closure returns whether the controller of an adapter has advertising sets.
    package func received(
        _ packet: [UInt8], from socket: UInt64, hasSets: (UInt16) -> Bool = { _ in true }
    ) -> [Action] {
        guard let isTrusted = outbox.isTrusted(socket), let command = VirtualManagementCommand(packet) else {
            return []
        }
        if let refusal = command.refusal(isTrusted: isTrusted, whereAdapter: { hosts[$0] != nil }) {
            outbox.status(command.code, refusal, command.adapter, socket)
        } else if let adapter = command.adapter {
            hosts[adapter]?.settings.manage()
            hosts[adapter]?.instances.use(hasSets: hasSets(adapter))
            execute(command.code, command.parameters, adapter, socket)
        } else {
            executeGeneral(command.code, socket)
        }
        return outbox.flush()
    }

    private func executeGeneral(_ code: ManagementCommandCode, _ socket: UInt64) {
        var writer = ByteWriter()
        if code == .readVersion {
            writer.u8(1)
            writer.u16(22)
        } else {
            writer.u16(UInt16(truncatingIfNeeded: hosts.count))
            for adapter in hosts.keys.sorted() { writer.u16(adapter) }
        }
        outbox.complete(code, .success, writer.bytes, nil, socket)
    }

    private func execute(
        _ code: ManagementCommandCode, _ parameters: [UInt8], _ adapter: UInt16, _ socket: UInt64
    ) {
        guard var host = hosts[adapter] else { return }
        let first = parameters.first ?? 0
        switch code {
        case .readControllerInformation: outbox.complete(code, .success, host.settings.information, adapter, socket)
        case .setPowered: setPowered(first, adapter, socket)
        case .setBondable, .setSecureConnections: set(code, first, adapter, socket)
        case .setLowEnergy:
            // An adapter without BR/EDR cannot be switched off in this way.
            guard first != 0 else { return outbox.status(code, .rejected, adapter, socket) }
            if first == 1 { outbox.append(.enableLowEnergy(adapter)) }
            set(code, first, adapter, socket)
        case VirtualManagementCommand.setSecureSimplePairing, VirtualManagementCommand.setClassic:
            outbox.status(code, .notSupported, adapter, socket)
        case .setIOCapability:
            guard host.settings.setCapability(first) else {
                return outbox.status(code, .invalidParameters, adapter, socket)
            }
            hosts[adapter] = host
            outbox.complete(code, .success, [], adapter, socket)
        case .setPrivacy:
            guard !host.settings.isUp else { return outbox.status(code, .rejected, adapter, socket) }
            set(code, first, adapter, socket)
        case .readControllerCapabilities:
            // Security flags, the maximum sizes of keys for BR/EDR and LE pairing, the transmit power.
            outbox.complete(
                code, .success, [0x0B, 0, 2, 1, 0x0A, 3, 3, 0x10, 0, 3, 4, 0, 0], adapter, socket)
        case .readLocalOutOfBandData: outbox.complete(code, .notSupported, [first, 0, 0], adapter, socket)
        case .loadLongTermKeys, .loadIdentityResolvingKeys, .setBlockedKeys:
            guard host.keys.load(code, parameters) else {
                return outbox.status(code, .invalidParameters, adapter, socket)
            }
            hosts[adapter] = host
            outbox.complete(code, .success, [], adapter, socket)
        case .getConnections: getConnections(adapter, socket)
        case .readAdvertisingFeatures: outbox.complete(code, .success, host.instances.features, adapter, socket)
        case .removeAdvertising: removeInstance(first, adapter, socket)
        case .addExtendedAdvertisingParameters, .addExtendedAdvertisingData:
            addInstance(code, parameters, adapter, socket)
        default: executeForPeer(code, parameters, adapter, socket)
        }
    }

    private func set(_ code: ManagementCommandCode, _ value: UInt8, _ adapter: UInt16, _ socket: UInt64) {
        guard let former = hosts[adapter]?.settings.flags, hosts[adapter]?.settings.set(code, value) == true,
            let settings = hosts[adapter]?.settings
        else { return outbox.status(code, .invalidParameters, adapter, socket) }
        outbox.complete(code, .success, settings.flagBytes, adapter, socket)
        if settings.flags != former { outbox.announce(.newSettings(settings.flags), adapter, except: socket) }
    }

    private func setPowered(_ value: UInt8, _ adapter: UInt16, _ socket: UInt64) {
        guard value <= 1, var settings = hosts[adapter]?.settings else {
            return outbox.status(.setPowered, .invalidParameters, adapter, socket)
        }
        if settings.isPowering { return outbox.status(.setPowered, .busy, adapter, socket) }
        if settings.isUp == (value == 1) {
            return outbox.complete(.setPowered, .success, settings.flagBytes, adapter, socket)
        }
        settings.beginPowering(for: socket)
        hosts[adapter]?.settings = settings
        outbox.append(.setPower(adapter, value == 1))
    }

    private func getConnections(_ adapter: UInt16, _ socket: UInt64) {
        guard let host = hosts[adapter], host.settings.isUp else {
            return outbox.status(.getConnections, .notPowered, adapter, socket)
        }
        var writer = ByteWriter()
        writer.u16(UInt16(truncatingIfNeeded: host.links.count))
        for (_, link) in host.links.sorted(by: { $0.key < $1.key }) { writer.managementPeer(link.peer) }
        outbox.complete(.getConnections, .success, writer.bytes, adapter, socket)
    }
}

// MARK: - Advertising instances

extension VirtualManagement {
    /// The numbers of the instances of an adapter, in the order in which they were added.
    package func instances(of adapter: UInt16) -> [UInt8] { hosts[adapter]?.instances.numbers ?? [] }

    /// Sets how many instances an adapter can have; `nil` for as many as its controller allows.
    package func limitInstances(to count: UInt8?, _ adapter: UInt16) { hosts[adapter]?.instances.limit(to: count) }

    private func addInstance(
        _ code: ManagementCommandCode, _ parameters: [UInt8], _ adapter: UInt16, _ socket: UInt64
    ) {
        guard var host = hosts[adapter] else { return }
        let isUp = host.settings.isUp
        let outcome =
            code == .addExtendedAdvertisingParameters
            ? host.instances.setParameters(parameters, isUp: isUp) : host.instances.setData(parameters, isUp: isUp)
        hosts[adapter] = host
        guard outcome.status == .success else { return outbox.status(code, outcome.status, adapter, socket) }
        command(outcome.commands, adapter)
        if outcome.isNew, let number = parameters.first {
            outbox.notify(.advertisingAdded(number), adapter, except: [socket])
        }
        outbox.complete(code, .success, outcome.returned, adapter, socket)
    }

    private func removeInstance(_ number: UInt8, _ adapter: UInt16, _ socket: UInt64) {
        guard let (commands, removed) = hosts[adapter]?.instances.remove(number), !removed.isEmpty else {
            return outbox.status(.removeAdvertising, .invalidParameters, adapter, socket)
        }
        command(commands, adapter)
        for number in removed { outbox.notify(.advertisingRemoved(number), adapter, except: [socket]) }
        outbox.complete(.removeAdvertising, .success, [number], adapter, socket)
    }

    private func command(_ commands: [HCICommandPacket], _ adapter: UInt16) {
        for command in commands { outbox.append(.command(adapter, command)) }
    }

    /// A central has connected by an advertising set. `linkBegan` follows.
    package func centralConnected(_ adapter: UInt16, by handle: UInt8) {
        hosts[adapter]?.instances.centralConnected(by: handle)
    }

    /// The kernel does not initiate any more, for which it has taken everything off air.
    package func initiatingEnded(_ adapter: UInt16) -> [Action] {
        resumeInstances(adapter)
        return outbox.flush()
    }

    private func resumeInstances(_ adapter: UInt16) {
        command(hosts[adapter]?.instances.resuming() ?? [], adapter)
    }
}

// MARK: - Commands about a peer

extension VirtualManagement {
    private func executeForPeer(
        _ code: ManagementCommandCode, _ parameters: [UInt8], _ adapter: UInt16, _ socket: UInt64
    ) {
        var reader = ByteReader(parameters.span)
        guard let peer = reader.managementPeer() else {
            return outbox.status(code, .invalidParameters, adapter, socket)
        }
        if code == .addRemoteOutOfBandData { return addOutOfBand(peer, &reader, adapter, socket) }
        let option = reader.u8()
        guard peer.id != nil else { return outbox.complete(code, .invalidParameters, peer, adapter, socket) }
        guard hosts[adapter]?.settings.isUp == true else {
            return outbox.complete(code, .notPowered, peer, adapter, socket)
        }
        switch code {
        case .pairDevice: pair(peer, option, adapter, socket)
        case .cancelPairDevice: cancelPair(peer, adapter, socket)
        case .unpairDevice: unpair(peer, option, adapter, socket)
        case .disconnect:
            guard let name = find(peer, adapter) else {
                return outbox.complete(code, .notConnected, peer, adapter, socket)
            }
            change(name) { $0.awaitEnd(forDisconnecting: socket) }
            outbox.append(.disconnect(name))
        default:
            var reader = ByteReader(parameters.span.extracting(droppingFirst: 7))
            reply(code, reader.u32(), peer, adapter, socket)
        }
    }

    private func addOutOfBand(
        _ peer: ManagementPeer, _ reader: inout ByteReader, _ adapter: UInt16, _ socket: UInt64
    ) {
        let code = ManagementCommandCode.addRemoteOutOfBandData
        // The short form has values of P-192 only, which is for BR/EDR.
        guard reader.remaining == 64 else {
            if reader.remaining == 32 { return outbox.complete(code, .invalidParameters, peer, adapter, socket) }
            return outbox.status(code, .invalidParameters, adapter, socket)
        }
        guard let first = reader.secret(), let second = reader.secret(), let confirmation = reader.secret(),
            let random = reader.secret(), peer.id != nil, first == .zero, second == .zero
        else { return outbox.complete(code, .invalidParameters, peer, adapter, socket) }
        let isEmpty = confirmation == .zero || random == .zero
        hosts[adapter]?.keys.set(isEmpty ? nil : (confirmation, random), of: peer)
        outbox.complete(code, .success, peer, adapter, socket)
    }

    private func pair(_ peer: ManagementPeer, _ option: UInt8?, _ adapter: UInt16, _ socket: UInt64) {
        let code = ManagementCommandCode.pairDevice
        guard let host = hosts[adapter], let option, let capability = IOCapability(rawValue: option) else {
            return outbox.complete(code, .invalidParameters, peer, adapter, socket)
        }
        // It looks for keys of the identity of a private address, though not for its link.
        if host.keys.hasKey(of: peer.id.flatMap { host.identity(of: $0) } ?? peer) {
            return outbox.complete(code, .alreadyPaired, peer, adapter, socket)
        }
        guard let name = find(peer, adapter), let link = link(name) else {
            // The kernel connects by itself, as soon as it hears the peer.
            if host.dials[peer] != nil { return outbox.complete(code, .busy, peer, adapter, socket) }
            hosts[adapter]?.dials[peer] = Dial(requester: socket, capability: capability)
            return
        }
        // Without a Security Manager every security is enough.
        guard host.settings.hasSecurityManager else { return outbox.complete(code, .success, peer, adapter, socket) }
        // It joins the one that runs.
        if let hasJoined = changePairing(name, { $0.join(socket) }) {
            if !hasJoined { outbox.complete(code, .busy, peer, adapter, socket) }
            return
        }
        // Any key was enough.
        if link.has(.medium) { return outbox.complete(code, .success, peer, adapter, socket) }
        begin(name, capability, needed: .medium, requester: socket)
    }

    private func cancelPair(_ peer: ManagementPeer, _ adapter: UInt16, _ socket: UInt64) {
        if let dial = hosts[adapter]?.dials.removeValue(forKey: peer) {
            outbox.complete(.pairDevice, .cancelled, peer, adapter, dial.requester)
            return outbox.complete(.cancelPairDevice, .success, peer, adapter, socket)
        }
        guard let name = find(peer, adapter), let requester = link(name)?.pairing?.requester else {
            return outbox.status(.cancelPairDevice, .invalidParameters, adapter, socket)
        }
        outbox.complete(.pairDevice, .cancelled, peer, adapter, requester)
        change(name) { $0.endPairing(isSuccess: false) }
        outbox.complete(.cancelPairDevice, .success, peer, adapter, socket)
        hosts[adapter]?.keys.remove(peer)
        outbox.notify(.authenticationFailed(peer, .authenticationFailed), adapter)
        // Also if Pair Device has not made the link.
        outbox.append(.disconnect(name))
    }

    /// No link comes up any more that a Pair Device waits for.
    private func endDials(_ adapter: UInt16, _ status: ManagementStatus) {
        let dials = hosts[adapter]?.dials ?? [:]
        hosts[adapter]?.dials = [:]
        for (peer, dial) in dials.sorted(by: { $0.value.requester < $1.value.requester }) {
            outbox.complete(.pairDevice, status, peer, adapter, dial.requester)
        }
    }

    private func unpair(_ peer: ManagementPeer, _ option: UInt8?, _ adapter: UInt16, _ socket: UInt64) {
        let code = ManagementCommandCode.unpairDevice
        guard let host = hosts[adapter], let option, option <= 1 else {
            return outbox.complete(code, .invalidParameters, peer, adapter, socket)
        }
        let name = find(peer, adapter)
        let isPairing = name.flatMap { link($0)?.pairing } != nil
        // Only the Long Term Key decides whether there was a pairing; the other key goes all the same.
        hosts[adapter]?.keys.removeIdentity(of: peer)
        guard isPairing || host.keys.hasKey(of: peer) else {
            return outbox.complete(code, .notPaired, peer, adapter, socket)
        }
        hosts[adapter]?.keys.remove(peer)
        if let name, isPairing { fail(name, by: .own) }
        guard let name, option == 1 else {
            outbox.complete(code, .success, peer, adapter, socket)
            return outbox.notify(.deviceUnpaired(peer), adapter, except: [socket])
        }
        change(name) { $0.awaitEnd(forUnpairing: socket) }
        outbox.append(.disconnect(name))
    }

    private func reply(
        _ code: ManagementCommandCode, _ passkey: UInt32?, _ peer: ManagementPeer, _ adapter: UInt16, _ socket: UInt64
    ) {
        guard let name = find(peer, adapter) else { return outbox.complete(code, .notConnected, peer, adapter, socket) }
        guard let pairing = link(name)?.pairing else { return outbox.complete(code, .failed, peer, adapter, socket) }
        switch pairing.effect(of: code, passkey: passkey) {
        case .verify(let isRight):
            outbox.complete(code, .success, peer, adapter, socket)
            verify(name, isRight: isRight)
        case .late: outbox.complete(code, .failed, peer, adapter, socket)
        case .stop:
            outbox.complete(code, .success, peer, adapter, socket)
            fail(name, by: .own)
        }
    }
}

// MARK: - Pairing

extension VirtualManagement {
    private func begin(
        _ name: LinkName, _ capability: IOCapability, needed: SocketSecurity.Level, requester: UInt64?
    ) {
        lastPairing += 1
        let pairing = VirtualPairing(
            number: lastPairing, requester: requester, capability: capability, needed: needed,
            isBondable: hosts[name.adapter]?.settings.isBondable ?? false)
        change(name) { $0.begin(pairing) }
        schedule(.proceed, Self.phase, name)
        scheduleTimeout(name)
    }

    private func schedule(_ kind: Step.Kind, _ delay: Duration, _ name: LinkName) {
        guard let pairing = link(name)?.pairing else { return }
        outbox.append(.schedule(delay, Step(link: name, pairing: pairing.number, kind: kind)))
    }

    /// Starts the timeout again, after each progress of a pairing.
    private func scheduleTimeout(_ name: LinkName) {
        schedule(.timeOut(progress: link(name)?.pairing?.progress ?? 0), Self.timeout, name)
    }

    /// Does what was scheduled.
    package func stepDue(_ step: Step) -> [Action] {
        if step.kind == .reportEncryption {
            return link(step.link)?.lastPairing == step.pairing ? [.reportEncryption(step.link)] : []
        }
        if step.kind == .endRequest {
            return link(step.link)?.request == step.pairing ? [.disconnect(step.link)] : []
        }
        guard let pairing = link(step.link)?.pairing, pairing.number == step.pairing else { return [] }
        switch (step.kind, pairing.phase) {
        case (.proceed, .beginning): respond(step.link)
        case (.proceed, .showing): verify(step.link, isRight: true)
        case (.proceed, .verifying(let isRight)): finishVerifying(step.link, isRight)
        case (.proceed, _): break
        case (.reportKeys, .ending(let events)):
            for event in events { outbox.notify(event, step.link.adapter) }
        case (.complete, _): finish(step.link)
        case (.reportKeys, _), (.reportEncryption, _), (.endRequest, _): break
        case (.timeOut(let progress), _):
            // The link's end completes everything.
            if progress == pairing.progress { outbox.append(.disconnect(step.link)) }
        }
        return outbox.flush()
    }

    /// The peer responds to the Pairing Request.
    private func respond(_ name: LinkName) {
        guard let host = hosts[name.adapter], let link = link(name) else { return }
        let peer = link.security()
        let response = changePairing(name) { pairing in
            pairing.respond(
                peer, isInitiator: link.isPeersPairing, allowsSecureConnections: host.settings.secureConnections > 0,
                hasOutOfBand: host.keys.outOfBand(of: link.peer) != nil)
        }
        switch response {
        case .accepted?: ask(name, link.peer, passkey: peer?.passkey)
        case .failed(let side)?: fail(name, by: side)
        case .ignored?, nil: break
        }
    }

    private func ask(_ name: LinkName, _ peer: ManagementPeer, passkey: UInt32?) {
        let number = numbers.number(below: 1_000_000)
        guard let question = changePairing(name, { $0.ask(number, passkey: passkey) }) else { return }
        if case .nothing = question { return verify(name, isRight: true) }
        scheduleTimeout(name)
        switch question {
        case .nothing: break
        case .confirm(let number, let isJustWorks):
            if !isJustWorks { outbox.append(.show(name, number)) }
            outbox.notify(.userConfirmationRequest(peer, isJustWorks: isJustWorks, number: number), name.adapter)
        case .enter(let passkey):
            outbox.append(.show(name, passkey))
            outbox.notify(.userPasskeyRequest(peer), name.adapter)
        case .show(let passkey):
            outbox.append(.show(name, passkey))
            outbox.notify(.passkeyNotify(peer, passkey), name.adapter)
            schedule(.proceed, Self.typing, name)
        }
    }

    private func verify(_ name: LinkName, isRight: Bool) {
        changePairing(name) { $0.verify(isRight: isRight) }
        scheduleTimeout(name)
        schedule(.proceed, Self.phase, name)
    }

    private func finishVerifying(_ name: LinkName, _ isRight: Bool) {
        guard let host = hosts[name.adapter], let link = link(name), let pairing = link.pairing else { return }
        guard let peer = link.security() else { return fail(name, by: .peer) }
        let known = host.keys.outOfBand(of: link.peer)
        if let side = pairing.failureOfVerifying(peer, isRight: isRight, outOfBand: known) {
            return fail(name, by: side)
        }
        makeKeys(name, peer)
    }

    /// A pairing has failed: by this side, which leaves the link as it was, or by the peer.
    private func fail(_ name: LinkName, by side: VirtualPairing.Side) {
        guard let link = link(name), let pairing = link.pairing else { return }
        change(name) { $0.endPairing(isSuccess: false) }
        let requester = pairing.requester
        outbox.notify(
            .authenticationFailed(link.peer, .authenticationFailed), name.adapter, except: requester.map { [$0] } ?? [])
        if let requester { outbox.complete(.pairDevice, .authenticationFailed, link.peer, name.adapter, requester) }
        if side == .peer { outbox.append(.disconnect(name)) }
    }

    private func makeKeys(_ name: LinkName, _ security: VirtualSecurity) {
        guard var host = hosts[name.adapter], var link = host.links[name.handle] else { return }
        let (peer, onAir, asksForIdentity) = (link.peer, link.onAir, host.keys.asksForIdentities)
        let made = link.withPairing { pairing in
            pairing.makeKeys(security, of: peer, onAir: onAir, asksForIdentity: asksForIdentity, &numbers)
        }
        guard let made else { return }
        link.paired(made)
        if let identity = made.identity { host.keys.insert(identity) }
        host.keys.insert(made.longTerm)
        host.links[name.handle] = link
        hosts[name.adapter] = host
        outbox.append(.encrypted(name, made.reached, made.bond))
        scheduleResults(name)
        if host.settings.secureConnections == 2 { outbox.append(.disconnect(name)) }
    }

    private func scheduleResults(_ name: LinkName) {
        let orders = ResultOrder.allCases
        let order = order ?? orders[Int(numbers.number(below: UInt32(orders.count)))]
        let steps: [Step.Kind] =
            switch order {
            case .encryptionFirst: [.reportEncryption, .reportKeys, .complete]
            case .keysFirst: [.reportKeys, .reportEncryption, .complete]
            case .completionFirst: [.reportKeys, .complete, .reportEncryption]
            }
        for (index, step) in steps.enumerated() { schedule(step, Self.gap * index, name) }
    }

    /// The keys are distributed: the pairing has ended, and its event of the controller may still be due.
    private func finish(_ name: LinkName) {
        guard let link = link(name), let pairing = link.pairing else { return }
        if let requester = pairing.requester {
            outbox.complete(.pairDevice, .success, link.peer, name.adapter, requester)
        }
        change(name) { $0.endPairing(isSuccess: true) }
        outbox.append(.proceed(name))
    }
}

// MARK: - Links

extension VirtualManagement {
    /// A link has come up. The closure returns the current description of its peer.
    package func linkBegan(
        _ name: LinkName, _ peer: PeerID, _ security: @escaping () -> VirtualSecurity?
    ) -> [Action] {
        guard let host = hosts[name.adapter] else { return [] }
        let known = host.identity(of: peer) ?? ManagementPeer(peer)
        hosts[name.adapter]?.links[name.handle] = VirtualKernelLink(
            to: peer, known, capability: host.settings.capability, security: security)
        if host.settings.isManaged { outbox.notify(.deviceConnected(known), name.adapter) }
        if let dial = hosts[name.adapter]?.dials.removeValue(forKey: known) {
            begin(name, dial.capability, needed: .medium, requester: dial.requester)
        }
        resumeInstances(name.adapter)
        return outbox.flush()
    }

    /// The central of a link has encrypted it, or has ended its encryption.
    func centralEncrypted(_ name: LinkName, _ security: VirtualLinkSecurity) {
        change(name) { $0.centralEncrypted(security) }
    }

    /// The central of a link has sent a Pairing Request.
    func centralPairs(_ name: LinkName, _ security: VirtualSecurity) -> [Action] {
        guard let host = hosts[name.adapter], host.settings.hasSecurityManager, let link = link(name),
            link.pairing == nil
        else { return [] }
        change(name) { $0.centralPairs(security) }
        if host.settings.isBondable || !security.keepsBonds {
            begin(name, link.capability, needed: .medium, requester: nil)
        } else {
            // It refuses by itself.
            outbox.notify(.authenticationFailed(link.peer, .authenticationFailed), name.adapter)
        }
        return outbox.flush()
    }

    /// A program has a Security Request sent to the central of a link; `nil` if none is sent: one is out, the central
    /// pairs, or the link is encrypted.
    func requestSecurity(_ name: LinkName) -> [Action]? {
        guard hosts[name.adapter]?.settings.hasSecurityManager == true, let link = link(name), link.pairing == nil,
            link.request == nil, !link.has(.medium)
        else { return nil }
        lastPairing += 1
        let number = lastPairing
        change(name) { $0.beginRequest(number) }
        outbox.append(.schedule(Self.timeout, Step(link: name, pairing: number, kind: .endRequest)))
        return outbox.flush()
    }

    /// The central of a link refuses what was requested: it fails the pairing that the request has begun.
    func refuseSecurity(_ name: LinkName) -> [Action] {
        guard let link = link(name), link.request != nil else { return [] }
        change(name) { $0.endRequest() }
        outbox.notify(.authenticationFailed(link.peer, .authenticationFailed), name.adapter)
        outbox.append(.disconnect(name))
        return outbox.flush()
    }

    package func linkEnded(_ name: LinkName, _ reason: HCIStatus) -> [Action] {
        guard let host = hosts[name.adapter], let link = hosts[name.adapter]?.links.removeValue(forKey: name.handle)
        else { return [] }
        for socket in link.disconnects { outbox.complete(.disconnect, .success, link.peer, name.adapter, socket) }
        if host.settings.isManaged {
            let reported = link.hasLostKey ? .authenticationFailure : Self.reason(reason)
            outbox.notify(.deviceDisconnected(link.peer, reported), name.adapter, except: link.disconnects)
        }
        for socket in link.unpairs {
            outbox.complete(.unpairDevice, .success, link.peer, name.adapter, socket)
            outbox.notify(.deviceUnpaired(link.peer), name.adapter, except: [socket])
        }
        if let requester = link.pairing?.requester {
            outbox.complete(.pairDevice, .failed, link.peer, name.adapter, requester)
        }
        hosts[name.adapter]?.instances.linkEnded()
        resumeInstances(name.adapter)
        return outbox.flush()
    }

    private static func reason(_ reason: HCIStatus) -> ManagementDeviceDisconnected.Reason {
        switch reason {
        case .connectionTimeout: .timeout
        case .localHostTerminated: .localHost
        case .remoteUserTerminated, .remoteLowResources, .remotePowerOff: .remote
        default: .unspecified
        }
    }

    /// Returns the peer of a link by the kernel's name, or how it would name a peer on the air.
    package func peer(of name: LinkName) -> PeerID? { link(name)?.peer.id }

    package func peer(onAir peer: PeerID, _ adapter: UInt16) -> PeerID {
        hosts[adapter]?.identity(of: peer)?.id ?? peer
    }

    package func security(of name: LinkName) -> SocketSecurity? {
        link(name).map { SocketSecurity(level: $0.level, keySize: $0.keySize) }
    }

    /// Returns a Boolean value that indicates whether a pairing runs on a link.
    package func isPairing(_ name: LinkName) -> Bool { link(name)?.pairing != nil }

    /// Returns a Boolean value that indicates whether the link's socket waits for a level.
    package func isWaiting(_ name: LinkName) -> Bool { link(name)?.isWaiting ?? false }

    /// A connected socket requests a level; `nil` if the kernel refuses that with `EINVAL`: there is no Security
    /// Manager, or the link has the level.
    package func requestLevel(_ level: SocketSecurity.Level, of name: LinkName) -> [Action]? {
        guard let host = hosts[name.adapter], host.settings.hasSecurityManager, level <= .fips,
            let link = link(name), !link.has(level)
        else { return nil }
        if link.pairing != nil {
            changePairing(name) { $0.raise(to: level) }
        } else if link.isEncrypting {
            change(name) { $0.raiseEncryption(to: level) }
        } else if !encrypt(name, level) {
            begin(name, link.capability, needed: level, requester: nil)
            if connectsWhilePairing { return outbox.flush() }
        }
        change(name) { $0.wait() }
        outbox.append(.wait(name))
        return outbox.flush()
    }

    /// A socket that was given a level before is connected to the link.
    package func socketConnected(_ name: LinkName, _ level: SocketSecurity.Level) -> [Action] {
        if let actions = requestLevel(level, of: name) { return actions }
        change(name) { $0.socketConnected(level) }
        return []
    }

    /// Encrypts a link with a key of the kernel; false if it has none that is worth the level.
    private func encrypt(_ name: LinkName, _ level: SocketSecurity.Level) -> Bool {
        guard let link = link(name), let key = hosts[name.adapter]?.keys.key(of: link.peer),
            SocketSecurity.Level(
                isSecureConnections: key.kind.isSecureConnections, isAuthenticated: key.kind.isAuthenticated) >= level
        else { return false }
        change(name) { $0.encrypt(with: key, for: level) }
        outbox.append(.encrypt(name, key))
        return true
    }

    /// The controller has encrypted a link, or the peer has no key. `isKernels` is false if a program began it by a
    /// command of its own, of which the kernel knows nothing.
    package func encryptionEnded(_ name: LinkName, _ status: HCIStatus, isKernels: Bool) -> [Action] {
        guard let isKeyOfKernel = change(name, { $0.encryptionEnded(status, isKernels: isKernels) }) else { return [] }
        if isKeyOfKernel { outbox.append(.proceed(name)) }
        if !status.isSuccess || hosts[name.adapter]?.settings.secureConnections == 2 {
            outbox.append(.disconnect(name))
        }
        return outbox.flush()
    }

    /// A link is no longer encrypted, though it is up.
    package func encryptionStopped(_ name: LinkName) {
        change(name) { $0.encryptionStopped() }
    }

    /// The peer has refused a channel for lack of security: the kernel pairs by itself, for one level more than the
    /// link has.
    package func channelRefused(_ name: LinkName) -> [Action] {
        guard let host = hosts[name.adapter], host.settings.hasSecurityManager, let link = link(name),
            link.pairing == nil, !link.isEncrypting
        else { return [] }
        let wanted: SocketSecurity.Level = link.has(.medium) ? .high : .medium
        if !encrypt(name, wanted) { begin(name, link.capability, needed: wanted, requester: nil) }
        return outbox.flush()
    }

    /// The peer has sent a Security Request.
    package func securityRequested(_ name: LinkName, _ request: VirtualSecurityRequest) -> [Action] {
        guard let host = hosts[name.adapter], host.settings.hasSecurityManager, let link = link(name),
            link.pairing == nil, !link.isEncrypting
        else { return [] }
        let isProtected = request.isAuthenticated && link.capability != .noInputNoOutput
        let level: SocketSecurity.Level = isProtected ? .high : .medium
        if link.has(level) || encrypt(name, level) { return outbox.flush() }
        if host.keys.key(of: link.peer) == nil, !host.settings.isBondable, request.isBonding {
            // It refuses by itself.
            outbox.notify(.authenticationFailed(link.peer, .authenticationFailed), name.adapter)
        } else {
            begin(name, link.capability, needed: level, requester: nil)
        }
        return outbox.flush()
    }
}
