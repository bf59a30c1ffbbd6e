// The commands of a controller with one advertiser, and, after them, those for advertising sets. A controller that has
// received one kind refuses the other until it is reset.

/// Sets the address that the controller advertises, scans and initiates with under the own address type "random".
/// Not allowed while it does one of these.
///
///     0x2005 | address 6      reply: status
///
/// Spec: HCI_LE_Set_Random_Address, Core Vol 4 Part E, 7.8.4.
package struct LESetRandomAddress: HCICommand {
    /// HCI_LE_Set_Random_Address.
    package static let opcode = HCIOpcode.leSetRandomAddress
    /// The address.
    package let address: BluetoothAddress

    /// Creates the command.
    package init(address: BluetoothAddress) {
        self.address = address
    }

    /// The address, least significant byte first.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 6)
        writer.u48(address.rawValue)
        return writer.bytes
    }
}

/// Sets the parameters of a controller that has one advertiser. Not allowed while it is enabled.
///
///     0x2006 | interval 2, 2 | type 1 | own type 1 | peer type 1 | peer 6 | channels 1 | filter policy 1
///
/// Spec: HCI_LE_Set_Advertising_Parameters, Core Vol 4 Part E, 7.8.5.
package struct LESetAdvertisingParameters: HCICommand {
    /// The kind of an undirected advertisement.
    package enum Kind: UInt8, Hashable, Sendable {
        /// ADV_IND: connectable and scannable.
        case connectable = 0x00
        /// ADV_SCAN_IND: scannable.
        case scannable = 0x02
        /// ADV_NONCONN_IND: neither.
        case nonconnectable = 0x03
    }

    /// HCI_LE_Set_Advertising_Parameters.
    package static let opcode = HCIOpcode.leSetAdvertisingParameters
    /// The kind of the advertisement.
    package let kind: Kind
    /// The bounds of the interval, in units of 0.625 ms.
    package let interval: ClosedRange<UInt16>
    /// The type of the address to advertise.
    package let ownAddressType: AddressType

    /// Creates parameters of an undirected advertisement on all three channels, for every scanner and initiator.
    package init(kind: Kind, interval: ClosedRange<UInt16>, ownAddressType: AddressType = .public) {
        self.kind = kind
        self.interval = interval
        self.ownAddressType = ownAddressType
    }

    /// The 15 bytes of parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 15)
        writer.u16(interval.lowerBound)
        writer.u16(interval.upperBound)
        writer.u8(kind.rawValue)
        writer.u8(ownAddressType.rawValue)
        writer.u8(0)
        writer.u48(0)
        writer.u8(AdvertisingChannels.all)
        writer.u8(0)
        return writer.bytes
    }
}

/// A command with data of the advertiser of a controller that has one.
///
///     length 1 | data 31, padded with zeros
package protocol LEAdvertiserDataCommand: HCICommand {
    /// The AD structures, at most 31 bytes.
    var data: [UInt8] { get }
}

extension LEAdvertiserDataCommand {
    /// The length, then 31 bytes.
    package var parameters: [UInt8] {
        [UInt8(truncatingIfNeeded: data.count)] + data + [UInt8](repeating: 0, count: max(0, 31 - data.count))
    }
}

/// Sets the advertising data of a controller that has one advertiser.
///
///     0x2008 | length 1 | data 31, padded with zeros      reply: status
///
/// Spec: HCI_LE_Set_Advertising_Data, Core Vol 4 Part E, 7.8.7.
package struct LESetAdvertisingData: LEAdvertiserDataCommand {
    /// HCI_LE_Set_Advertising_Data.
    package static let opcode = HCIOpcode.leSetAdvertisingData
    /// The AD structures, at most 31 bytes.
    package let data: [UInt8]

    /// Creates the command, or returns `nil` if there are more than 31 bytes.
    package init?(data: [UInt8]) {
        guard data.count <= 31 else { return nil }
        self.data = data
    }
}

/// Sets the scan response data of a controller that has one advertiser.
///
///     0x2009 | length 1 | data 31, padded with zeros      reply: status
///
/// Spec: HCI_LE_Set_Scan_Response_Data, Core Vol 4 Part E, 7.8.8.
package struct LESetScanResponseData: LEAdvertiserDataCommand {
    /// HCI_LE_Set_Scan_Response_Data.
    package static let opcode = HCIOpcode.leSetScanResponseData
    /// The AD structures, at most 31 bytes.
    package let data: [UInt8]

    /// Creates the command, or returns `nil` if there are more than 31 bytes.
    package init?(data: [UInt8]) {
        guard data.count <= 31 else { return nil }
        self.data = data
    }
}

/// Enables or disables the advertiser of a controller that has one.
///
///     0x200A | enable 1      reply: status
///
/// Spec: HCI_LE_Set_Advertising_Enable, Core Vol 4 Part E, 7.8.9.
package struct LESetAdvertisingEnable: HCICommand {
    /// HCI_LE_Set_Advertising_Enable.
    package static let opcode = HCIOpcode.leSetAdvertisingEnable
    /// A Boolean value that indicates whether to advertise.
    package let isEnabled: Bool

    /// Creates a command that enables or disables the advertiser.
    package init(isEnabled: Bool) {
        self.isEnabled = isEnabled
    }

    /// One flag.
    package var parameters: [UInt8] { [isEnabled ? 1 : 0] }
}

/// Sets the random address of one advertising set. Not allowed while a connectable set is enabled.
///
///     0x2035 | advertising handle 1 | address 6      reply: status
///
/// Spec: HCI_LE_Set_Advertising_Set_Random_Address, Core Vol 4 Part E, 7.8.52.
package struct LESetAdvertisingSetRandomAddress: HCICommand {
    /// HCI_LE_Set_Advertising_Set_Random_Address.
    package static let opcode = HCIOpcode.leSetAdvertisingSetRandomAddress
    /// The advertising handle, at most 0xEF.
    package let handle: UInt8
    /// The address.
    package let address: BluetoothAddress

    /// Creates the command.
    package init(handle: UInt8, address: BluetoothAddress) {
        self.handle = handle
        self.address = address
    }

    /// The handle, then the address, least significant byte first.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 7)
        writer.u8(handle)
        writer.u48(address.rawValue)
        return writer.bytes
    }
}

/// Sets the parameters of one advertising set, and creates the set if it does not exist. Not allowed while the set is
/// enabled.
///
///     0x2036 | advertising handle 1 | properties 2 | interval 3, 3 | channels 1 | own type 1 | peer type 1 | peer 6
///            | filter policy 1 | power 1 | primary PHY 1 | skip 1 | secondary PHY 1 | SID 1 | reports scan requests 1
///
/// Spec: HCI_LE_Set_Extended_Advertising_Parameters [v1], Core Vol 4 Part E, 7.8.53.
package struct LESetExtendedAdvertisingParameters: HCIQuery {
    /// The type of the advertisement, one bit each.
    package struct Properties: OptionSet, Hashable, Sendable {
        /// The raw value.
        package let rawValue: UInt16

        /// Creates properties from raw bits.
        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// Centrals may connect.
        package static let connectable = Properties(rawValue: 1 << 0)
        /// There is a scan response.
        package static let scannable = Properties(rawValue: 1 << 1)
        /// Legacy PDUs, which every device receives.
        package static let legacy = Properties(rawValue: 1 << 4)
    }

    /// HCI_LE_Set_Extended_Advertising_Parameters.
    package static let opcode = HCIOpcode.leSetExtendedAdvertisingParameters
    /// The advertising handle, at most 0xEF.
    package let handle: UInt8
    /// The type of the advertisement.
    package let properties: Properties
    /// The bounds of the interval, in units of 0.625 ms, 24 bits each.
    package let interval: ClosedRange<UInt32>
    /// The type of the address to advertise.
    package let ownAddressType: AddressType
    /// The greatest transmit power in dBm; `nil` leaves it to the controller.
    package let txPower: Int8?
    /// The PHY of the packets on the primary channels: 1M or Coded.
    package let primaryPHY: PHY
    /// The PHY of the packets on the secondary channels.
    package let secondaryPHY: PHY
    /// The advertising set identifier, 0 to 15, which scanners see.
    package let sid: UInt8

    /// Creates parameters of an undirected advertisement on all three channels, for every scanner and initiator.
    package init(
        handle: UInt8, properties: Properties, interval: ClosedRange<UInt32>, ownAddressType: AddressType = .public,
        txPower: Int8? = nil, primaryPHY: PHY = .le1M, secondaryPHY: PHY = .le1M, sid: UInt8 = 0
    ) {
        self.handle = handle
        self.properties = properties
        self.interval = interval
        self.ownAddressType = ownAddressType
        self.txPower = txPower
        self.primaryPHY = primaryPHY
        self.secondaryPHY = secondaryPHY
        self.sid = sid & 0x0F
    }

    /// The 25 bytes of parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 25)
        writer.u8(handle)
        writer.u16(properties.rawValue)
        writer.u24(interval.lowerBound)
        writer.u24(interval.upperBound)
        writer.u8(AdvertisingChannels.all)
        writer.u8(ownAddressType.rawValue)
        writer.u8(0)
        writer.u48(0)
        writer.u8(0)
        writer.i8(txPower ?? 0x7F)
        writer.u8(primaryPHY.rawValue)
        writer.u8(0)
        writer.u8(secondaryPHY.rawValue)
        writer.u8(sid)
        writer.u8(0)
        return writer.bytes
    }

    /// Decodes the return parameters: the transmit power in dBm that the controller selected.
    package static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> Int8 {
        var reader = ByteReader(returned)
        guard let power = reader.i8() else {
            throw MalformedPacket("HCI_LE_Set_Extended_Advertising_Parameters", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_LE_Set_Extended_Advertising_Parameters")
        return power
    }
}

/// One part of the data of an advertising set. A set that is enabled accepts only data in one part.
///
/// Spec: Core Vol 4 Part E, 7.8.54 and 7.8.55.
package struct AdvertisingDataFragment: Hashable, Sendable {
    /// The place of a part in the data.
    package enum Place: UInt8, Hashable, Sendable {
        case intermediate = 0
        case first = 1
        case last = 2
        /// All data.
        case only = 3
    }

    /// The place of the part.
    package let place: Place
    /// The bytes, at most 251.
    package let data: [UInt8]

    private init(_ place: Place, _ data: [UInt8]) {
        self.place = place
        self.data = data
    }

    /// Returns the parts of data, in the order in which they are sent; one without bytes if there are no data.
    package static func fragments(of data: [UInt8]) -> [AdvertisingDataFragment] {
        guard data.count > limit else { return [AdvertisingDataFragment(.only, data)] }
        var fragments: [AdvertisingDataFragment] = []
        var rest = data[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(limit))
            rest = rest.dropFirst(limit)
            fragments.append(
                AdvertisingDataFragment(fragments.isEmpty ? .first : rest.isEmpty ? .last : .intermediate, part))
        }
        return fragments
    }

    /// The maximum number of bytes in a part.
    package static let limit = 251
}

/// A command with a part of the data of one advertising set.
///
///     advertising handle 1 | operation 1 | fragment preference 1 | length 1 | data
package protocol LEAdvertisingSetDataCommand: HCICommand {
    /// The advertising handle, at most 0xEF.
    var handle: UInt8 { get }
    /// The part.
    var fragment: AdvertisingDataFragment { get }
}

extension LEAdvertisingSetDataCommand {
    /// The handle and the part, with the preference not to fragment on air.
    package var parameters: [UInt8] {
        [handle, fragment.place.rawValue, 1, UInt8(truncatingIfNeeded: fragment.data.count)] + fragment.data
    }
}

/// Sets a part of the advertising data of one advertising set.
///
///     0x2037 | advertising handle 1 | operation 1 | fragment preference 1 | length 1 | data      reply: status
///
/// Spec: HCI_LE_Set_Extended_Advertising_Data, Core Vol 4 Part E, 7.8.54.
package struct LESetExtendedAdvertisingData: LEAdvertisingSetDataCommand {
    /// HCI_LE_Set_Extended_Advertising_Data.
    package static let opcode = HCIOpcode.leSetExtendedAdvertisingData
    /// The advertising handle, at most 0xEF.
    package let handle: UInt8
    /// The part.
    package let fragment: AdvertisingDataFragment

    /// Creates the command.
    package init(handle: UInt8, fragment: AdvertisingDataFragment) {
        self.handle = handle
        self.fragment = fragment
    }
}

/// Sets a part of the scan response data of one advertising set.
///
///     0x2038 | advertising handle 1 | operation 1 | fragment preference 1 | length 1 | data      reply: status
///
/// Spec: HCI_LE_Set_Extended_Scan_Response_Data, Core Vol 4 Part E, 7.8.55.
package struct LESetExtendedScanResponseData: LEAdvertisingSetDataCommand {
    /// HCI_LE_Set_Extended_Scan_Response_Data.
    package static let opcode = HCIOpcode.leSetExtendedScanResponseData
    /// The advertising handle, at most 0xEF.
    package let handle: UInt8
    /// The part.
    package let fragment: AdvertisingDataFragment

    /// Creates the command.
    package init(handle: UInt8, fragment: AdvertisingDataFragment) {
        self.handle = handle
        self.fragment = fragment
    }
}

/// Enables or disables advertising sets.
///
///     0x2039 | enable 1 | sets 1 | for each set: advertising handle 1 | duration 2 | events 1      reply: status
///
/// Spec: HCI_LE_Set_Extended_Advertising_Enable, Core Vol 4 Part E, 7.8.56.
package struct LESetExtendedAdvertisingEnable: HCICommand {
    /// HCI_LE_Set_Extended_Advertising_Enable.
    package static let opcode = HCIOpcode.leSetExtendedAdvertisingEnable
    /// A Boolean value that indicates whether to advertise.
    package let isEnabled: Bool
    /// The advertising handles, at most 63. None disables all sets, those of other programs too.
    package let handles: [UInt8]

    /// Creates a command that enables or disables sets. Enabled ones advertise until they are disabled or a central
    /// connects.
    package init(isEnabled: Bool, handles: [UInt8]) {
        self.isEnabled = isEnabled
        self.handles = Array(handles.prefix(63))
    }

    /// The flag, the number of sets, and no duration and no number of events for each.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 2 + 4 * handles.count)
        writer.u8(isEnabled ? 1 : 0)
        writer.u8(UInt8(truncatingIfNeeded: handles.count))
        for handle in handles {
            writer.u8(handle)
            writer.u16(0)
            writer.u8(0)
        }
        return writer.bytes
    }
}

/// Reads how much data an advertising set can have.
///
///     0x203A | -                     reply: bytes 2
///
/// Spec: HCI_LE_Read_Maximum_Advertising_Data_Length, Core Vol 4 Part E, 7.8.57.
package struct LEReadMaximumAdvertisingDataLength: HCIQuery {
    /// HCI_LE_Read_Maximum_Advertising_Data_Length.
    package static let opcode = HCIOpcode.leReadMaximumAdvertisingDataLength
    /// Empty.
    package var parameters: [UInt8] { [] }

    /// Creates the command.
    package init() {}

    /// Decodes the return parameters: the number of bytes.
    package static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> UInt16 {
        var reader = ByteReader(returned)
        guard let length = reader.u16() else {
            throw MalformedPacket("HCI_LE_Read_Maximum_Advertising_Data_Length", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_LE_Read_Maximum_Advertising_Data_Length")
        return length
    }
}

/// Reads how many advertising sets the controller can have at present.
///
///     0x203B | -                     reply: sets 1
///
/// Spec: HCI_LE_Read_Number_of_Supported_Advertising_Sets, Core Vol 4 Part E, 7.8.58.
package struct LEReadNumberOfSupportedAdvertisingSets: HCIQuery {
    /// HCI_LE_Read_Number_of_Supported_Advertising_Sets.
    package static let opcode = HCIOpcode.leReadNumberOfSupportedAdvertisingSets
    /// Empty.
    package var parameters: [UInt8] { [] }

    /// Creates the command.
    package init() {}

    /// Decodes the return parameters: the number of sets.
    package static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> UInt8 {
        var reader = ByteReader(returned)
        guard let count = reader.u8() else {
            throw MalformedPacket("HCI_LE_Read_Number_of_Supported_Advertising_Sets", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_LE_Read_Number_of_Supported_Advertising_Sets")
        return count
    }
}

/// Removes one advertising set. Not allowed while the set is enabled.
///
///     0x203C | advertising handle 1      reply: status
///
/// Spec: HCI_LE_Remove_Advertising_Set, Core Vol 4 Part E, 7.8.59.
package struct LERemoveAdvertisingSet: HCICommand {
    /// HCI_LE_Remove_Advertising_Set.
    package static let opcode = HCIOpcode.leRemoveAdvertisingSet
    /// The advertising handle, at most 0xEF.
    package let handle: UInt8

    /// Creates the command.
    package init(handle: UInt8) {
        self.handle = handle
    }

    /// The handle.
    package var parameters: [UInt8] { [handle] }
}

/// Removes all advertising sets, those of other programs too. Not allowed while one is enabled. BareBLE never sends it.
///
///     0x203D | -                     reply: status
///
/// Spec: HCI_LE_Clear_Advertising_Sets, Core Vol 4 Part E, 7.8.60.
package struct LEClearAdvertisingSets: HCICommand {
    /// HCI_LE_Clear_Advertising_Sets.
    package static let opcode = HCIOpcode.leClearAdvertisingSets
    /// Empty.
    package var parameters: [UInt8] { [] }

    /// Creates the command.
    package init() {}
}

extension HCISupportedCommands {
    /// LE Set Advertising Parameters, Data and Enable.
    package var hasLegacyAdvertising: Bool {
        contains(octet: 25, bit: 5) && contains(octet: 25, bit: 7) && contains(octet: 26, bit: 1)
    }
    /// LE Set Extended Advertising Parameters, Data and Enable, and LE Remove Advertising Set.
    package var hasExtendedAdvertising: Bool {
        contains(octet: 36, bit: 2) && contains(octet: 36, bit: 3) && contains(octet: 36, bit: 5)
            && contains(octet: 37, bit: 0)
    }
}

/// Bits of Advertising_Channel_Map.
private enum AdvertisingChannels {
    /// Channels 37, 38 and 39.
    static let all: UInt8 = 0x07
}
