// A Bluetooth controller as a state machine: a command in, events and actions for the radio out. It behaves as the
// specification requires and, where controllers differ, as the stricter ones: it accepts no connection attempt while
// scanning, or while a connectable advertisement is on air.
//
// Responsibilities: respond to every command once; track scanning, the connection attempt and the links. Its
// `VirtualAdvertiser` has the advertising sets.
//
// Invariants:
// - It has the legacy commands, or the extended ones in addition. Reports and the completion of an attempt use the
//   event type that belongs to the command that requested them.
// - It knows neither time, sockets nor peers: `VirtualRadio` does, as do tests that need a controller of their own.

package import BLECore

/// A controller without a radio.
package struct VirtualController: Sendable {
    /// An action for the owner, in order.
    package enum Action: Hashable, Sendable {
        /// Send this packet to all listeners.
        case send([UInt8])
        /// Scanning or a connection attempt began or ended.
        case listeningChanged
        /// Advertisements went on air or off, or have changed.
        case advertisingChanged
        /// Disconnect the link.
        case disconnect(ConnectionHandle)
        /// Change the link's connection parameters.
        case update(ConnectionHandle, ConnectionParameters)
        /// Change the link's PHYs, for transmitting and receiving.
        case changePHY(ConnectionHandle, PHY, PHY)
        /// Encrypt the link with this key.
        case encrypt(ConnectionHandle, VirtualKey)
    }

    /// A pending connection attempt.
    package struct Call: Hashable, Sendable {
        package let peer: PeerID
        package let parameters: ConnectionParameters
        /// True if it completes with the enhanced event.
        let isExtended: Bool
    }

    /// An established link.
    package struct Link: Hashable, Sendable {
        package let peer: PeerID
        /// Whether this side has initiated it.
        package let isCentral: Bool
        package var parameters: ConnectionParameters
        package var rssi: Int8
        package var transmit = PHY.le1M
        package var receive = PHY.le1M

        package init(peer: PeerID, isCentral: Bool = true, parameters: ConnectionParameters, rssi: Int8) {
            self.peer = peer
            self.isCentral = isCentral
            self.parameters = parameters
            self.rssi = rssi
        }
    }

    package let address: BluetoothAddress
    private let isExtended: Bool
    package private(set) var isScanning = false
    /// True if the scan is active.
    package private(set) var isActive = false
    /// True if reports use the extended event.
    var reportsExtended = false
    package private(set) var call: Call?
    package private(set) var advertiser: VirtualAdvertiser
    package var links: [ConnectionHandle: Link] = [:]
    /// The commands about links that it refuses.
    package var refusals: [HCIOpcode: HCIStatus] = [:]

    /// Creates a controller in its state after reset.
    package init(address: BluetoothAddress, isExtended: Bool) {
        self.address = address
        self.isExtended = isExtended
        advertiser = VirtualAdvertiser(hasSets: isExtended)
    }

    /// The number of links that may be up.
    package var linkLimit: Int {
        get { advertiser.linkLimit }
        set { advertiser.linkLimit = newValue }
    }

    /// True while it receives advertisements.
    package var isListening: Bool { isScanning || call != nil }

    /// Processes a command.
    package mutating func received(_ command: HCICommandPacket) -> [Action] {
        let opcode = command.opcode
        if let response = advertiser.respond(to: command, links: links.count) {
            let complete = complete(opcode, [response.status.rawValue] + response.returned)
            return response.isChange ? [complete, .advertisingChanged] : [complete]
        }
        switch opcode {
        case .leReadLocalFeatures: return [complete(opcode, [0] + features)]
        case .readLocalSupportedCommands: return [complete(opcode, [0] + supportedCommands)]
        case .readAddress: return [complete(opcode, [0] + address.littleEndianBytes)]
        case .leSetScanParameters, .leSetExtendedScanParameters, .leSetScanEnable, .leSetExtendedScanEnable:
            return scanning(command)
        case .leCreateConnection, .leExtendedCreateConnection, .leCreateConnectionCancel:
            return calling(command)
        case .disconnect, .readRSSI, .leReadPHY, .leConnectionUpdate, .leSetPHY, .leReadRemoteFeatures,
            .readRemoteVersion, .leSetDataLength, .leEnableEncryption:
            return aboutLink(command)
        default:
            return [complete(opcode, [0])]
        }
    }

    private var features: [UInt8] {
        let legacy: LEFeatures = [.encryption, .connectionParametersRequest, .dataLengthExtension]
        var writer = ByteWriter()
        writer.u64((isExtended ? legacy.union([.le2M, .coded, .extendedAdvertising]) : legacy).rawValue)
        return writer.bytes
    }

    private var supportedCommands: [UInt8] {
        var octets = [UInt8](repeating: 0xFF, count: 64)
        // Octets 36 and 37 contain the commands of extended advertising.
        if !isExtended { for octet in 36...37 { octets[octet] = 0 } }
        return octets
    }

    private func isUnknown(_ opcode: HCIOpcode) -> Bool {
        switch opcode {
        case .leSetExtendedScanParameters, .leSetExtendedScanEnable, .leExtendedCreateConnection: !isExtended
        default: false
        }
    }
}

// MARK: - Scanning and initiating

extension VirtualController {
    private mutating func scanning(_ command: HCICommandPacket) -> [Action] {
        let opcode = command.opcode
        if isUnknown(opcode) { return [complete(opcode, .unknownCommand)] }
        switch opcode {
        case .leSetScanParameters, .leSetExtendedScanParameters:
            if isScanning { return [complete(opcode, .commandDisallowed)] }
            reportsExtended = opcode == .leSetExtendedScanParameters
            // Active scanning: the first byte, or the first one after own address type, policy and PHYs.
            isActive = command.parameters.dropFirst(reportsExtended ? 3 : 0).first == 1
            return [complete(opcode, .success)]
        default:
            isScanning = command.parameters.first == 1
            return [complete(opcode, .success), .listeningChanged]
        }
    }

    private mutating func calling(_ command: HCICommandPacket) -> [Action] {
        let opcode = command.opcode
        if opcode == .leCreateConnectionCancel {
            guard let call else { return [complete(opcode, .commandDisallowed)] }
            return [complete(opcode, .success)] + callEnded(.unknownConnection, call)
        }
        if isUnknown(opcode) { return [status(opcode, .unknownCommand)] }
        if call != nil || isScanning || advertiser.isConnectable { return [status(opcode, .commandDisallowed)] }
        guard let call = Call(command) else { return [status(opcode, .invalidParameters)] }
        if links.values.contains(where: { $0.peer == call.peer }) { return [status(opcode, .connectionAlreadyExists)] }
        self.call = call
        return [status(opcode, .success), .listeningChanged]
    }

    /// Handles an advertisement of the peer of the pending attempt: the attempt completes with a link, optionally with
    /// this handle, or with the status.
    package mutating func answer(
        _ status: HCIStatus, rssi: Int8, as number: ConnectionHandle? = nil
    ) -> (handle: ConnectionHandle?, actions: [Action]) {
        guard let call else { return (nil, []) }
        guard status.isSuccess else { return (nil, callEnded(status, call)) }
        let handle = number ?? nextHandle
        links[handle] = Link(peer: call.peer, parameters: call.parameters, rssi: rssi)
        return (handle, callEnded(.success, call, handle))
    }

    /// Registers a link that the kernel has established by itself.
    package mutating func accept(_ peer: PeerID, rssi: Int8) -> ConnectionHandle {
        let handle = nextHandle
        links[handle] = Link(peer: peer, parameters: .balanced, rssi: rssi)
        return handle
    }

    /// A central connects by an advertisement that is on air, which ends.
    package mutating func centralConnects(
        _ peer: PeerID, by advertisement: UInt8, _ parameters: ConnectionParameters, rssi: Int8
    ) -> (handle: ConnectionHandle, actions: [Action]) {
        let handle = nextHandle
        links[handle] = Link(peer: peer, isCentral: false, parameters: parameters, rssi: rssi)
        let hasEvent = advertiser.centralConnected(by: advertisement)
        var actions = [
            Action.send(
                Self.connectionComplete(
                    .success, handle, peer, parameters, isCentral: false, isEnhanced: isExtended))
        ]
        if hasEvent { actions.append(.send(Self.advertisingSetTerminated(advertisement, handle))) }
        return (handle, actions + [.advertisingChanged])
    }

    /// The kernel takes all advertisements off air before it initiates, and does not restore them.
    package mutating func kernelInitiates() -> [Action] {
        guard let opcode = advertiser.disableAll() else { return [] }
        return [complete(opcode, .success), .advertisingChanged]
    }

    /// Resets everything, without an event.
    package mutating func reset() {
        let limit = linkLimit
        self = VirtualController(address: address, isExtended: isExtended)
        linkLimit = limit
    }

    private var nextHandle: ConnectionHandle {
        var handle: ConnectionHandle = 0x0040
        while links[handle] != nil { handle &+= 1 }
        return handle
    }

    private mutating func callEnded(_ status: HCIStatus, _ call: Call, _ handle: ConnectionHandle = 0) -> [Action] {
        self.call = nil
        return [
            .send(
                Self.connectionComplete(
                    status, handle, call.peer, call.parameters, isEnhanced: call.isExtended)),
            .listeningChanged,
        ]
    }
}

// MARK: - Links

extension VirtualController {
    private func aboutLink(_ command: HCICommandPacket) -> [Action] {
        let opcode = command.opcode
        var reader = ByteReader(command.parameters.span)
        let isAnsweredAtOnce = opcode == .readRSSI || opcode == .leReadPHY || opcode == .leSetDataLength
        guard let handle = reader.u16(), let link = links[handle] else {
            return [isAnsweredAtOnce ? complete(opcode, .unknownConnection) : status(opcode, .unknownConnection)]
        }
        if let refusal = refusals[opcode] { return [status(opcode, refusal)] }
        let taken = status(opcode, .success)
        switch opcode {
        case .readRSSI:
            return [complete(opcode, [0] + handle.littleEndianBytes + [UInt8(bitPattern: link.rssi)])]
        case .leReadPHY:
            return [complete(opcode, [0] + handle.littleEndianBytes + [link.transmit.rawValue, link.receive.rawValue])]
        case .leSetDataLength:
            return [complete(opcode, [0] + handle.littleEndianBytes)]
        case .disconnect:
            return [taken, .disconnect(handle)]
        case .leConnectionUpdate:
            let parameters = reader.linkParameters()
            guard let parameters else { return [status(opcode, .invalidParameters)] }
            return [taken, .update(handle, parameters)]
        case .leEnableEncryption:
            // Only the central encrypts a link.
            guard link.isCentral else { return [status(opcode, .commandDisallowed)] }
            let rand = reader.u64()
            let ediv = reader.u16()
            guard let rand, let ediv, let key = reader.secret() else { return [status(opcode, .invalidParameters)] }
            return [taken, .encrypt(handle, VirtualKey(rand: rand, ediv: ediv, value: key))]
        case .leSetPHY:
            let rules = reader.u8()
            let transmit = reader.u8()
            let receive = reader.u8()
            guard let rules, let transmit, let receive else { return [status(opcode, .invalidParameters)] }
            return [
                taken,
                .changePHY(
                    handle, rules & 1 != 0 ? link.transmit : Self.fastest(transmit),
                    rules & 2 != 0 ? link.receive : Self.fastest(receive)),
            ]
        default:
            return [taken]
        }
    }

    private static func fastest(_ phys: UInt8) -> PHY {
        let phys = LEPHYs(rawValue: phys)
        return phys.contains(.le2M) ? .le2M : phys.contains(.le1M) ? .le1M : .leCoded
    }
}

extension VirtualController.Call {
    fileprivate init?(_ command: HCICommandPacket) {
        isExtended = command.opcode == .leExtendedCreateConnection
        var reader = ByteReader(command.parameters.span)
        // After the scan interval, window and filter policy, or after the filter policy and own address type.
        guard reader.skip(isExtended ? 2 : 5), let type = reader.u8(), let address = reader.address(),
            // After own address type, or after the PHYs and the first scan interval and window.
            reader.skip(isExtended ? 5 : 1), let parameters = reader.linkParameters()
        else { return nil }
        peer = PeerID(address: address, type: type & 1 == 0 ? .public : .random)
        self.parameters = parameters
    }
}

extension ByteReader {
    /// Reads interval, latency and timeout as encoded in commands.
    fileprivate mutating func linkParameters() -> ConnectionParameters? {
        guard let shortest = u16(), let longest = u16(), let latency = u16(), let timeout = u16() else { return nil }
        return ConnectionParameters(intervalMin: shortest, intervalMax: longest, latency: latency, timeout: timeout)
    }
}
