// The kernel's management interface and its Security Manager, for all adapters of a virtual machine: packets of the
// management sockets, links and requests in, packets and actions on links out. It does what kernels 6.1 to 7.2 were seen
// to do, their traps included, at the level of management packets: there are no Security Manager PDUs.
//
// Responsibilities: respond to every command once; keep the settings and the lists of keys, which outlive sockets and
// power, but not unplugging; pair with a link's peer by its description; decide which key encrypts a link; report all of
// it to the sockets that may know.
//
// Invariants:
// - An adapter has a Security Manager only if it was switched on while under management. In its first two seconds after it
//   was plugged in, an adapter that seems to be off is on: HCIDEVUP keeps it so, without a Security Manager.
// - A link has one pairing at a time. It ends once: with keys, a failure, or the end of the link.
// - A Pair Device command is completed once, by whatever ends its pairing. Without a link it waits for one, until it is
//   cancelled.
// - It knows neither time nor sockets: `VirtualRadio` does, and calls `stepDue` later.

package import BLECore
package import BLELinux

/// The kernel's management interface without a kernel.
package struct VirtualManagement {
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
    package var order: ResultOrder? = .encryptionFirst
    /// Whether a socket that asked for more than the kernel's keys provide is connected at once, at level 1, while the
    /// kernel pairs; else never. Kernels do the one or the other, depending on the moment of the call.
    package var connectsWhilePairing = false

    private var sockets: [UInt64: Bool] = [:]
    private var hosts: [UInt16: Host] = [:]
    private var numbers: VirtualNumbers
    private var lastPairing: UInt64 = 0
    private var lastGrace: UInt64 = 0
    private var actions: [Action] = []

    package init(seed: UInt64 = 0) {
        numbers = VirtualNumbers(seed: seed)
    }
}

// MARK: - State

extension VirtualManagement {
    /// The kernel's state of an adapter.
    private struct Host {
        let address: BluetoothAddress
        var isUp: Bool
        var hasLowEnergy: Bool
        var isManaged = false
        var hasSecurityManager = false
        var isBondable = true
        /// 0 off, 1 preferred, 2 required.
        var secureConnections: UInt8 = 0
        var isPrivate = false
        var capability = IOCapability.noInputNoOutput
        var keys: [ManagementLongTermKey] = []
        var identities: [ManagementIdentityResolvingKey] = []
        /// True once identities were loaded: the kernel asks peers for theirs.
        var asksForIdentities = false
        var blockedKeys: Set<Secret128> = []
        var outOfBand: [ManagementPeer: (confirmation: Secret128, random: Secret128)] = [:]
        var links: [ConnectionHandle: Link] = [:]
        /// The socket whose Set Powered is being executed.
        var powering: UInt64?
        /// The number of the time in which the adapter is on, though it seems to be off.
        var grace: UInt64?
        /// Pair Device commands whose peers have no link yet, with their sockets.
        var dials: [ManagementPeer: Dial] = [:]

        var settings: ManagementSettings {
            var settings: ManagementSettings = []
            if isUp { settings.insert(.powered) }
            if isBondable { settings.insert(.bondable) }
            if hasLowEnergy { settings.insert(.lowEnergy) }
            if secureConnections > 0 { settings.insert(.secureConnections) }
            if isPrivate { settings.insert(.privacy) }
            return settings
        }

        /// Returns the identity of a private address that a loaded key resolves; with equal keys, the first one's.
        func identity(of peer: PeerID) -> ManagementPeer? {
            guard hasSecurityManager else { return nil }
            return identities.first { PrivateAddress.isResolved(peer, by: $0.key) }?.peer
        }

        /// Returns the key by which this side encrypts a link to a peer.
        func key(of peer: ManagementPeer) -> ManagementLongTermKey? {
            keys.first { $0.peer == peer && ($0.isCentral || $0.kind.isSecureConnections) }
        }

        mutating func removeKeys(of peer: ManagementPeer) {
            keys.removeAll { $0.peer == peer }
            identities.removeAll { $0.peer == peer }
        }
    }

    /// A Pair Device command that waits for a link.
    private struct Dial {
        let requester: UInt64
        let capability: IOCapability
    }

    /// The kernel's state of a link.
    private struct Link {
        let onAir: PeerID
        /// The peer's name on this interface: its identity, if known.
        var peer: ManagementPeer
        /// Taken when the link came up; later settings do not change it.
        let capability: IOCapability
        var security: () -> VirtualSecurity?
        /// True if the peer is the central, and has begun a pairing.
        var isPeersPairing = false
        var level = SocketSecurity.Level.low
        var keySize: UInt8 = 0
        /// The level that is requested, and the key for it, while the controller encrypts.
        var encrypting: (level: SocketSecurity.Level, key: ManagementLongTermKey)?
        var pairing: Pairing?
        /// The number of the last pairing, whose event of the controller may still be due.
        var lastPairing: UInt64 = 0
        /// The number of the Security Request to which the central has not reacted.
        var request: UInt64?
        /// True while the socket waits for a level.
        var isWaiting = false
        /// True if the peer did not accept the key.
        var hasLostKey = false
        /// The commands that wait for the end of the link.
        var disconnects: [UInt64] = []
        var unpairs: [UInt64] = []

        func has(_ wanted: SocketSecurity.Level) -> Bool { wanted <= .low || (keySize > 0 && level >= wanted) }
    }

    private struct Pairing {
        enum Phase {
            /// Until the peer responds.
            case beginning
            case confirming
            /// Until this side enters the passkey that the peer shows.
            case entering(UInt32)
            /// Until the peer's user enters the passkey that this side shows.
            case showing
            /// Until both sides have compared what they know.
            case verifying(isRight: Bool)
            /// The keys exist; their events are being sent.
            case ending([VirtualManagementEvent])
        }

        let number: UInt64
        var phase = Phase.beginning
        /// The socket of the Pair Device command.
        var requester: UInt64?
        /// True if a socket's request for a level began it.
        let isForSocket: Bool
        let capability: IOCapability
        let needed: SocketSecurity.Level
        let isBondable: Bool
        /// The level of a second request of the socket.
        var raised: SocketSecurity.Level?
        var isSecureConnections = false
        var method = PairingMethod.justWorks
        var keySize = 16
        /// Counts what happens, for the timeout.
        var progress = 0
    }

    /// An association model, as the initiator has it.
    ///
    /// Spec: Core Vol 3 Part H, 2.3.5.1.
    package enum PairingMethod: Hashable, Sendable {
        case justWorks
        case compare
        /// This side enters what the peer shows.
        case enter
        /// This side shows what the peer's user enters.
        case show
        case outOfBand

        package init(ours: IOCapability, theirs: IOCapability, isSecureConnections: Bool) {
            let comparing: Set<IOCapability> = [.displayYesNo, .keyboardDisplay]
            let typing: Set<IOCapability> = [.keyboardOnly, .keyboardDisplay]
            if ours == .noInputNoOutput || theirs == .noInputNoOutput {
                self = .justWorks
            } else if isSecureConnections, comparing.isSuperset(of: [ours, theirs]) {
                self = .compare
            } else if typing.contains(theirs) {
                self = ours == .keyboardOnly ? .enter : .show
            } else {
                self = typing.contains(ours) ? .enter : .justWorks
            }
        }

        /// The same model, as the other side has it.
        var mirrored: PairingMethod {
            switch self {
            case .enter: .show
            case .show: .enter
            case .justWorks, .compare, .outOfBand: self
            }
        }
    }

    private mutating func flush() -> [Action] {
        defer { actions = [] }
        return actions
    }

    private func link(_ name: LinkName) -> Link? { hosts[name.adapter]?.links[name.handle] }

    private mutating func change(_ name: LinkName, _ change: (inout Link) -> Void) {
        guard var link = link(name) else { return }
        change(&link)
        hosts[name.adapter]?.links[name.handle] = link
    }

    private func find(_ peer: ManagementPeer, _ adapter: UInt16) -> LinkName? {
        let handle = hosts[adapter]?.links.filter { $0.value.peer == peer }.keys.min()
        return handle.map { LinkName(adapter: adapter, handle: $0) }
    }

    /// Sends an event about peers or keys to all sockets that may know it.
    private mutating func tell(_ event: VirtualManagementEvent, _ adapter: UInt16, except: [UInt64] = []) {
        let packet = event.packet(adapter: adapter)
        for (number, isTrusted) in sockets.sorted(by: { $0.key < $1.key }) where isTrusted && !except.contains(number) {
            actions.append(.send(packet, to: number))
        }
    }

    /// Sends an event of an adapter to everybody.
    private mutating func announce(_ event: VirtualManagementEvent, _ adapter: UInt16, except: UInt64? = nil) {
        let packet = event.packet(adapter: adapter)
        for number in sockets.keys.sorted() where number != except { actions.append(.send(packet, to: number)) }
    }
}

// MARK: - Sockets and adapters

extension VirtualManagement {
    /// Registers a socket; a trusted one was opened with CAP_NET_ADMIN.
    package mutating func opened(_ socket: UInt64, isTrusted: Bool) {
        sockets[socket] = isTrusted
    }

    /// Unregisters a socket, which changes nothing else.
    package mutating func closed(_ socket: UInt64) {
        sockets[socket] = nil
    }

    package mutating func adapterAdded(
        _ adapter: UInt16, _ address: BluetoothAddress, isUp: Bool, hasLowEnergy: Bool = true
    ) -> [Action] {
        hosts[adapter] = Host(address: address, isUp: isUp, hasLowEnergy: hasLowEnergy)
        announce(.indexAdded, adapter)
        if !isUp {
            lastGrace += 1
            hosts[adapter]?.grace = lastGrace
            actions.append(.endGrace(adapter, number: lastGrace, after: Self.grace))
        }
        return flush()
    }

    /// The kernel has switched an adapter off that was plugged in a while ago.
    package mutating func graceEnded(_ adapter: UInt16, number: UInt64) {
        if hosts[adapter]?.grace == number { hosts[adapter]?.grace = nil }
    }

    /// Forgets everything about an adapter.
    package mutating func adapterRemoved(_ adapter: UInt16) -> [Action] {
        guard hosts[adapter] != nil else { return [] }
        endDials(adapter, .invalidIndex)
        hosts[adapter] = nil
        announce(.indexRemoved, adapter)
        return flush()
    }

    package mutating func powerChanged(_ adapter: UInt16, _ isUp: Bool) -> [Action] {
        guard var host = hosts[adapter] else { return [] }
        let requester = host.powering
        host.powering = nil
        let isChanged = host.isUp != isUp
        host.isUp = isUp
        if isChanged {
            // HCIDEVUP only keeps on what is on, and nothing is set up.
            let isKeptOn = host.grace != nil && requester == nil
            host.hasSecurityManager = isUp && host.isManaged && !isKeptOn
            host.grace = nil
        }
        hosts[adapter] = host
        if !isUp { endDials(adapter, .notPowered) }
        if let requester { complete(.setPowered, .success, settings(adapter), adapter, requester) }
        if isChanged, host.isManaged { announce(.newSettings(host.settings), adapter, except: requester) }
        return flush()
    }

    package mutating func lowEnergyChanged(_ adapter: UInt16, _ isOn: Bool) {
        hosts[adapter]?.hasLowEnergy = isOn
    }

    /// Whether others may bond with an adapter.
    package func isBondable(_ adapter: UInt16) -> Bool { hosts[adapter]?.isBondable ?? false }

    /// Makes an adapter, which is under management from then on, bondable or not; no program is notified.
    package mutating func bondableChanged(_ adapter: UInt16, _ isOn: Bool) {
        manage(adapter)
        hosts[adapter]?.isBondable = isOn
    }

    /// Whether the adapter has a Security Manager.
    package func hasSecurityManager(_ adapter: UInt16) -> Bool { hosts[adapter]?.hasSecurityManager ?? false }

    /// The Long Term Keys that the kernel has.
    package func keys(of adapter: UInt16) -> [ManagementLongTermKey] { hosts[adapter]?.keys ?? [] }
}

// MARK: - Commands

extension VirtualManagement {
    private static let readIndexList = ManagementCommandCode(rawValue: 0x0003)
    private static let setSecureSimplePairing = ManagementCommandCode(rawValue: 0x000B)
    private static let setClassic = ManagementCommandCode(rawValue: 0x002A)
    /// The commands that anybody may send.
    private static let open: Set<ManagementCommandCode> = [
        .readVersion, readIndexList, .readControllerInformation, .readControllerCapabilities,
    ]
    /// The commands that belong to no adapter.
    private static let general: Set<ManagementCommandCode> = [.readVersion, readIndexList]
    /// The lengths of the parameters; a negative one is the minimum.
    private static let lengths: [ManagementCommandCode: Int] = [
        .readVersion: 0, readIndexList: 0, .readControllerInformation: 0, .setPowered: 1, .setBondable: 1,
        setSecureSimplePairing: 1, .setLowEnergy: 1, .loadLongTermKeys: -2, .disconnect: 7, .getConnections: 0,
        .setIOCapability: 1, .pairDevice: 8, .cancelPairDevice: 7, .unpairDevice: 8, .userConfirmationReply: 7,
        .userConfirmationNegativeReply: 7, .userPasskeyReply: 11, .userPasskeyNegativeReply: 7,
        .addRemoteOutOfBandData: -39, setClassic: 1, .setSecureConnections: 1, .setPrivacy: 17,
        .loadIdentityResolvingKeys: -2, .readLocalOutOfBandData: 1, .setBlockedKeys: -2,
        .readControllerCapabilities: 0,
    ]

    /// Processes a packet of a socket.
    package mutating func received(_ packet: [UInt8], from socket: UInt64) -> [Action] {
        // The kernel refuses to take a packet whose length field is wrong.
        guard let isTrusted = sockets[socket], let packet = try? ManagementPacket(packet.span) else { return [] }
        let code = ManagementCommandCode(rawValue: packet.code)
        let count = packet.parameters.count
        if let refusal = refusal(of: code, count, packet.adapter, isTrusted: isTrusted) {
            status(code, refusal, packet.adapter, socket)
        } else if let adapter = packet.adapter {
            manage(adapter)
            execute(code, packet.parameters, adapter, socket)
        } else {
            executeGeneral(code, socket)
        }
        return flush()
    }

    private func refusal(
        of code: ManagementCommandCode, _ count: Int, _ adapter: UInt16?, isTrusted: Bool
    ) -> ManagementStatus? {
        guard let length = Self.lengths[code] else { return .unknownCommand }
        guard isTrusted || Self.open.contains(code) else { return .permissionDenied }
        let isGeneral = Self.general.contains(code)
        guard isGeneral == (adapter == nil), adapter.map({ hosts[$0] != nil }) ?? true else { return .invalidIndex }
        return length >= 0 && count != length || count < -length ? .invalidParameters : nil
    }

    /// Puts an adapter under management, as the first command that names it does.
    private mutating func manage(_ adapter: UInt16) {
        guard hosts[adapter]?.isManaged == false else { return }
        hosts[adapter]?.isManaged = true
        hosts[adapter]?.isBondable = false
    }

    private mutating func executeGeneral(_ code: ManagementCommandCode, _ socket: UInt64) {
        var writer = ByteWriter()
        if code == .readVersion {
            writer.u8(1)
            writer.u16(22)
        } else {
            writer.u16(UInt16(truncatingIfNeeded: hosts.count))
            for adapter in hosts.keys.sorted() { writer.u16(adapter) }
        }
        complete(code, .success, writer.bytes, nil, socket)
    }

    private mutating func execute(
        _ code: ManagementCommandCode, _ parameters: [UInt8], _ adapter: UInt16, _ socket: UInt64
    ) {
        let first = parameters.first ?? 0
        switch code {
        case .readControllerInformation: complete(code, .success, information(adapter), adapter, socket)
        case .setPowered: setPowered(first, adapter, socket)
        case .setBondable: set(code, first <= 1, adapter, socket) { $0.isBondable = first == 1 }
        case .setLowEnergy:
            // An adapter without BR/EDR cannot be switched off in this way.
            guard first != 0 else { return status(code, .rejected, adapter, socket) }
            if first == 1 { actions.append(.enableLowEnergy(adapter)) }
            set(code, first == 1, adapter, socket) { $0.hasLowEnergy = true }
        case .setSecureConnections: set(code, first <= 2, adapter, socket) { $0.secureConnections = first }
        case Self.setSecureSimplePairing, Self.setClassic: status(code, .notSupported, adapter, socket)
        case .setIOCapability:
            guard let capability = IOCapability(rawValue: first) else {
                return status(code, .invalidParameters, adapter, socket)
            }
            hosts[adapter]?.capability = capability
            complete(code, .success, [], adapter, socket)
        case .setPrivacy:
            guard hosts[adapter]?.isUp == false else { return status(code, .rejected, adapter, socket) }
            set(code, first <= 2, adapter, socket) { $0.isPrivate = first > 0 }
        case .readControllerCapabilities:
            // Security flags, the maximum sizes of keys for BR/EDR and LE pairing, the transmit power.
            complete(
                code, .success, [0x0B, 0, 2, 1, 0x0A, 3, 3, 0x10, 0, 3, 4, 0, 0], adapter, socket)
        case .readLocalOutOfBandData: complete(code, .notSupported, [first, 0, 0], adapter, socket)
        case .loadLongTermKeys, .loadIdentityResolvingKeys, .setBlockedKeys:
            load(code, parameters, adapter, socket)
        case .getConnections: getConnections(adapter, socket)
        default: executeForPeer(code, parameters, adapter, socket)
        }
    }

    private mutating func complete(
        _ code: ManagementCommandCode, _ status: ManagementStatus, _ returned: [UInt8], _ adapter: UInt16?,
        _ socket: UInt64
    ) {
        guard sockets[socket] != nil else { return }
        let event = VirtualManagementEvent.commandComplete(code, status, returned)
        actions.append(.send(event.packet(adapter: adapter), to: socket))
    }

    private mutating func complete(
        _ code: ManagementCommandCode, _ status: ManagementStatus, _ peer: ManagementPeer, _ adapter: UInt16,
        _ socket: UInt64
    ) {
        var writer = ByteWriter()
        writer.managementPeer(peer)
        complete(code, status, writer.bytes, adapter, socket)
    }

    private mutating func status(
        _ code: ManagementCommandCode, _ status: ManagementStatus, _ adapter: UInt16?, _ socket: UInt64
    ) {
        actions.append(.send(VirtualManagementEvent.commandStatus(code, status).packet(adapter: adapter), to: socket))
    }
}

// MARK: Settings

extension VirtualManagement {
    private func settings(_ adapter: UInt16) -> [UInt8] {
        var writer = ByteWriter()
        writer.u32(hosts[adapter]?.settings.rawValue ?? 0)
        return writer.bytes
    }

    private func information(_ adapter: UInt16) -> [UInt8] {
        guard let host = hosts[adapter] else { return [] }
        let supported: ManagementSettings = [
            .powered, .connectable, .discoverable, .bondable, .lowEnergy, .advertising, .secureConnections, .debugKeys,
            .privacy, .staticAddress, .phyConfiguration,
        ]
        var writer = ByteWriter()
        writer.u48(host.address.rawValue)
        // Bluetooth 5.2, no company.
        writer.u8(0x0B)
        writer.u16(0xFFFF)
        writer.u32(supported.rawValue)
        writer.u32(host.settings.rawValue)
        writer.u24(0)
        writer.array(Array("virtual".utf8) + [UInt8](repeating: 0, count: 249 + 11 - 7))
        return writer.bytes
    }

    private mutating func set(
        _ code: ManagementCommandCode, _ isValid: Bool, _ adapter: UInt16, _ socket: UInt64,
        _ change: (inout Host) -> Void
    ) {
        guard isValid, var host = hosts[adapter] else { return status(code, .invalidParameters, adapter, socket) }
        let former = host.settings
        change(&host)
        hosts[adapter] = host
        complete(code, .success, settings(adapter), adapter, socket)
        if host.settings != former { announce(.newSettings(host.settings), adapter, except: socket) }
    }

    private mutating func setPowered(_ value: UInt8, _ adapter: UInt16, _ socket: UInt64) {
        guard value <= 1, let host = hosts[adapter] else {
            return status(.setPowered, .invalidParameters, adapter, socket)
        }
        if host.powering != nil { return status(.setPowered, .busy, adapter, socket) }
        if host.isUp == (value == 1) { return complete(.setPowered, .success, settings(adapter), adapter, socket) }
        hosts[adapter]?.powering = socket
        actions.append(.setPower(adapter, value == 1))
    }

    private mutating func getConnections(_ adapter: UInt16, _ socket: UInt64) {
        guard let host = hosts[adapter], host.isUp else {
            return status(.getConnections, .notPowered, adapter, socket)
        }
        var writer = ByteWriter()
        writer.u16(UInt16(truncatingIfNeeded: host.links.count))
        for (_, link) in host.links.sorted(by: { $0.key < $1.key }) { writer.managementPeer(link.peer) }
        complete(.getConnections, .success, writer.bytes, adapter, socket)
    }
}

// MARK: Lists

extension VirtualManagement {
    private mutating func load(
        _ code: ManagementCommandCode, _ parameters: [UInt8], _ adapter: UInt16, _ socket: UInt64
    ) {
        let length = code == .loadLongTermKeys ? 36 : code == .setBlockedKeys ? 17 : 23
        var reader = ByteReader(parameters.span)
        guard let count = reader.u16(), reader.remaining == Int(count) * length, var host = hosts[adapter] else {
            return status(code, .invalidParameters, adapter, socket)
        }
        switch code {
        case .loadLongTermKeys:
            host.keys = []
            for _ in 0..<count {
                guard let key = Self.longTermKey(&reader), !host.blockedKeys.contains(key.key) else { continue }
                host.keys.append(key)
            }
        case .loadIdentityResolvingKeys:
            var keys: [ManagementIdentityResolvingKey] = []
            for _ in 0..<count {
                guard let peer = reader.managementPeer(), let key = reader.secret(), Self.isIdentity(peer) else {
                    return status(code, .invalidParameters, adapter, socket)
                }
                keys.append(ManagementIdentityResolvingKey(peer: peer, key: key))
            }
            host.identities = keys.filter { [blocked = host.blockedKeys] in !blocked.contains($0.key) }
            host.asksForIdentities = true
        default:
            host.blockedKeys = []
            for _ in 0..<count {
                guard reader.skip(1), let key = reader.secret() else { continue }
                host.blockedKeys.insert(key)
            }
        }
        hosts[adapter] = host
        complete(code, .success, [], adapter, socket)
    }

    /// Reads an entry; `nil` for one that the kernel skips.
    private static func longTermKey(_ reader: inout ByteReader) -> ManagementLongTermKey? {
        let peer = reader.managementPeer()
        let kind = reader.u8()
        let central = reader.u8()
        let size = reader.u8()
        let ediv = reader.u16()
        let rand = reader.u64()
        let key = reader.secret()
        guard let peer, let kind, let central, let size, let ediv, let rand, let key, isIdentity(peer), kind < 4,
            central < 2, size <= 16
        else { return nil }
        return ManagementLongTermKey(
            peer: peer, kind: .init(rawValue: kind), isCentral: central == 1, size: size, ediv: ediv, rand: rand,
            key: key)
    }

    private static func isIdentity(_ peer: ManagementPeer) -> Bool {
        guard let id = peer.id else { return false }
        return id.type == .public || id.kind == .static
    }
}

// MARK: Peers

extension VirtualManagement {
    private mutating func executeForPeer(
        _ code: ManagementCommandCode, _ parameters: [UInt8], _ adapter: UInt16, _ socket: UInt64
    ) {
        var reader = ByteReader(parameters.span)
        guard let peer = reader.managementPeer() else { return status(code, .invalidParameters, adapter, socket) }
        if code == .addRemoteOutOfBandData { return addOutOfBand(peer, &reader, adapter, socket) }
        let option = reader.u8()
        guard peer.id != nil else { return complete(code, .invalidParameters, peer, adapter, socket) }
        guard hosts[adapter]?.isUp == true else { return complete(code, .notPowered, peer, adapter, socket) }
        switch code {
        case .pairDevice: pair(peer, option, adapter, socket)
        case .cancelPairDevice: cancelPair(peer, adapter, socket)
        case .unpairDevice: unpair(peer, option, adapter, socket)
        case .disconnect:
            guard let name = find(peer, adapter) else { return complete(code, .notConnected, peer, adapter, socket) }
            change(name) { $0.disconnects.append(socket) }
            actions.append(.disconnect(name))
        default:
            var reader = ByteReader(parameters.span.extracting(droppingFirst: 7))
            reply(code, reader.u32(), peer, adapter, socket)
        }
    }

    private mutating func addOutOfBand(
        _ peer: ManagementPeer, _ reader: inout ByteReader, _ adapter: UInt16, _ socket: UInt64
    ) {
        let code = ManagementCommandCode.addRemoteOutOfBandData
        // The short form has values of P-192 only, which is for BR/EDR.
        guard reader.remaining == 64 else {
            if reader.remaining == 32 { return complete(code, .invalidParameters, peer, adapter, socket) }
            return status(code, .invalidParameters, adapter, socket)
        }
        guard let first = reader.secret(), let second = reader.secret(), let confirmation = reader.secret(),
            let random = reader.secret(), peer.id != nil, first == .zero, second == .zero
        else { return complete(code, .invalidParameters, peer, adapter, socket) }
        let isEmpty = confirmation == .zero || random == .zero
        hosts[adapter]?.outOfBand[peer] = isEmpty ? nil : (confirmation, random)
        complete(code, .success, peer, adapter, socket)
    }

    private mutating func pair(_ peer: ManagementPeer, _ option: UInt8?, _ adapter: UInt16, _ socket: UInt64) {
        let code = ManagementCommandCode.pairDevice
        guard let host = hosts[adapter], let option, let capability = IOCapability(rawValue: option) else {
            return complete(code, .invalidParameters, peer, adapter, socket)
        }
        if host.keys.contains(where: { $0.peer == peer }) {
            return complete(code, .alreadyPaired, peer, adapter, socket)
        }
        guard let name = find(peer, adapter), let link = link(name) else {
            // The kernel connects by itself, as soon as it hears the peer.
            if host.dials[peer] != nil { return complete(code, .busy, peer, adapter, socket) }
            hosts[adapter]?.dials[peer] = Dial(requester: socket, capability: capability)
            return
        }
        // Without a Security Manager every security is enough.
        guard host.hasSecurityManager else { return complete(code, .success, peer, adapter, socket) }
        if let pairing = link.pairing {
            if pairing.requester != nil { return complete(code, .busy, peer, adapter, socket) }
            // It joins the one that runs.
            return change(name) { $0.pairing?.requester = socket }
        }
        // Any key was enough.
        if link.has(.medium) { return complete(code, .success, peer, adapter, socket) }
        begin(name, capability, needed: .medium, requester: socket, isForSocket: false)
    }

    private mutating func cancelPair(_ peer: ManagementPeer, _ adapter: UInt16, _ socket: UInt64) {
        if let dial = hosts[adapter]?.dials.removeValue(forKey: peer) {
            complete(.pairDevice, .cancelled, peer, adapter, dial.requester)
            return complete(.cancelPairDevice, .success, peer, adapter, socket)
        }
        guard let name = find(peer, adapter), let requester = link(name)?.pairing?.requester else {
            return status(.cancelPairDevice, .invalidParameters, adapter, socket)
        }
        complete(.pairDevice, .cancelled, peer, adapter, requester)
        change(name) { $0.pairing = nil }
        complete(.cancelPairDevice, .success, peer, adapter, socket)
        hosts[adapter]?.removeKeys(of: peer)
        tell(.authenticationFailed(peer, .authenticationFailed), adapter)
        // Also if Pair Device has not made the link.
        actions.append(.disconnect(name))
    }

    /// No link comes up any more that a Pair Device waits for.
    private mutating func endDials(_ adapter: UInt16, _ status: ManagementStatus) {
        let dials = hosts[adapter]?.dials ?? [:]
        hosts[adapter]?.dials = [:]
        for (peer, dial) in dials.sorted(by: { $0.value.requester < $1.value.requester }) {
            complete(.pairDevice, status, peer, adapter, dial.requester)
        }
    }

    private mutating func unpair(_ peer: ManagementPeer, _ option: UInt8?, _ adapter: UInt16, _ socket: UInt64) {
        let code = ManagementCommandCode.unpairDevice
        guard let host = hosts[adapter], let option, option <= 1 else {
            return complete(code, .invalidParameters, peer, adapter, socket)
        }
        let name = find(peer, adapter)
        let isPairing = name.flatMap { link($0)?.pairing } != nil
        // Only the Long Term Key decides whether there was a pairing; the other key goes all the same.
        hosts[adapter]?.identities.removeAll { $0.peer == peer }
        guard isPairing || host.keys.contains(where: { $0.peer == peer }) else {
            return complete(code, .notPaired, peer, adapter, socket)
        }
        hosts[adapter]?.removeKeys(of: peer)
        if let name, isPairing { fail(name, byPeer: false) }
        guard let name, option == 1 else {
            complete(code, .success, peer, adapter, socket)
            return tell(.deviceUnpaired(peer), adapter, except: [socket])
        }
        change(name) { $0.unpairs.append(socket) }
        actions.append(.disconnect(name))
    }

    private mutating func reply(
        _ code: ManagementCommandCode, _ passkey: UInt32?, _ peer: ManagementPeer, _ adapter: UInt16, _ socket: UInt64
    ) {
        guard let name = find(peer, adapter) else { return complete(code, .notConnected, peer, adapter, socket) }
        guard let pairing = link(name)?.pairing else { return complete(code, .failed, peer, adapter, socket) }
        switch (code, pairing.phase) {
        case (.userConfirmationReply, .confirming):
            complete(code, .success, peer, adapter, socket)
            verify(name, isRight: true)
        case (.userPasskeyReply, .entering(let shown)):
            complete(code, .success, peer, adapter, socket)
            verify(name, isRight: passkey == shown)
        case (_, .ending), (.userConfirmationReply, _), (.userPasskeyReply, _):
            complete(code, .failed, peer, adapter, socket)
        default:
            // A negative reply stops a pairing in any phase.
            complete(code, .success, peer, adapter, socket)
            fail(name, byPeer: false)
        }
    }
}

// MARK: - Pairing

extension VirtualManagement {
    private mutating func begin(
        _ name: LinkName, _ capability: IOCapability, needed: SocketSecurity.Level, requester: UInt64?,
        isForSocket: Bool
    ) {
        lastPairing += 1
        let pairing = Pairing(
            number: lastPairing, requester: requester, isForSocket: isForSocket, capability: capability,
            needed: needed, isBondable: hosts[name.adapter]?.isBondable ?? false)
        change(name) { link in
            link.pairing = pairing
            link.lastPairing = pairing.number
        }
        schedule(.proceed, Self.phase, name)
        progress(name)
    }

    private mutating func schedule(_ kind: Step.Kind, _ delay: Duration, _ name: LinkName) {
        guard let pairing = link(name)?.pairing else { return }
        actions.append(.schedule(delay, Step(link: name, pairing: pairing.number, kind: kind)))
    }

    /// Starts the timeout again.
    private mutating func progress(_ name: LinkName, _ phase: Pairing.Phase? = nil) {
        change(name) { link in
            link.pairing?.progress += 1
            if let phase { link.pairing?.phase = phase }
        }
        schedule(.timeOut(progress: link(name)?.pairing?.progress ?? 0), Self.timeout, name)
    }

    /// Does what was scheduled.
    package mutating func stepDue(_ step: Step) -> [Action] {
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
            for event in events { tell(event, step.link.adapter) }
        case (.complete, _): finish(step.link)
        case (.reportKeys, _), (.reportEncryption, _), (.endRequest, _): break
        case (.timeOut(let progress), _):
            // The link's end completes everything.
            if progress == pairing.progress { actions.append(.disconnect(step.link)) }
        }
        return flush()
    }

    /// The peer responds to the Pairing Request.
    private mutating func respond(_ name: LinkName) {
        guard let link = link(name), var pairing = link.pairing, let host = hosts[name.adapter] else { return }
        guard let peer = link.security(), peer.response != .refuse else { return fail(name, byPeer: true) }
        guard peer.response != .ignore else { return }
        pairing.isSecureConnections = host.secureConnections > 0 && peer.hasSecureConnections
        pairing.keySize = min(max(peer.keySize, 7), 16)
        let theirs = IOCapability(peer.capability)
        let isSecure = pairing.isSecureConnections
        if isSecure, host.outOfBand[link.peer] != nil {
            pairing.method = .outOfBand
        } else if link.isPeersPairing {
            pairing.method =
                PairingMethod(ours: theirs, theirs: pairing.capability, isSecureConnections: isSecure).mirrored
        } else {
            pairing.method =
                PairingMethod(ours: pairing.capability, theirs: theirs, isSecureConnections: isSecure)
        }
        change(name) { $0.pairing = pairing }
        let isProtected = pairing.method != .justWorks
        if peer.requiresAuthentication, !isProtected { return fail(name, byPeer: true) }
        if pairing.needed >= .high, !isProtected { return fail(name, byPeer: false) }
        if pairing.needed == .fips, pairing.isSecureConnections, pairing.keySize < 16 {
            return fail(name, byPeer: false)
        }
        ask(name, pairing, link.peer, peer)
    }

    private mutating func ask(
        _ name: LinkName, _ pairing: Pairing, _ peer: ManagementPeer, _ security: VirtualSecurity
    ) {
        let number = numbers.number(below: 1_000_000)
        switch pairing.method {
        case .justWorks:
            // The number is noise.
            let noise = pairing.isSecureConnections ? number : 0
            progress(name, .confirming)
            tell(.userConfirmationRequest(peer, isJustWorks: true, number: noise), name.adapter)
        case .compare:
            progress(name, .confirming)
            actions.append(.show(name, number))
            tell(.userConfirmationRequest(peer, isJustWorks: false, number: number), name.adapter)
        case .enter:
            let passkey = security.passkey ?? number
            progress(name, .entering(passkey))
            actions.append(.show(name, passkey))
            tell(.userPasskeyRequest(peer), name.adapter)
        case .show:
            progress(name, .showing)
            actions.append(.show(name, number))
            tell(.passkeyNotify(peer, number), name.adapter)
            schedule(.proceed, Self.typing, name)
        case .outOfBand: verify(name, isRight: true)
        }
    }

    private mutating func verify(_ name: LinkName, isRight: Bool) {
        progress(name, .verifying(isRight: isRight))
        schedule(.proceed, Self.phase, name)
    }

    private mutating func finishVerifying(_ name: LinkName, _ isRight: Bool) {
        guard let link = link(name), let pairing = link.pairing else { return }
        guard let peer = link.security(), peer.response != .reject, isRight else { return fail(name, byPeer: true) }
        if pairing.method == .outOfBand, let known = hosts[name.adapter]?.outOfBand[link.peer] {
            // This side compares, and fails the pairing.
            guard let theirs = peer.outOfBandData, Secret128(padding: theirs.confirmation) == known.confirmation,
                Secret128(padding: theirs.random) == known.random
            else { return fail(name, byPeer: false) }
        }
        makeKeys(name, peer)
    }

    /// A pairing has failed: by this side, which leaves the link as it was, or by the peer.
    private mutating func fail(_ name: LinkName, byPeer isByPeer: Bool) {
        guard let link = link(name), let pairing = link.pairing else { return }
        change(name) { $0.pairing = nil }
        let requester = pairing.requester
        tell(
            .authenticationFailed(link.peer, .authenticationFailed), name.adapter, except: requester.map { [$0] } ?? [])
        if let requester { complete(.pairDevice, .authenticationFailed, link.peer, name.adapter, requester) }
        // A socket that waits for it waits for ever.
        if isByPeer { actions.append(.disconnect(name)) }
    }
}

// MARK: Keys

extension VirtualManagement {
    private mutating func makeKeys(_ name: LinkName, _ security: VirtualSecurity) {
        guard var host = hosts[name.adapter], var link = host.links[name.handle], let pairing = link.pairing else {
            return
        }
        let isAuthenticated = pairing.method != .justWorks
        let isKept = pairing.isBondable && security.keepsBonds
        var events: [VirtualManagementEvent] = []
        if host.asksForIdentities, let identity = security.identity {
            let key = ManagementIdentityResolvingKey(
                peer: ManagementPeer(identity.address), key: Secret128(padding: identity.key))
            let onAir = link.onAir.kind == .resolvablePrivate ? link.onAir.address : .zero
            link.peer = key.peer
            host.identities.removeAll { $0.peer == key.peer }
            host.identities.append(key)
            events.append(.newIdentityResolvingKey(isForStorage: isKept, privateAddress: onAir, key))
        }
        if let key = security.signatureKey {
            events.append(
                .newSignatureKey(
                    isForStorage: isKept, link.peer, kind: isAuthenticated ? 3 : 1, Secret128(padding: key)))
        }
        if security.acceptsSignedWrites, isKept {
            events.append(
                .newSignatureKey(
                    isForStorage: isKept, link.peer, kind: isAuthenticated ? 2 : 0, numbers.secret(size: 16)))
        }
        let keys = longTermKeys(link.peer, pairing, isAuthenticated: isAuthenticated, isKept: isKept)
        let isNamed = Self.isIdentity(link.peer)
        for key in keys { events.append(.newLongTermKey(isForStorage: isKept && isNamed, key)) }
        host.keys.removeAll { key in keys.contains { $0.peer == key.peer && $0.isCentral == key.isCentral } }
        host.keys += keys
        link.keySize = UInt8(truncatingIfNeeded: pairing.keySize)
        let worth = Self.level(isSecureConnections: pairing.isSecureConnections, isAuthenticated: isAuthenticated)
        // A second request while it ran is believed, whatever the key is worth.
        link.level = max(worth, pairing.raised ?? .low)
        link.pairing?.phase = .ending(events)
        host.links[name.handle] = link
        hosts[name.adapter] = host
        let reached = VirtualLinkSecurity(keySize: pairing.keySize, isAuthenticated: isAuthenticated)
        let bond = keys.first.flatMap { isKept ? VirtualBond($0, reached) : nil }
        actions.append(.encrypted(name, reached, bond))
        scheduleResults(name)
        if host.secureConnections == 2 { actions.append(.disconnect(name)) }
    }

    private mutating func longTermKeys(
        _ peer: ManagementPeer, _ pairing: Pairing, isAuthenticated: Bool, isKept: Bool
    ) -> [ManagementLongTermKey] {
        let size = UInt8(truncatingIfNeeded: pairing.keySize)
        if pairing.isSecureConnections {
            return [
                ManagementLongTermKey(
                    peer: peer, kind: isAuthenticated ? .secureConnectionsAuthenticated : .secureConnections,
                    isCentral: false, size: size, ediv: 0, rand: 0, key: numbers.secret(size: pairing.keySize))
            ]
        }
        guard isKept else { return [] }
        return [true, false].map { isCentral in
            ManagementLongTermKey(
                peer: peer, kind: isAuthenticated ? .legacyAuthenticated : .legacy, isCentral: isCentral, size: size,
                ediv: UInt16(truncatingIfNeeded: numbers.next()), rand: numbers.next(),
                key: numbers.secret(size: pairing.keySize))
        }
    }

    private static func level(isSecureConnections: Bool, isAuthenticated: Bool) -> SocketSecurity.Level {
        !isAuthenticated ? .medium : isSecureConnections ? .fips : .high
    }

    private mutating func scheduleResults(_ name: LinkName) {
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

    /// The keys are told: the pairing has ended, and its event of the controller may still be due.
    private mutating func finish(_ name: LinkName) {
        guard let link = link(name), let pairing = link.pairing else { return }
        if let requester = pairing.requester {
            complete(.pairDevice, .success, link.peer, name.adapter, requester)
        }
        change(name) { link in
            link.pairing = nil
            link.isWaiting = false
        }
        actions.append(.proceed(name))
    }
}

// MARK: - Links

extension VirtualManagement {
    /// A link has come up. The closure returns the current description of its peer.
    package mutating func linkBegan(
        _ name: LinkName, _ peer: PeerID, _ security: @escaping () -> VirtualSecurity?
    ) -> [Action] {
        guard let host = hosts[name.adapter] else { return [] }
        let known = host.identity(of: peer) ?? ManagementPeer(peer)
        hosts[name.adapter]?.links[name.handle] = Link(
            onAir: peer, peer: known, capability: host.capability, security: security)
        if host.isManaged { tell(.deviceConnected(known), name.adapter) }
        if let dial = hosts[name.adapter]?.dials.removeValue(forKey: known) {
            begin(name, dial.capability, needed: .medium, requester: dial.requester, isForSocket: false)
        }
        return flush()
    }

    /// The central of a link has encrypted it, or has ended its encryption.
    mutating func centralEncrypted(_ name: LinkName, _ security: VirtualLinkSecurity) {
        change(name) { link in
            link.request = nil
            link.keySize = UInt8(clamping: security.keySize)
            link.level = !security.isEncrypted ? .low : security.isAuthenticated ? .high : .medium
        }
    }

    /// The central of a link has sent a Pairing Request.
    mutating func centralPairs(_ name: LinkName, _ security: VirtualSecurity) -> [Action] {
        guard let host = hosts[name.adapter], host.hasSecurityManager, let link = link(name), link.pairing == nil
        else { return [] }
        change(name) { link in
            link.security = { security }
            link.isPeersPairing = true
            link.request = nil
        }
        if host.isBondable || !security.keepsBonds {
            begin(name, link.capability, needed: .medium, requester: nil, isForSocket: false)
        } else {
            // It refuses by itself.
            tell(.authenticationFailed(link.peer, .authenticationFailed), name.adapter)
        }
        return flush()
    }

    /// A program has a Security Request sent to the central of a link; `nil` if none is sent: one is out, the central pairs,
    /// or the link is encrypted.
    mutating func requestSecurity(_ name: LinkName) -> [Action]? {
        guard hosts[name.adapter]?.hasSecurityManager == true, let link = link(name), link.pairing == nil,
            link.request == nil, !link.has(.medium)
        else { return nil }
        lastPairing += 1
        let number = lastPairing
        change(name) { $0.request = number }
        actions.append(.schedule(Self.timeout, Step(link: name, pairing: number, kind: .endRequest)))
        return flush()
    }

    /// The central of a link refuses what was requested: it fails the pairing that the request has begun.
    mutating func refuseSecurity(_ name: LinkName) -> [Action] {
        guard let link = link(name), link.request != nil else { return [] }
        change(name) { $0.request = nil }
        tell(.authenticationFailed(link.peer, .authenticationFailed), name.adapter)
        actions.append(.disconnect(name))
        return flush()
    }

    package mutating func linkEnded(_ name: LinkName, _ reason: HCIStatus) -> [Action] {
        guard let host = hosts[name.adapter], let link = hosts[name.adapter]?.links.removeValue(forKey: name.handle)
        else { return [] }
        for socket in link.disconnects { complete(.disconnect, .success, link.peer, name.adapter, socket) }
        if host.isManaged {
            let reported = link.hasLostKey ? .authenticationFailure : Self.reason(reason)
            tell(.deviceDisconnected(link.peer, reported), name.adapter, except: link.disconnects)
        }
        for socket in link.unpairs {
            complete(.unpairDevice, .success, link.peer, name.adapter, socket)
            tell(.deviceUnpaired(link.peer), name.adapter, except: [socket])
        }
        if let requester = link.pairing?.requester {
            complete(.pairDevice, .failed, link.peer, name.adapter, requester)
        }
        return flush()
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

    /// Whether a pairing runs on a link.
    package func isPairing(_ name: LinkName) -> Bool { link(name)?.pairing != nil }

    /// Whether the link's socket waits for a level.
    package func isWaiting(_ name: LinkName) -> Bool { link(name)?.isWaiting ?? false }

    /// A connected socket requests a level; `nil` if the kernel refuses that with `EINVAL`: there is no Security
    /// Manager, or the link has the level.
    package mutating func requestLevel(_ level: SocketSecurity.Level, of name: LinkName) -> [Action]? {
        guard let host = hosts[name.adapter], host.hasSecurityManager, level <= .fips, let link = link(name),
            !link.has(level)
        else { return nil }
        if link.pairing != nil {
            change(name) { $0.pairing?.raised = level }
        } else if link.encrypting != nil {
            change(name) { $0.encrypting?.level = max(level, link.encrypting?.level ?? level) }
        } else if !encrypt(name, level) {
            begin(name, link.capability, needed: level, requester: nil, isForSocket: true)
            if connectsWhilePairing { return flush() }
        }
        change(name) { $0.isWaiting = true }
        actions.append(.wait(name))
        return flush()
    }

    /// A socket that was given a level before is connected to the link.
    package mutating func socketConnected(_ name: LinkName, _ level: SocketSecurity.Level) -> [Action] {
        if let actions = requestLevel(level, of: name) { return actions }
        // It has what was requested, or the kernel cannot encrypt, and repeats the request.
        change(name) { link in if link.keySize == 0 { link.level = level } }
        return []
    }

    /// Encrypts a link with a key of the kernel; false if it has none that is worth the level.
    private mutating func encrypt(_ name: LinkName, _ level: SocketSecurity.Level) -> Bool {
        guard let link = link(name), let key = hosts[name.adapter]?.key(of: link.peer),
            Self.level(
                isSecureConnections: key.kind.isSecureConnections, isAuthenticated: key.kind.isAuthenticated) >= level
        else { return false }
        change(name) { $0.encrypting = (level, key) }
        actions.append(.encrypt(name, key))
        return true
    }

    /// The controller has encrypted a link, or the peer has no key. `isKernels` is false if a program began it by a
    /// command of its own, of which the kernel knows nothing.
    package mutating func encryptionEnded(_ name: LinkName, _ status: HCIStatus, isKernels: Bool) -> [Action] {
        guard let link = link(name) else { return [] }
        let encrypting = isKernels ? link.encrypting : nil
        if isKernels { change(name) { $0.encrypting = nil } }
        guard status.isSuccess else {
            change(name) { $0.hasLostKey = status == .keyMissing }
            actions.append(.disconnect(name))
            return flush()
        }
        if let encrypting {
            change(name) { link in
                link.level = encrypting.level
                link.keySize = encrypting.key.size
                link.isWaiting = false
            }
            actions.append(.proceed(name))
        }
        if hosts[name.adapter]?.secureConnections == 2 { actions.append(.disconnect(name)) }
        return flush()
    }

    /// A link is no longer encrypted, though it is up.
    package mutating func encryptionStopped(_ name: LinkName) {
        change(name) { link in
            link.level = .low
            link.keySize = 0
        }
    }

    /// The peer has sent a Security Request.
    package mutating func securityRequested(_ name: LinkName, _ request: VirtualSecurityRequest) -> [Action] {
        guard let host = hosts[name.adapter], host.hasSecurityManager, let link = link(name), link.pairing == nil,
            link.encrypting == nil
        else { return [] }
        let isProtected = request.isAuthenticated && link.capability != .noInputNoOutput
        let level: SocketSecurity.Level = isProtected ? .high : .medium
        if link.has(level) || encrypt(name, level) { return flush() }
        if host.key(of: link.peer) == nil, !host.isBondable, request.isBonding {
            // It refuses by itself.
            tell(.authenticationFailed(link.peer, .authenticationFailed), name.adapter)
        } else {
            begin(name, link.capability, needed: level, requester: nil, isForSocket: false)
        }
        return flush()
    }
}

extension ManagementLongTermKey.Kind {
    var isSecureConnections: Bool { rawValue >= Self.secureConnections.rawValue }
    var isAuthenticated: Bool { self == .legacyAuthenticated || self == .secureConnectionsAuthenticated }
}

extension IOCapability {
    init(_ capability: VirtualSecurity.Capability) {
        self =
            switch capability {
            case .displayOnly: .displayOnly
            case .displayYesNo: .displayYesNo
            case .keyboardOnly: .keyboardOnly
            case .noInputNoOutput: .noInputNoOutput
            case .keyboardDisplay: .keyboardDisplay
            }
    }
}

extension Secret128 {
    /// The first 16 bytes, filled up with zeros.
    init(padding bytes: [UInt8]) {
        let whole = Array((bytes + [UInt8](repeating: 0, count: 16)).prefix(16))
        self = Secret128(whole.span) ?? .zero
    }
}

/// Numbers that are the same in each run: SplitMix64.
struct VirtualNumbers {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    mutating func number(below limit: UInt32) -> UInt32 {
        UInt32(truncatingIfNeeded: next() % UInt64(limit))
    }

    /// Returns a key of this size.
    mutating func secret(size: Int) -> Secret128 {
        var writer = ByteWriter()
        writer.u64(next())
        writer.u64(next())
        return Secret128(padding: Array(writer.bytes.prefix(size)))
    }
}
