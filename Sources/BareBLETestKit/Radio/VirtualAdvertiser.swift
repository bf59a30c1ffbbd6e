// The advertising of a Bluetooth controller as a state machine: commands in, responses out. It refuses whatever the
// specification forbids, so that a host which sends commands in the wrong order is noticed.
//
// Responsibilities: keep the advertising sets, and which of them are on air.
//
// Invariants:
// - A controller that has received a legacy command refuses the extended ones until it is reset, and the reverse.
// - A controller without sets has one advertiser, which here is the set with the handle 0.
// - While a set is on air, its parameters do not change, and it is not removed.
// - A set stays on air until it is disabled or a central connects. Limits of its time and events are not simulated.

package import BLECore

/// The advertising side of a virtual controller.
package struct VirtualAdvertiser: Sendable {
    /// One advertising set.
    package struct AdvertisingSet: Hashable, Sendable {
        /// The advertising handle.
        package let handle: UInt8
        /// A Boolean value that indicates whether centrals may connect.
        package fileprivate(set) var isConnectable = true
        /// A Boolean value that indicates whether there is a scan response.
        package fileprivate(set) var isScannable = true
        /// A Boolean value that indicates whether it uses extended PDUs, which have room for more data.
        package fileprivate(set) var isExtended = false
        /// The interval between two advertising events.
        package fileprivate(set) var interval = Duration.milliseconds(1280)
        /// A Boolean value that indicates whether it advertises a random address.
        package fileprivate(set) var usesRandomAddress = false
        package fileprivate(set) var randomAddress: BluetoothAddress?
        package fileprivate(set) var data: [UInt8] = []
        package fileprivate(set) var scanResponse: [UInt8] = []
        package fileprivate(set) var isOnAir = false

        /// How much data it can have with extended PDUs.
        fileprivate var maximumDataLength = VirtualAdvertiser.maximumDataLength

        /// How much data it can have.
        fileprivate var capacity: Int { isExtended ? maximumDataLength : 31 }
        fileprivate var hasData: Bool { !(isExtended && isScannable) }
        fileprivate var hasScanResponse: Bool { isScannable }
    }

    /// The result of a command.
    struct Response {
        var status = HCIStatus.success
        /// The return parameters after the status.
        var returned: [UInt8] = []
        /// Whether sets went on air or off.
        var isChange = false

        static func failure(_ status: HCIStatus) -> Response { Response(status: status) }
    }

    private enum Commands {
        case none, legacy, extended
    }

    /// The usual number of sets of a controller that has them.
    package static let setLimit = 4
    /// The usual number of bytes of data in a set.
    package static let maximumDataLength = 251

    private let hasSets: Bool
    private let setLimit: Int
    private let maximumDataLength: Int
    private var received = Commands.none
    private var sets: [UInt8: AdvertisingSet] = [:]
    /// What the host has set for everything that uses a random address.
    private var randomAddress: BluetoothAddress?
    /// True if the controller was given a random address.
    var hasRandomAddress: Bool { randomAddress != nil }
    /// The number of links that may be up.
    package private(set) var linkLimit: Int

    init(
        hasSets: Bool, linkLimit: Int, setLimit: Int = Self.setLimit, maximumDataLength: Int = Self.maximumDataLength
    ) {
        self.hasSets = hasSets
        self.linkLimit = linkLimit
        self.setLimit = setLimit
        self.maximumDataLength = maximumDataLength
    }

    mutating func limitLinks(to count: Int) {
        linkLimit = count
    }

    /// The sets on air, in the order of their handles.
    package var setsOnAir: [AdvertisingSet] { sets.values.filter(\.isOnAir).sorted { $0.handle < $1.handle } }

    /// A Boolean value that indicates whether a connectable set is on air.
    package var isConnectable: Bool { sets.values.contains { $0.isOnAir && $0.isConnectable } }

    /// Takes a set off air, by which a central has connected.
    ///
    /// - Returns: Whether the controller reports that by an event of its own.
    mutating func centralConnected(by handle: UInt8) -> Bool {
        sets[handle]?.isOnAir = false
        return received == .extended
    }

    /// The kernel takes all sets off air before it initiates.
    ///
    /// - Returns: The command that it uses for that; `nil` if nothing was on air.
    mutating func disableAll() -> HCIOpcode? {
        guard sets.values.contains(where: \.isOnAir) else { return nil }
        for handle in sets.keys { sets[handle]?.isOnAir = false }
        return received == .extended ? .leSetExtendedAdvertisingEnable : .leSetAdvertisingEnable
    }

    // MARK: Commands

    /// Processes a command; `nil` if it is about something else.
    mutating func respond(to command: HCICommandPacket, links: Int) -> Response? {
        guard let kind = Self.kind(of: command.opcode) else { return nil }
        if kind == .extended, !hasSets { return .failure(.unknownCommand) }
        if kind != .none {
            guard received == .none || received == kind else { return .failure(.commandDisallowed) }
            received = kind
        }
        var reader = ByteReader(command.parameters.span)
        switch command.opcode {
        case .leSetRandomAddress: return setRandomAddress(&reader)
        case .leSetAdvertisingParameters: return setParameters(&reader)
        case .leSetAdvertisingData: return setData(&reader, isResponse: false)
        case .leSetScanResponseData: return setData(&reader, isResponse: true)
        case .leSetAdvertisingEnable: return enable(&reader, links)
        case .leSetAdvertisingSetRandomAddress: return setAddressOfSet(&reader)
        case .leSetExtendedAdvertisingParameters: return setExtendedParameters(&reader)
        case .leSetExtendedAdvertisingData: return setFragment(&reader, isResponse: false)
        case .leSetExtendedScanResponseData: return setFragment(&reader, isResponse: true)
        case .leSetExtendedAdvertisingEnable: return enableSets(&reader, links)
        case .leReadMaximumAdvertisingDataLength:
            return Response(returned: UInt16(clamping: maximumDataLength).littleEndianBytes)
        case .leReadNumberOfSupportedAdvertisingSets: return Response(returned: [UInt8(clamping: setLimit)])
        case .leRemoveAdvertisingSet: return remove(&reader)
        default: return clear()
        }
    }

    /// The commands that one belongs to; `nil` if it is not about advertising.
    private static func kind(of opcode: HCIOpcode) -> Commands? {
        switch opcode {
        case .leSetRandomAddress: Commands.none
        case .leSetAdvertisingParameters, .leSetAdvertisingData, .leSetScanResponseData, .leSetAdvertisingEnable:
            .legacy
        case .leSetAdvertisingSetRandomAddress, .leSetExtendedAdvertisingParameters, .leSetExtendedAdvertisingData,
            .leSetExtendedScanResponseData, .leSetExtendedAdvertisingEnable, .leReadMaximumAdvertisingDataLength,
            .leReadNumberOfSupportedAdvertisingSets, .leRemoveAdvertisingSet, .leClearAdvertisingSets:
            .extended
        default: nil
        }
    }

    private mutating func setRandomAddress(_ reader: inout ByteReader) -> Response {
        guard let address = reader.address() else { return .failure(.invalidParameters) }
        if received == .legacy, sets[0]?.isOnAir == true { return .failure(.commandDisallowed) }
        randomAddress = address
        return Response()
    }

    /// The time of the shorter bound of an interval, in units of 0.625 ms.
    private static func interval(_ shortest: UInt32, _ longest: UInt32) -> Duration? {
        shortest >= 0x20 && shortest <= longest ? .microseconds(Int64(shortest) * 625) : nil
    }

    private static func canEnable(_ set: AdvertisingSet, _ address: BluetoothAddress?, _ links: Int, limit: Int)
        -> HCIStatus
    {
        if set.usesRandomAddress, address == nil { return .invalidParameters }
        return set.isConnectable && links >= limit ? .connectionLimitExceeded : .success
    }

    private mutating func clear() -> Response {
        if sets.values.contains(where: \.isOnAir) { return .failure(.commandDisallowed) }
        sets = [:]
        return Response()
    }
}

// MARK: - One advertiser

extension VirtualAdvertiser {
    private mutating func setParameters(_ reader: inout ByteReader) -> Response {
        guard let shortest = reader.u16(), let longest = reader.u16(), let type = reader.u8(),
            let ownType = reader.u8(), reader.skip(9), reader.isAtEnd,
            let interval = Self.interval(UInt32(shortest), UInt32(longest)), longest <= 0x4000,
            // Undirected: ADV_IND, ADV_SCAN_IND and ADV_NONCONN_IND.
            type == 0 || type == 2 || type == 3
        else { return .failure(.invalidParameters) }
        var set = sets[0] ?? AdvertisingSet(handle: 0)
        if set.isOnAir { return .failure(.commandDisallowed) }
        set.isConnectable = type == 0
        set.isScannable = type != 3
        set.interval = interval
        set.usesRandomAddress = ownType & 1 != 0
        sets[0] = set
        return Response()
    }

    private mutating func setData(_ reader: inout ByteReader, isResponse: Bool) -> Response {
        guard let length = reader.u8(), length <= 31, let data = reader.array(31), reader.isAtEnd else {
            return .failure(.invalidParameters)
        }
        var set = sets[0] ?? AdvertisingSet(handle: 0)
        let bytes = Array(data.prefix(Int(length)))
        if isResponse { set.scanResponse = bytes } else { set.data = bytes }
        sets[0] = set
        return Response(isChange: set.isOnAir)
    }

    private mutating func enable(_ reader: inout ByteReader, _ links: Int) -> Response {
        guard let flag = reader.u8(), flag <= 1, reader.isAtEnd else { return .failure(.invalidParameters) }
        var set = sets[0] ?? AdvertisingSet(handle: 0)
        if flag == 1 {
            let status = Self.canEnable(set, randomAddress, links, limit: linkLimit)
            guard status.isSuccess else { return .failure(status) }
        }
        set.randomAddress = randomAddress
        set.isOnAir = flag == 1
        sets[0] = set
        return Response(isChange: true)
    }
}

// MARK: - Sets

extension VirtualAdvertiser {
    private mutating func setAddressOfSet(_ reader: inout ByteReader) -> Response {
        guard let handle = reader.u8(), let address = reader.address(), reader.isAtEnd else {
            return .failure(.invalidParameters)
        }
        guard let set = sets[handle] else { return .failure(.unknownAdvertisingIdentifier) }
        if set.isOnAir, set.isConnectable { return .failure(.commandDisallowed) }
        sets[handle]?.randomAddress = address
        return Response(isChange: set.isOnAir)
    }

    private mutating func setExtendedParameters(_ reader: inout ByteReader) -> Response {
        guard let handle = reader.u8(), handle <= 0xEF, let properties = reader.u16(), let shortest = reader.u24(),
            let longest = reader.u24(), reader.skip(1), let ownType = reader.u8(), reader.skip(14), reader.isAtEnd,
            let interval = Self.interval(shortest, longest)
        else { return .failure(.invalidParameters) }
        let isExtended = properties & 0x10 == 0
        let (isConnectable, isScannable) = (properties & 0x01 != 0, properties & 0x02 != 0)
        // Of the legacy PDUs, one that is connectable is scannable. Of the extended ones, none is both.
        guard isExtended ? !(isConnectable && isScannable) : isScannable || !isConnectable else {
            return .failure(.invalidParameters)
        }
        guard sets[handle] != nil || sets.count < setLimit else { return .failure(.memoryCapacityExceeded) }
        var set = sets[handle] ?? AdvertisingSet(handle: handle, maximumDataLength: maximumDataLength)
        if set.isOnAir { return .failure(.commandDisallowed) }
        set.isConnectable = isConnectable
        set.isScannable = isScannable
        set.isExtended = isExtended
        set.interval = interval
        set.usesRandomAddress = ownType & 1 != 0
        guard set.data.count <= set.capacity, set.scanResponse.count <= set.capacity else {
            return .failure(.packetTooLong)
        }
        sets[handle] = set
        // The transmit power that was selected: 0 dBm.
        return Response(returned: [0])
    }

    private mutating func setFragment(_ reader: inout ByteReader, isResponse: Bool) -> Response {
        guard let handle = reader.u8(), let operation = reader.u8(), operation <= 3, reader.skip(1),
            let length = reader.u8(), let part = reader.array(Int(length)), reader.isAtEnd
        else { return .failure(.invalidParameters) }
        guard var set = sets[handle] else { return .failure(.unknownAdvertisingIdentifier) }
        guard isResponse ? set.hasScanResponse : set.hasData else { return .failure(.invalidParameters) }
        // What is on air changes as a whole.
        if set.isOnAir, operation != 3 { return .failure(.commandDisallowed) }
        let isFirst = operation == 1 || operation == 3
        let data = (isFirst ? [] : isResponse ? set.scanResponse : set.data) + part
        guard data.count <= set.capacity else {
            return .failure(set.isExtended ? .memoryCapacityExceeded : .invalidParameters)
        }
        if isResponse { set.scanResponse = data } else { set.data = data }
        sets[handle] = set
        return Response(isChange: set.isOnAir)
    }

    private mutating func enableSets(_ reader: inout ByteReader, _ links: Int) -> Response {
        guard let flag = reader.u8(), flag <= 1, let count = reader.u8() else { return .failure(.invalidParameters) }
        var handles: [UInt8] = []
        for _ in 0..<count {
            guard let handle = reader.u8(), reader.skip(3) else { return .failure(.invalidParameters) }
            handles.append(handle)
        }
        guard reader.isAtEnd else { return .failure(.invalidParameters) }
        if handles.isEmpty {
            guard flag == 0 else { return .failure(.invalidParameters) }
            for handle in sets.keys { sets[handle]?.isOnAir = false }
            return Response(isChange: true)
        }
        for handle in handles {
            guard let set = sets[handle] else { return .failure(.unknownAdvertisingIdentifier) }
            guard flag == 1 else { continue }
            let status = Self.canEnable(set, set.randomAddress, links, limit: linkLimit)
            guard status.isSuccess else { return .failure(status) }
            if set.isExtended, set.isScannable, set.scanResponse.isEmpty { return .failure(.commandDisallowed) }
        }
        for handle in handles { sets[handle]?.isOnAir = flag == 1 }
        return Response(isChange: true)
    }

    private mutating func remove(_ reader: inout ByteReader) -> Response {
        guard let handle = reader.u8(), reader.isAtEnd else { return .failure(.invalidParameters) }
        guard let set = sets[handle] else { return .failure(.unknownAdvertisingIdentifier) }
        if set.isOnAir { return .failure(.commandDisallowed) }
        sets[handle] = nil
        return Response()
    }
}
