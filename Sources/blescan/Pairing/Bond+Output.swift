import BLECore
import BareBLE

extension Bond {
    /// The bond in words, without the peer.
    var words: String { styledWords.map(\.text).joined() }

    private var styledWords: [(text: String, style: ScreenStyle)] {
        let protection: (String, ScreenStyle) =
            if isAuthenticated {
                ("authenticated", .green)
            } else if isLegacyPasskey {
                ("legacy passkey", .yellow)
            } else {
                ("not authenticated", .yellow)
            }
        return [(method.words + ", ", []), protection, (", key of \(keySize.counted("byte"))", [])]
    }

    /// Returns the peer as the user has named it, if that is a virtual device: nobody has typed its address.
    private func label(for argument: PeerArgument?) -> String {
        if let argument, case .demo = argument { return argument.description }
        return peer.description
    }

    /// What a pairing with a peer of the command line has achieved.
    func result(isNew: Bool, as argument: PeerArgument) -> StyledText {
        var line = StyledText(isNew ? "bonded" : "already bonded", .bold)
        line.add(" with \(label(for: argument)): ")
        for (text, style) in styledWords { line.add(text, style) }
        return line
    }

    /// The bond as a line of a list.
    var line: StyledText {
        var line = StyledText("\(peer)", .bold)
        line.add("  ")
        for (text, style) in styledWords { line.add(text, style) }
        line.add("  adapter \(adapter)")
        line.add("  since \(Self.localTime(bondedAt))", .dim)
        if let rejectedSince { line.add("  rejected by the peer since \(Self.localTime(rejectedSince))", .red) }
        if let name { line.add("  \"\(name.printable)\"") }
        return line
    }

    /// The bond as an object; there is no key in it.
    ///
    /// - Parameters:
    ///   - isNew: Whether a pairing has just made it; `nil` where that is not known.
    ///   - argument: The peer of the command line that was paired with.
    func json(isNew: Bool? = nil, as argument: PeerArgument? = nil) -> JSONLine {
        .object([
            "v": 1, "peer": .string(label(for: argument)), "new": isNew.map { .bool($0) },
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

    /// Returns the same for users.
    private static func localTime(_ seconds: UInt64) -> String {
        Timestamp.local(sinceEpoch: .seconds(Int64(clamping: seconds)))
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
