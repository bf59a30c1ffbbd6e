// A Bluetooth controller as a state machine: a command in, events and actions for the radio out. It behaves as the
// specification requires and, where controllers differ, as the stricter ones: it accepts no connection attempt while
// scanning, or while a connectable advertisement is on air. Its `VirtualPersonality` has what it does otherwise.
//
// Responsibilities: respond to every command once; track scanning, the connection attempt and the links. Its
// `VirtualAdvertiser` has the advertising sets.
//
// Invariants:
// - It has the legacy commands, or the extended ones in addition. Reports and the completion of an attempt use the
//   event type that belongs to the command that requested them.
// - Events are masked, lost and counted in `shape`, which the owner calls with each packet that it sends.
// - It knows neither time, sockets nor peers: `VirtualRadio` does, as do tests that need a controller of their own.

package import BLECore

/// A controller without a radio.
package struct VirtualController: Sendable {
    /// An action for the owner, in order.
    package enum Action: Hashable, Sendable {
        /// Send this packet to all listeners.
        case send([UInt8])
        /// Send this packet after that time.
        case sendLater([UInt8], Duration)
        /// There is no response to a command.
        case unresponsive
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
    package struct Attempt: Hashable, Sendable {
        package let peer: PeerID
        package let parameters: ConnectionParameters
        /// True if it completes with the enhanced event.
        let isExtended: Bool
        /// True if it uses the coded PHY.
        let usesCoded: Bool
        /// True if it does not end by itself.
        var isEndless = false
    }

    /// An established link.
    package struct Link: Hashable, Sendable {
        package let peer: PeerID
        /// A Boolean value that indicates whether this side has initiated it.
        package let isCentral: Bool
        package fileprivate(set) var parameters: ConnectionParameters
        package fileprivate(set) var rssi: Int8
        package fileprivate(set) var transmit = PHY.le1M
        package fileprivate(set) var receive = PHY.le1M

        init(peer: PeerID, isCentral: Bool = true, parameters: ConnectionParameters, rssi: Int8) {
            self.peer = peer
            self.isCentral = isCentral
            self.parameters = parameters
            self.rssi = rssi
        }
    }

    package let address: BluetoothAddress
    package let personality: VirtualPersonality
    private var events = HCIEventMask.initial
    private var leEvents = LEEventMask.initial
    private var reportCount = 0
    private var eventCount = 0
    private var orderedCount = 0
    private var hiddenLinks: Int
    /// The number of scans that have begun since it was switched on.
    private var scanCount = 0
    /// The devices that were reported last, while it filters duplicates.
    private var reported: [PeerID]?
    /// Whether the extended set of commands is in use since the reset; `nil` for neither.
    private var usesExtendedSet: Bool?
    package private(set) var isScanning = false
    /// True if the scan is active.
    package private(set) var isActive = false
    private var scansWithRandomAddress = false
    /// Whether it scans on the coded PHY.
    private var scansCoded = false
    /// True if reports use the extended event.
    private(set) var reportsExtended = false
    package private(set) var attempt: Attempt?
    package private(set) var advertiser: VirtualAdvertiser
    package private(set) var links: [ConnectionHandle: Link] = [:]
    /// The PHYs that links may use, as a program has set them; `nil` for all.
    package private(set) var preferredPHYs: LEPHYs?
    /// The commands about links that it refuses.
    private var refusals: [HCIOpcode: HCIStatus] = [:]

    /// Creates a controller in its state after reset.
    package init(address: BluetoothAddress, personality: VirtualPersonality) {
        self.address = address
        self.personality = personality
        let capabilities = personality.capabilities
        advertiser = VirtualAdvertiser(
            hasSets: personality.listsExtendedCommands, linkLimit: personality.linkLimit,
            setLimit: capabilities.advertisingSets.map { Int($0) } ?? VirtualAdvertiser.setLimit,
            maximumDataLength: capabilities.maximumAdvertisingData.map { Int($0) }
                ?? VirtualAdvertiser.maximumDataLength)
        hiddenLinks = personality.hiddenLinks
    }

    /// Creates a controller without deviations.
    package init(address: BluetoothAddress, isExtended: Bool) {
        self.init(address: address, personality: isExtended ? .bluetooth5 : .bluetooth4)
    }

    private var isExtended: Bool { personality.listsExtendedCommands }

    private var isAdvertising: Bool { !advertiser.setsOnAir.isEmpty }

    /// A Boolean value that indicates whether a link that comes up now breaks on 2M.
    package var losesLinks: Bool { personality.losesLinksOn2M && preferredPHYs?.contains(.le2M) ?? true }

    /// The number of links that may be up.
    package var linkLimit: Int {
        get { advertiser.linkLimit }
        set { advertiser.limitLinks(to: newValue) }
    }

    /// True while it receives advertisements.
    package var isListening: Bool { isScanning || attempt != nil }

    /// Processes a command.
    package mutating func received(_ command: HCICommandPacket) -> [Action] {
        let opcode = command.opcode
        var response = links.isEmpty ? nil : personality.responsesWhileLinked[opcode.rawValue]
        if response == nil, isAdvertising { response = personality.responsesWhileAdvertising[opcode.rawValue] }
        if let refusal = latch(opcode) { return refusal }
        if let refusal = refuseScan(command) { return refusal }
        switch response ?? personality.responses[opcode.rawValue] {
        case nil: return execute(command)
        case .silence: return [.unresponsive]
        case .statusIfEnabling(let status):
            return command.parameters.first == 1 ? [complete(opcode, status)] : execute(command)
        case .status(let status):
            return [Self.hasStatusEvent(opcode) ? self.status(opcode, status) : complete(opcode, status)]
        case .late(let time):
            return execute(command).map { if case .send(let packet) = $0 { .sendLater(packet, time) } else { $0 } }
        case .short(let count):
            return execute(command).map { action in
                guard case .send(let packet) = action, packet[1] == 0x0E else { return action }
                return complete(opcode, Array(packet.dropFirst(6).prefix(count)))
            }
        case .unfinished:
            let actions = execute(command)
            attempt?.isEndless = true
            return actions
        }
    }

    /// Refuses a command of the set that is not in use, where that matters.
    private mutating func latch(_ opcode: HCIOpcode) -> [Action]? {
        guard personality.latchesCommandSet else { return nil }
        let isExtended: Bool
        switch opcode {
        case .leSetScanParameters, .leSetScanEnable, .leCreateConnection, .leSetAdvertisingParameters,
            .leSetAdvertisingData, .leSetScanResponseData, .leSetAdvertisingEnable:
            isExtended = false
        case .leSetExtendedScanParameters, .leSetExtendedScanEnable, .leExtendedCreateConnection,
            .leSetExtendedAdvertisingParameters, .leSetExtendedAdvertisingData, .leSetExtendedScanResponseData,
            .leSetExtendedAdvertisingEnable, .leReadMaximumAdvertisingDataLength,
            .leReadNumberOfSupportedAdvertisingSets:
            isExtended = true
        default: return nil
        }
        if let usesExtendedSet, usesExtendedSet != isExtended {
            return [
                Self.hasStatusEvent(opcode)
                    ? status(opcode, .commandDisallowed) : complete(opcode, .commandDisallowed)
            ]
        }
        usesExtendedSet = isExtended
        return nil
    }

    /// Refuses to begin a scan beyond those that it accepts.
    private mutating func refuseScan(_ command: HCICommandPacket) -> [Action]? {
        guard command.opcode == .leSetScanEnable || command.opcode == .leSetExtendedScanEnable,
            command.parameters.first == 1, let limit = personality.acceptedScans
        else { return nil }
        guard scanCount < limit else { return [complete(command.opcode, .commandDisallowed)] }
        scanCount += 1
        return nil
    }

    /// Whether the response to a command is a Command Status.
    private static func hasStatusEvent(_ opcode: HCIOpcode) -> Bool {
        switch opcode {
        case .leCreateConnection, .leExtendedCreateConnection, .disconnect, .leConnectionUpdate, .leSetPHY,
            .leReadRemoteFeatures, .readRemoteVersion, .leEnableEncryption:
            true
        default: false
        }
    }

    private mutating func execute(_ command: HCICommandPacket) -> [Action] {
        let opcode = command.opcode
        if let response = advertiser.respond(to: command, links: links.count) {
            let complete = complete(opcode, [response.status.rawValue] + response.returned)
            return response.isChange ? [complete, .advertisingChanged] : [complete]
        }
        switch opcode {
        case .setEventMask, .leSetEventMask: return [complete(opcode, setMask(command))]
        case .leSetDefaultPHY:
            // No preference, transmit, receive.
            let octets = Array(command.parameters.prefix(3))
            preferredPHYs = octets.count == 3 && octets[0] == 0 ? LEPHYs(rawValue: octets[1] & octets[2]) : nil
            return [complete(opcode, .success)]
        case .leReadLocalFeatures: return [complete(opcode, [0] + features)]
        case .readLocalSupportedCommands: return [complete(opcode, [0] + supportedCommands)]
        case .readAddress: return [complete(opcode, [0] + address.littleEndianBytes)]
        case .leSetScanParameters, .leSetExtendedScanParameters, .leSetScanEnable, .leSetExtendedScanEnable:
            return scanning(command)
        case .leCreateConnection, .leExtendedCreateConnection, .leCreateConnectionCancel:
            return initiating(command)
        case .disconnect, .readRSSI, .leReadPHY, .leConnectionUpdate, .leSetPHY, .leReadRemoteFeatures,
            .readRemoteVersion, .leSetDataLength, .leEnableEncryption:
            return aboutLink(command)
        default:
            if Self.isBeyondSpecification(opcode) { return [complete(opcode, .unknownCommand)] }
            return [complete(opcode, [0] + (sizes(opcode) ?? []))]
        }
    }

    /// Whether no version of the specification has a command of this number in the group of LE commands.
    private static func isBeyondSpecification(_ opcode: HCIOpcode) -> Bool {
        opcode.group == 8 && opcode.command >= 0xC0
    }

    /// What queries about the controller itself return after the status; `nil` for other commands.
    private func sizes(_ opcode: HCIOpcode) -> [UInt8]? {
        let known = personality.capabilities
        var writer = ByteWriter()
        switch opcode.rawValue {
        // Versions and maker: Bluetooth 5.2 or 4.2 of a company that has no number.
        case 0x1001:
            let version: UInt8 = isExtended ? 11 : 8
            writer.u8(known.hciVersion ?? version)
            writer.u16(known.hciRevision ?? 1)
            writer.u8(known.linkVersion ?? version)
            writer.u16(known.company ?? 0xFFFF)
            writer.u16(known.linkSubversion ?? 1)
        // LE data buffers: 8 of 251 bytes.
        case 0x2002:
            writer.u16(known.bufferLength ?? 251)
            writer.u8(known.bufferCount ?? 8)
        // The sizes of the accept list and of the resolving list.
        case 0x200F: writer.u8(known.acceptListSize ?? 8)
        case 0x202A: writer.u8(known.resolvingListSize ?? 8)
        // LE states: all that there are.
        case 0x201C: writer.u64(known.states ?? 0x3FF_FFFF_FFFF)
        // The longest data: 251 bytes in 17,040 µs, both ways.
        case 0x202F:
            for _ in 1...2 {
                writer.u16(known.maximumDataLength ?? 251)
                writer.u16(17_040)
            }
        default: return nil
        }
        return writer.bytes
    }

    private var features: [UInt8] {
        var writer = ByteWriter()
        writer.u64(supportedFeatures.rawValue)
        return writer.bytes
    }

    private var supportedFeatures: LEFeatures {
        if let features = personality.capabilities.features { return LEFeatures(rawValue: features) }
        let legacy: LEFeatures = [.encryption, .connectionParametersRequest, .dataLengthExtension]
        return isExtended ? legacy.union([.le2M, .coded, .extendedAdvertising]) : legacy
    }

    private var supportedCommands: [UInt8] {
        if let commands = personality.capabilities.commands { return commands }
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
            scansCoded = reportsExtended && (command.parameters.dropFirst(2).first ?? 0) & LEPHYs.leCoded.rawValue != 0
            // Active scanning: the first byte, or the first one after own address type, policy and PHYs.
            isActive = command.parameters.dropFirst(reportsExtended ? 3 : 0).first == 1
            scansWithRandomAddress = command.parameters.dropFirst(reportsExtended ? 0 : 5).first == 1
            return [complete(opcode, .success)]
        default:
            // It needs the address that the parameters demand.
            if command.parameters.first == 1, scansWithRandomAddress, !advertiser.hasRandomAddress {
                return [complete(opcode, .invalidParameters)]
            }
            isScanning = command.parameters.first == 1
            let filters = command.parameters.dropFirst().first == 1
            reported = filters && personality.duplicateCache != nil ? [] : nil
            if !isScanning { recover(by: .rescan) }
            return [complete(opcode, .success), .listeningChanged]
        }
    }

    private mutating func initiating(_ command: HCICommandPacket) -> [Action] {
        let opcode = command.opcode
        if opcode == .leCreateConnectionCancel {
            guard let attempt else { return [complete(opcode, .commandDisallowed)] }
            return [complete(opcode, .success)] + attemptEnded(.unknownConnection, attempt)
        }
        if isUnknown(opcode) { return [status(opcode, .unknownCommand)] }
        if attempt != nil { return [status(opcode, personality.secondAttemptStatus)] }
        if isScanning { return [status(opcode, .commandDisallowed)] }
        if advertiser.isConnectable, personality.attemptStatusWhileAdvertising == nil {
            return [status(opcode, .commandDisallowed)]
        }
        let isBeyondLimit = links.count >= linkLimit
        if isBeyondLimit, case .refuses(let refusal) = personality.beyondLimit { return [status(opcode, refusal)] }
        guard var attempt = Attempt(command) else { return [status(opcode, .invalidParameters)] }
        if links.values.contains(where: { $0.peer == attempt.peer }) {
            return [status(opcode, .connectionAlreadyExists)]
        }
        attempt.isEndless = isBeyondLimit && personality.beyondLimit == .neverCompletes
        if advertiser.isConnectable, let end = personality.attemptStatusWhileAdvertising {
            return [status(opcode, .success)] + attemptEnded(end, attempt)
        }
        self.attempt = attempt
        return [status(opcode, .success), .listeningChanged]
    }

    /// Handles an advertisement of the peer of the pending attempt: the attempt completes with a link, optionally with
    /// this handle, or with the status.
    package mutating func respond(
        _ status: HCIStatus, rssi: Int8, as number: ConnectionHandle? = nil
    ) -> (handle: ConnectionHandle?, actions: [Action]) {
        guard let attempt, !attempt.isEndless else { return (nil, []) }
        if links.count >= linkLimit, case .fails(let status) = personality.beyondLimit {
            return (nil, attemptEnded(status, attempt))
        }
        guard status.isSuccess else { return (nil, attemptEnded(status, attempt)) }
        if attempt.usesCoded, personality.hasDefectiveCodedPHY {
            return (nil, attemptEnded(.connectionFailedToBeEstablished, attempt))
        }
        let handle = number ?? nextHandle
        links[handle] = Link(peer: attempt.peer, parameters: attempt.parameters, rssi: rssi)
        return (handle, attemptEnded(.success, attempt, handle))
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
        let (limit, count, hidden, scans) = (linkLimit, reportCount, hiddenLinks, scanCount)
        self = VirtualController(address: address, personality: personality)
        linkLimit = limit
        reportCount = count
        scanCount = scans
        hiddenLinks = hidden
    }

    /// The kernel has reset the controller and sets it up.
    ///
    /// - Returns: What every program sees of it.
    @discardableResult
    package mutating func kernelSetsUp() -> [Action] {
        usesExtendedSet = nil
        scanCount = 0
        events = .kernel
        var mask = LEEventMask(
            features: supportedFeatures, commands: HCISupportedCommands(octets: supportedCommands))
        if !personality.kernelScansExtended { mask.remove(.extendedAdvertisingReport) }
        leEvents = mask
        recover(by: .power)
        return [
            .send(Self.commandComplete(.reset, [0])), .send(HCICommandPacket(HCISetEventMask(events)).bytes),
            .send(Self.commandComplete(.setEventMask, [0])), .send(HCICommandPacket(LESetEventMask(mask)).bytes),
            .send(Self.commandComplete(.leSetEventMask, [0])),
        ]
    }

    /// The controller is back, or on again, after an action that may make it receive again.
    package mutating func returned(after action: VirtualPersonality.Recovery) { recover(by: action) }

    private var nextHandle: ConnectionHandle {
        var handle: ConnectionHandle = 0x0040
        while links[handle] != nil { handle &+= 1 }
        return handle
    }

    private mutating func attemptEnded(_ status: HCIStatus, _ attempt: Attempt, _ handle: ConnectionHandle = 0)
        -> [Action]
    {
        self.attempt = nil
        return [
            .send(
                Self.connectionComplete(
                    status, handle, attempt.peer, attempt.parameters, isEnhanced: attempt.isExtended)),
            .listeningChanged,
        ]
    }
}

// MARK: - What is sent

extension VirtualController {
    private mutating func setMask(_ command: HCICommandPacket) -> HCIStatus {
        var reader = ByteReader(command.parameters.span)
        guard let bits = reader.u64() else { return .invalidParameters }
        if command.opcode == .setEventMask {
            events = HCIEventMask(rawValue: bits)
        } else {
            leEvents = LEEventMask(rawValue: bits)
            recover(by: .eventMask)
        }
        return .success
    }

    private mutating func recover(by action: VirtualPersonality.Recovery) {
        guard let deafness = personality.deafness, deafness.recovery <= action else { return }
        reportCount = 0
    }

    /// Decides about the report of an advertisement.
    ///
    /// - Returns: Whether it is reported.
    package mutating func mayReport(_ peer: PeerID, _ advertisement: VirtualAdvertisement) -> Bool {
        // Controllers without the extended commands do not receive extended advertisements.
        if advertisement.isLong, !reportsExtended { return false }
        if scansCoded, personality.hasDefectiveCodedPHY { return false }
        if personality.isDeafWhileAdvertising, isAdvertising { return false }
        if let deafness = personality.deafness {
            guard reportCount < deafness.reports else { return false }
            reportCount += 1
        }
        guard var known = reported, let size = personality.duplicateCache else { return true }
        if known.contains(peer) { return false }
        known.append(peer)
        reported = known.suffix(size)
        return true
    }

    /// Makes of a packet what the program receives; `nil` if it receives nothing.
    package mutating func shape(_ packet: [UInt8]) -> [UInt8]? {
        guard packet.count > 3, packet[0] == HCIPacketType.event.rawValue else { return packet }
        var packet = packet
        switch packet[1] {
        case 0x0E:
            packet[3] = personality.credits
            return packet
        case 0x0F where packet.count > 4:
            packet[4] = personality.credits
            return packet
        default: break
        }
        guard isUnmasked(code: packet[1], subevent: packet[3]) else { return nil }
        guard let period = personality.losesEvery else { return packet }
        eventCount += 1
        return eventCount.isMultiple(of: period) ? nil : packet
    }

    /// Returns the delay of an event.
    package mutating func delay(of packet: [UInt8]) -> Duration? {
        guard packet.count > 4, packet[0] == HCIPacketType.event.rawValue, packet[1] != 0x0E, packet[1] != 0x0F else {
            return nil
        }
        if let lead = personality.dataLead, Self.handle(ofLinkIn: packet) != nil { return lead }
        guard let period = personality.reordersEvery else { return nil }
        orderedCount += 1
        return orderedCount.isMultiple(of: period) ? Self.reorderedDelay : nil
    }

    private static let reorderedDelay: Duration = .milliseconds(12)

    /// The handle of the link that an event reports as up; `nil` for any other event.
    package static func handle(ofLinkIn packet: [UInt8]) -> ConnectionHandle? {
        guard packet.count > 6, packet[1] == 0x3E, packet[3] == 0x01 || packet[3] == 0x0A, packet[4] == 0 else {
            return nil
        }
        return ConnectionHandle(packet[5]) | ConnectionHandle(packet[6]) << 8
    }

    /// Returns a Boolean value that indicates whether the beginning of the next link is lost for everybody.
    package mutating func hidesLink() -> Bool {
        guard hiddenLinks > 0 else { return false }
        hiddenLinks -= 1
        return true
    }

    private func isUnmasked(code: UInt8, subevent: UInt8) -> Bool {
        guard personality.honorsEventMasks, (1...64).contains(code) else { return true }
        guard events.contains(HCIEventMask(rawValue: 1 << UInt64(code == 0x3E ? 61 : code - 1))) else { return false }
        guard code == 0x3E, (1...64).contains(subevent) else { return true }
        return leEvents.contains(LEEventMask(rawValue: 1 << UInt64(subevent - 1)))
    }
}

extension LEEventMask {
    /// What a controller sends after a reset: the events of Bluetooth 4.0.
    fileprivate static let initial = LEEventMask(rawValue: 0x1F)
}

// MARK: - Links

extension VirtualController {
    /// A link has ended, with or without an event.
    package mutating func linkEnded(_ handle: ConnectionHandle) {
        links[handle] = nil
    }

    package mutating func setRSSI(_ rssi: Int8, of handle: ConnectionHandle) {
        links[handle]?.rssi = rssi
    }

    package mutating func setParameters(_ parameters: ConnectionParameters, of handle: ConnectionHandle) {
        links[handle]?.parameters = parameters
    }

    package mutating func setPHY(_ transmit: PHY, _ receive: PHY, of handle: ConnectionHandle) {
        links[handle]?.transmit = transmit
        links[handle]?.receive = receive
    }

    /// Refuses a command about a link from now on; `nil` accepts it again.
    mutating func refuse(_ opcode: HCIOpcode, with status: HCIStatus?) {
        refusals[opcode] = status
    }

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

extension VirtualController.Attempt {
    fileprivate init?(_ command: HCICommandPacket) {
        isExtended = command.opcode == .leExtendedCreateConnection
        usesCoded = isExtended && (command.parameters.dropFirst(9).first ?? 0) & LEPHYs.leCoded.rawValue != 0
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
