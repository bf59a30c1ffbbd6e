public import BLECore

/// The vendor, product and version of a device.
///
///     vendor source 1 | vendor 2 | product 2 | version 2
///
/// Spec: PnP ID (0x2A50), Device Information Service 1.2, 3.9.
public struct PnPID: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The namespace of `vendor`: 1 for the Bluetooth SIG, 2 for the USB Implementers Forum.
    public var vendorSource: UInt8
    /// The vendor identifier.
    public var vendor: UInt16
    /// The product number, assigned by the vendor.
    public var product: UInt16
    /// The product version, assigned by the vendor; usually binary-coded decimal: 0x0213 is 2.1.3.
    public var version: UInt16
    /// The specification's name.
    public static var formatName: String { "PnP ID" }

    /// Creates an identifier.
    public init(vendorSource: UInt8, vendor: UInt16, product: UInt16, version: UInt16) {
        self.vendorSource = vendorSource
        self.vendor = vendor
        self.product = product
        self.version = version
    }

    /// Reads 7 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        vendorSource = try reader.read()
        vendor = try reader.read()
        product = try reader.read()
        version = try reader.read()
    }

    /// Appends 7 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.u8(vendorSource)
        for number in [vendor, product, version] { writer.u16(number) }
    }

    /// The vendor's name, if the identifier is in the Bluetooth SIG's namespace.
    public var companyName: String? { vendorSource == 1 ? AssignedNumbers.companyName(vendor) : nil }
}

extension PnPID: DescribedValue {
    package var fields: [ValueField] {
        let label =
            switch vendorSource {
            case 1: "company"
            case 2: "USB vendor"
            default: "vendor"
            }
        let name = companyName.map { " " + $0 } ?? ""
        return [
            ValueField(label, .named(Int64(vendor), Self.digits(vendor) + name)),
            ValueField("product", .named(Int64(product), Self.digits(product))),
            ValueField("version", .named(Int64(version), Self.digits(version))),
        ]
    }

    private static func digits(_ number: UInt16) -> String {
        "0x" + Hex.encode([UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)])
    }
}

extension CharacteristicKey where Value == PnPID {
    /// PnP ID, 0x2A50.
    public static var pnpID: Self { Self(0x2A50) }
}
