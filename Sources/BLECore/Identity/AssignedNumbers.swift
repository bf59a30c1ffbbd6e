/// The names that the Bluetooth SIG gives to numbers, and the numbers that names stand for.
///
/// The tables are generated (`Docs/generators/assigned_numbers.py`); their files say from which edition.
public enum AssignedNumbers {
    /// The name of a service, the SIG's or a well-known maker's.
    public static func serviceName(_ uuid: BluetoothUUID) -> String? {
        name(uuid, services, vendorServices)
    }

    /// The name of a characteristic, the SIG's or a well-known maker's.
    public static func characteristicName(_ uuid: BluetoothUUID) -> String? {
        name(uuid, characteristics, vendorCharacteristics)
    }

    /// The name of a descriptor.
    public static func descriptorName(_ uuid: BluetoothUUID) -> String? {
        uuid.medium.flatMap { descriptors.name(of: $0) }
    }

    /// The name of an attribute type that declares services, includes and characteristics.
    public static func declarationName(_ uuid: BluetoothUUID) -> String? {
        uuid.medium.flatMap { declarations.name(of: $0) }
    }

    /// The company or standard that was given a 16-bit UUID of its own.
    public static func memberName(_ uuid: BluetoothUUID) -> String? {
        guard let short = uuid.medium else { return nil }
        return members.name(of: short) ?? standards.name(of: short)
    }

    /// The name of a unit of measurement.
    public static func unitName(_ uuid: BluetoothUUID) -> String? {
        uuid.medium.flatMap { units.name(of: $0) }
    }

    /// The name of any UUID, whatever it stands for.
    public static func name(of uuid: BluetoothUUID) -> String? {
        serviceName(uuid) ?? characteristicName(uuid) ?? descriptorName(uuid) ?? declarationName(uuid)
            ?? memberName(uuid) ?? unitName(uuid)
    }

    /// The name of a company by its identifier in manufacturer data.
    public static func companyName(_ company: UInt16) -> String? {
        companies.name(of: UInt32(company))
    }

    /// What a device with this Appearance looks like; unknown subcategories get the name of their category.
    public static func appearanceName(_ appearance: UInt16) -> String? {
        appearances.name(of: UInt32(appearance)) ?? appearances.name(of: UInt32(appearance & 0xFFC0))
    }

    /// The name of an advertising data type.
    public static func adTypeName(_ type: UInt8) -> String? {
        adTypes.name(of: UInt32(type))
    }

    /// The name of a format in a Characteristic Presentation Format descriptor, such as `uint16`.
    public static func formatName(_ format: UInt8) -> String? {
        formatTypes.name(of: UInt32(format))
    }

    /// What the first character of an advertised URI stands for, colon included; empty for code point 1.
    public static func uriScheme(_ codePoint: UInt16) -> String? {
        codePoint == 1 ? "" : uriSchemes.name(of: UInt32(codePoint))
    }

    /// The service with this name. `battery`, `Battery Service`, `heart-rate` and `heart_rate` are all understood: the SIG's
    /// name or identifier, in any case and with any separators, with or without the word "service" at the end.
    public static func service(named name: String) -> BluetoothUUID? {
        let bare = withoutSuffix("service", name)
        for name in [name, bare].compactMap({ $0 }) {
            if let uuid = find(name, services, vendorServices) ?? find(name, spelledOut, nil) { return uuid }
        }
        return nil
    }

    /// The characteristic with this name, as forgiving as `service(named:)`.
    public static func characteristic(named name: String) -> BluetoothUUID? {
        find(name, characteristics, vendorCharacteristics)
    }

    /// The descriptor with this name, as forgiving as `service(named:)`.
    public static func descriptor(named name: String) -> BluetoothUUID? {
        find(name, descriptors, nil)
    }

    /// What this name stands for: a characteristic, else a service, else a descriptor.
    public static func uuid(named name: String) -> BluetoothUUID? {
        characteristic(named: name) ?? service(named: name) ?? descriptor(named: name)
    }

    /// The names of all services, by their numbers.
    package static var serviceNames: [String] { names(spelledOut) + names(services) + names(vendorServices) }

    /// The names of all characteristics, by their numbers.
    package static var characteristicNames: [String] { names(characteristics) + names(vendorCharacteristics) }

    private static func names(_ table: AssignedNumberTable) -> [String] {
        var names: [String] = []
        table.forEach { _, _, name in names.append(name) }
        return names
    }

    private static func name(_ uuid: BluetoothUUID, _ table: AssignedNumberTable, _ vendors: AssignedNumberTable)
        -> String?
    {
        if let short = uuid.medium { return table.name(of: short) }
        return vendors.name(high: uuid.high, low: uuid.low)
    }

    private static func find(
        _ name: String, _ table: AssignedNumberTable, _ vendors: AssignedNumberTable?
    ) -> BluetoothUUID? {
        if let number = table.number(named: name) { return BluetoothUUID(UInt16(truncatingIfNeeded: number.low)) }
        return vendors?.number(named: name).map { BluetoothUUID(high: $0.high, low: $0.low) }
    }

    /// The SIG's list has abbreviations for these two; most people write them out.
    private static let spelledOut = AssignedNumberTable(keyDigits: 4, "1800Generic Access\n1801Generic Attribute")

    private static func withoutSuffix(_ suffix: String, _ name: String) -> String? {
        name.lowercased().hasSuffix(suffix) ? String(name.dropLast(suffix.count)) : nil
    }
}
