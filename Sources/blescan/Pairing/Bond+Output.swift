import BLECore
import BareBLE

extension Bond {
    /// The bond in words, without the peer.
    var words: String {
        var parts = [method.words]
        parts.append(isAuthenticated ? "authenticated" : isLegacyPasskey ? "legacy passkey" : "not authenticated")
        parts.append("key of \(keySize.counted("byte"))")
        return parts.joined(separator: ", ")
    }

    /// The bond as a line of a list.
    var line: String {
        var parts = ["\(peer)", words, "adapter \(adapter)", "since \(Self.time(bondedAt))"]
        if let rejectedSince { parts.append("rejected by the peer since \(Self.time(rejectedSince))") }
        if let name { parts.append("\"\(name.printable)\"") }
        return parts.joined(separator: "  ")
    }

    /// The bond as an object; there is no key in it.
    func json(isNew: Bool? = nil) -> JSONLine {
        .object([
            "v": 1, "peer": .string(peer.description), "new": isNew.map { .bool($0) },
            "name": name.map { .string($0) }, "adapter": .string(adapter.description),
            "method": .string(method.rawValue), "authenticated": .bool(isAuthenticated),
            "legacyPasskey": isLegacyPasskey ? .bool(true) : nil, "keySize": .integer(keySize),
            "resolvesPrivateAddresses": .bool(resolvesPrivateAddresses), "bondedAt": .string(Self.time(bondedAt)),
            "lastEncryptedAt": lastEncryptedAt.map { .string(Self.time($0)) },
            "rejectedSince": rejectedSince.map { .string(Self.time($0)) },
        ])
    }

    private static func time(_ seconds: UInt64) -> String {
        Timestamp.text(sinceEpoch: .seconds(Int64(clamping: seconds)))
    }
}

extension PairingMethod {
    /// The method in words.
    var words: String {
        switch self {
        case .justWorks: "nothing compared"
        case .passkeyShown: "passkey shown here"
        case .passkeyTyped: "passkey typed here"
        case .numericComparison: "numbers compared"
        case .outOfBand: "out-of-band data"
        }
    }
}
