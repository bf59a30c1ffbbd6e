// The commands of advertising instances: advertisements that the kernel keeps on air. They have numbers from 1, are
// shared by all programs, and outlive the sockets that have added them.
//
// An instance is added in two steps: its parameters, then its data, which puts it on air. Adding a number again
// replaces the instance. The older Add Advertising (0x003E) has no use here: it cannot set the interval. Set
// Advertising (0x0029) must not be used: with it, the kernel cannot connect.

/// The properties of an advertising instance, and those that a kernel supports, one bit each.
///
/// Spec: Bluetooth Management API, Add Advertising Command and Add Extended Advertising Parameters Command.
package struct ManagementAdvertisingFlags: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Centrals may connect.
    package static let connectable = ManagementAdvertisingFlags(rawValue: 1 << 0)
    /// Extended PDUs on LE 1M. Only kernels with extended advertising on this controller support it.
    package static let secondary1M = ManagementAdvertisingFlags(rawValue: 1 << 7)
    /// Extended PDUs, on LE 2M on the secondary channels.
    package static let secondary2M = ManagementAdvertisingFlags(rawValue: 1 << 8)
    /// Extended PDUs on LE Coded, on the primary channels too.
    package static let secondaryCoded = ManagementAdvertisingFlags(rawValue: 1 << 9)
    /// The interval is given.
    package static let intervals = ManagementAdvertisingFlags(rawValue: 1 << 14)
    /// The transmit power is given.
    package static let txPower = ManagementAdvertisingFlags(rawValue: 1 << 15)
    /// There will be a scan response.
    package static let scanResponse = ManagementAdvertisingFlags(rawValue: 1 << 16)
}

// MARK: - Read Advertising Features

/// Reads what instances the kernel can have on an adapter, and which it has. It requires CAP_NET_ADMIN.
///
///     0x003D | -                     reply: supported flags 4 | largest data 1 | largest scan response 1
///                                           | maximum 1 | count 1 | number 1 each
///
/// Spec: MGMT_OP_READ_ADV_FEATURES; Bluetooth Management API, Read Advertising Features Command.
package struct ManagementReadAdvertisingFeatures: ManagementCommand {
    package static let code = ManagementCommandCode.readAdvertisingFeatures
    package var parameters: [UInt8] { [] }

    package init() {}

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> ManagementAdvertisingFeatures {
        var reader = ByteReader(returned)
        guard let flags = reader.u32(), let data = reader.u8(), let scanResponse = reader.u8(),
            let maximum = reader.u8(), let count = reader.u8(), let numbers = reader.array(Int(count))
        else { throw MalformedPacket("mgmt_rp_read_adv_features", at: returned.count, .tooShort) }
        try reader.finish("mgmt_rp_read_adv_features")
        return ManagementAdvertisingFeatures(
            supportedFlags: ManagementAdvertisingFlags(rawValue: flags), maximumDataLength: data,
            maximumScanResponseLength: scanResponse, maximumInstances: maximum, instances: numbers)
    }
}

/// The advertising instances that a kernel can have on an adapter, and those that it has.
///
/// Spec: `struct mgmt_rp_read_adv_features` of the Linux kernel.
package struct ManagementAdvertisingFeatures: Hashable, Sendable {
    /// The flags that an instance may have.
    package let supportedFlags: ManagementAdvertisingFlags
    /// The most bytes of advertising data.
    package let maximumDataLength: UInt8
    /// The most bytes of scan response data.
    package let maximumScanResponseLength: UInt8
    /// The number of instances that there can be, which is also the greatest number of one.
    package let maximumInstances: UInt8
    /// The numbers of the instances that there are, of all programs.
    package let instances: [UInt8]

    package init(
        supportedFlags: ManagementAdvertisingFlags, maximumDataLength: UInt8, maximumScanResponseLength: UInt8,
        maximumInstances: UInt8, instances: [UInt8]
    ) {
        self.supportedFlags = supportedFlags
        self.maximumDataLength = maximumDataLength
        self.maximumScanResponseLength = maximumScanResponseLength
        self.maximumInstances = maximumInstances
        self.instances = instances
    }

    /// A Boolean value that indicates whether each instance is an advertising set of the controller. Without sets, the
    /// kernel puts the instances on air in turn.
    package var hasSets: Bool { supportedFlags.contains(.secondary1M) }
}

// MARK: - The commands about one instance

/// A command about one instance that returns its number.
package protocol ManagementInstanceCommand: ManagementCommand where Response == UInt8 {}

extension ManagementInstanceCommand {
    /// Decodes 1 byte: the number.
    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> UInt8 {
        try ManagementEvent.instance("mgmt_rp_advertising", returned)
    }
}

/// Removes an instance; with the number 0 all of them, those of other programs too.
///
///     0x003F | number 1              reply: number 1
///
/// Spec: MGMT_OP_REMOVE_ADVERTISING; Bluetooth Management API, Remove Advertising Command.
package struct ManagementRemoveAdvertising: ManagementInstanceCommand {
    package static let code = ManagementCommandCode.removeAdvertising
    package let instance: UInt8
    package var parameters: [UInt8] { [instance] }

    package init(_ instance: UInt8) {
        self.instance = instance
    }
}

/// Begins to add an instance. The adapter has to be on.
///
///     0x0054 | number 1 | flags 4 | duration 2 | timeout 2 | interval 4, 4 | power 1
///                                    reply: number 1 | power 1 | largest data 1 | largest scan response 1
///
/// Spec: MGMT_OP_ADD_EXT_ADV_PARAMS; Bluetooth Management API, Add Extended Advertising Parameters Command.
package struct ManagementAddExtendedAdvertisingParameters: ManagementCommand {
    /// The parameters that the kernel has accepted.
    package struct Accepted: Hashable, Sendable {
        package let instance: UInt8
        /// The transmit power in dBm; 127 if it is not known.
        package let txPower: Int8
        package let maximumDataLength: UInt8
        package let maximumScanResponseLength: UInt8
    }

    package static let code = ManagementCommandCode.addExtendedAdvertisingParameters
    package let instance: UInt8
    package let flags: ManagementAdvertisingFlags
    /// The bounds of the interval, in units of 0.625 ms.
    package let interval: ClosedRange<UInt32>
    /// The greatest transmit power in dBm.
    package let txPower: Int8

    /// Creates parameters of an instance without an end. What the flags do not name counts for nothing.
    package init(
        _ instance: UInt8, _ flags: ManagementAdvertisingFlags, interval: ClosedRange<UInt32>, txPower: Int8 = 0x7F
    ) {
        self.instance = instance
        self.flags = flags
        self.interval = interval
        self.txPower = txPower
    }

    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 18)
        writer.u8(instance)
        writer.u32(flags.rawValue)
        writer.u16(0)
        writer.u16(0)
        writer.u32(interval.lowerBound)
        writer.u32(interval.upperBound)
        writer.i8(txPower)
        return writer.bytes
    }

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> Accepted {
        var reader = ByteReader(returned)
        guard let instance = reader.u8(), let power = reader.i8(), let data = reader.u8(),
            let scanResponse = reader.u8()
        else { throw MalformedPacket("mgmt_rp_add_ext_adv_params", at: returned.count, .tooShort) }
        try reader.finish("mgmt_rp_add_ext_adv_params")
        return Accepted(
            instance: instance, txPower: power, maximumDataLength: data, maximumScanResponseLength: scanResponse)
    }
}

/// Gives an instance its data, and puts it on air.
///
///     0x0055 | number 1 | length 1 | length of the scan response 1 | data | scan response      reply: number 1
///
/// If the kernel refuses the data, the instance is gone.
///
/// Spec: MGMT_OP_ADD_EXT_ADV_DATA; Bluetooth Management API, Add Extended Advertising Data Command.
package struct ManagementAddExtendedAdvertisingData: ManagementInstanceCommand {
    package static let code = ManagementCommandCode.addExtendedAdvertisingData
    package let instance: UInt8
    package let data: [UInt8]
    package let scanResponse: [UInt8]

    /// Creates the command; data beyond 255 bytes are truncated.
    package init(_ instance: UInt8, data: [UInt8], scanResponse: [UInt8] = []) {
        self.instance = instance
        self.data = data.count <= 0xFF ? data : [UInt8](data.prefix(0xFF))
        self.scanResponse = scanResponse.count <= 0xFF ? scanResponse : [UInt8](scanResponse.prefix(0xFF))
    }

    package var parameters: [UInt8] {
        [instance, UInt8(truncatingIfNeeded: data.count), UInt8(truncatingIfNeeded: scanResponse.count)] + data
            + scanResponse
    }
}

// MARK: - Events

extension ManagementEvent {
    /// Reads the number of an instance, which is all that its events and some responses contain.
    static func instance(_ format: StaticString, _ parameters: Span<UInt8>) throws(MalformedPacket) -> UInt8 {
        var reader = ByteReader(parameters)
        guard let instance = reader.u8() else { throw MalformedPacket(format, at: parameters.count, .tooShort) }
        try reader.finish(format)
        return instance
    }
}
