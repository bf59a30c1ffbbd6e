/// The operations that a characteristic declares for its value.
///
/// The properties are the peer's claim: it may still refuse an operation that they contain.
///
/// Spec: Characteristic Properties, Core Vol 3 Part G, 3.3.1.1.
public struct CharacteristicProperties: OptionSet, Hashable, Sendable, CustomStringConvertible {
    /// The octet of the declaration.
    public let rawValue: UInt8

    /// Creates properties from the octet of a declaration.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The value may be broadcast in advertising packets.
    public static let broadcast = Self(rawValue: 0x01)
    /// The value can be read.
    public static let read = Self(rawValue: 0x02)
    /// The value can be written without a response.
    public static let writeWithoutResponse = Self(rawValue: 0x04)
    /// The value can be written with a response.
    public static let write = Self(rawValue: 0x08)
    /// The peer can send the value in notifications, without confirmation.
    public static let notify = Self(rawValue: 0x10)
    /// The peer can send the value in indications, which it waits to be confirmed.
    public static let indicate = Self(rawValue: 0x20)
    /// The value can be written with a signature and without a response.
    public static let authenticatedSignedWrites = Self(rawValue: 0x40)
    /// A descriptor (0x2900) holds further properties.
    public static let extendedProperties = Self(rawValue: 0x80)

    /// A Boolean value that indicates whether the peer can send the value, in notifications or indications.
    public var canSubscribe: Bool { !isDisjoint(with: [.notify, .indicate]) }

    /// The names of the properties, lowest bit first.
    public var names: [String] {
        var names: [String] = []
        for (property, name) in Self.all where contains(property) { names.append(name) }
        return names
    }

    /// The names, separated by commas, such as "read, notify".
    public var description: String {
        var text = ""
        for name in names { text += text.isEmpty ? name : ", " + name }
        return text
    }

    private static let all: [(Self, String)] = [
        (.broadcast, "broadcast"),
        (.read, "read"),
        (.writeWithoutResponse, "write-without-response"),
        (.write, "write"),
        (.notify, "notify"),
        (.indicate, "indicate"),
        (.authenticatedSignedWrites, "authenticated-signed-writes"),
        (.extendedProperties, "extended-properties"),
    ]
}
