/// Lookup between the Bluetooth SIG's assigned numbers and their names.
///
/// The tables are generated (`Docs/generators/assigned_numbers.py`); each file states its edition.
public enum AssignedNumbers {
    /// Returns the name of a service that the SIG or a well-known vendor has defined.
    public static func serviceName(_ uuid: BluetoothUUID) -> String? {
        name(uuid, services, vendorServices)
    }

    /// Returns the name of a characteristic that the SIG or a well-known vendor has defined.
    public static func characteristicName(_ uuid: BluetoothUUID) -> String? {
        name(uuid, characteristics, vendorCharacteristics)
    }

    /// Returns the name of a descriptor.
    public static func descriptorName(_ uuid: BluetoothUUID) -> String? {
        uuid.medium.flatMap { descriptors.name(of: $0) }
    }

    /// Returns the name of an attribute type that declares a service, an include or a characteristic.
    public static func declarationName(_ uuid: BluetoothUUID) -> String? {
        uuid.medium.flatMap { declarations.name(of: $0) }
    }

    /// Returns the company or standards organization that a 16-bit UUID is assigned to.
    public static func memberName(_ uuid: BluetoothUUID) -> String? {
        guard let short = uuid.medium else { return nil }
        return members.name(of: short) ?? standards.name(of: short)
    }

    /// Returns the name of a unit.
    public static func unitName(_ uuid: BluetoothUUID) -> String? {
        uuid.medium.flatMap { units.name(of: $0) }
    }

    /// Returns the name of a UUID of any type.
    public static func name(of uuid: BluetoothUUID) -> String? {
        serviceName(uuid) ?? characteristicName(uuid) ?? descriptorName(uuid) ?? declarationName(uuid)
            ?? memberName(uuid) ?? unitName(uuid)
    }

    /// Returns the name of a company by its identifier in manufacturer data.
    public static func companyName(_ company: UInt16) -> String? {
        companies.name(of: UInt32(company))
    }

    /// The identifiers of all companies with their names, sorted by number.
    package static var companyNames: [(company: UInt16, name: String)] {
        var names: [(company: UInt16, name: String)] = []
        companies.forEach { _, number, name in
            names.append((company: UInt16(truncatingIfNeeded: number), name: name))
        }
        return names
    }

    /// Returns the name of an Appearance value. Unknown subcategories have the name of their category.
    public static func appearanceName(_ appearance: UInt16) -> String? {
        appearances.name(of: UInt32(appearance)) ?? appearances.name(of: UInt32(appearance & 0xFFC0))
    }

    /// Returns the name of an advertising data type.
    public static func adTypeName(_ type: UInt8) -> String? {
        adTypes.name(of: UInt32(type))
    }

    /// Returns the name of a format in a Characteristic Presentation Format descriptor, such as `uint16`.
    public static func formatName(_ format: UInt8) -> String? {
        formatTypes.name(of: UInt32(format))
    }

    /// Returns the scheme that the first character of an advertised URI stands for, including the colon; empty for code
    /// point 1.
    public static func uriScheme(_ codePoint: UInt16) -> String? {
        codePoint == 1 ? "" : uriSchemes.name(of: UInt32(codePoint))
    }

    /// Returns the service with this name: the SIG's name or identifier, with or without the word "service" at the end,
    /// ignoring case and separators. `battery`, `Battery Service`, `heart-rate` and `heart_rate` are all accepted.
    public static func service(named name: String) -> BluetoothUUID? {
        let bare = withoutSuffix("service", name)
        for name in [name, bare].compactMap({ $0 }) {
            if let uuid = find(name, services, vendorServices) ?? find(name, spelledOut, nil) { return uuid }
        }
        return nil
    }

    /// Returns the characteristic with this name; case and separators are ignored as in `service(named:)`.
    public static func characteristic(named name: String) -> BluetoothUUID? {
        find(name, characteristics, vendorCharacteristics)
    }

    /// Returns the descriptor with this name; case and separators are ignored as in `service(named:)`.
    public static func descriptor(named name: String) -> BluetoothUUID? {
        find(name, descriptors, nil)
    }

    /// Returns the UUID with this name: a characteristic, else a service, else a descriptor.
    public static func uuid(named name: String) -> BluetoothUUID? {
        characteristic(named: name) ?? service(named: name) ?? descriptor(named: name)
    }

    /// The names of all services, sorted by number.
    package static var serviceNames: [String] { names(spelledOut) + names(services) + names(vendorServices) }

    /// The names of all characteristics, sorted by number.
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

    /// The SIG's list abbreviates these two names.
    private static let spelledOut = AssignedNumberTable(keyDigits: 4, "1800Generic Access\n1801Generic Attribute")

    private static func withoutSuffix(_ suffix: String, _ name: String) -> String? {
        name.lowercased().hasSuffix(suffix) ? String(name.dropLast(suffix.count)) : nil
    }
}
