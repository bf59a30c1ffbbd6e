/// What a characteristic says can be done with its value.
///
/// A claim of the peer, not a promise: a peer may still refuse an operation that is listed here.
///
/// Spec: Characteristic Properties, Core Vol 3 Part G, 3.3.1.1.
public struct CharacteristicProperties: OptionSet, Hashable, Sendable, CustomStringConvertible {
    /// The octet as it stands in the declaration.
    public let rawValue: UInt8

    /// The properties in the octet of a declaration.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The value may be put into advertising packets.
    public static let broadcast = Self(rawValue: 0x01)
    /// The value can be read.
    public static let read = Self(rawValue: 0x02)
    /// The value can be written without an answer.
    public static let writeWithoutResponse = Self(rawValue: 0x04)
    /// The value can be written with an answer.
    public static let write = Self(rawValue: 0x08)
    /// The peer can send the value unasked, without confirmation.
    public static let notify = Self(rawValue: 0x10)
    /// The peer can send the value unasked and waits for a confirmation.
    public static let indicate = Self(rawValue: 0x20)
    /// The value can be written with a signature and without an answer.
    public static let authenticatedSignedWrites = Self(rawValue: 0x40)
    /// A descriptor (0x2900) holds further properties.
    public static let extendedProperties = Self(rawValue: 0x80)

    /// Whether the peer can send the value unasked, in one way or the other.
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
