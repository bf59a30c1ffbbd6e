/// The name and the passphrase of a wireless network, as a central writes them.
///
///     length of the name 1 | name 1 to 32 | passphrase 8 to 63, or none for an open network
public struct WiFiCredentials: Hashable, Sendable {
    /// The network's name, in UTF-8 without control characters.
    public let name: String
    /// The passphrase, in ASCII without control characters; empty for an open network.
    public let passphrase: String

    /// Parses a written value; `nil` for any other.
    ///
    /// Control characters are refused, because a program gets both in a line each.
    public init?(_ bytes: [UInt8]) {
        guard let length = bytes.first, (1...32).contains(length), bytes.count > length else { return nil }
        let (name, passphrase) = (bytes[1...Int(length)], bytes[(1 + Int(length))...])
        guard let text = String(validating: name, as: UTF8.self), name.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
            passphrase.isEmpty || (8...63).contains(passphrase.count),
            passphrase.allSatisfy({ (0x20...0x7E).contains($0) })
        else { return nil }
        self.name = text
        self.passphrase = String(decoding: passphrase, as: UTF8.self)
    }
}
