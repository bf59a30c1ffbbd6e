import BLECore
import BareBLE

/// The command that does the same as a key: for a shell, so that what a device has sent is no word of it.
struct EqualCommand: Hashable, Sendable {
    private let words: [String]

    /// The command that shows or reads an attribute, or prints its values.
    init(about row: AttributeRow, of peer: String) {
        let handle = CharacteristicReference.handle(row.handle).description
        switch row.kind {
        case .service: words = ["explore", peer, "--service", row.type.map(\.description) ?? handle]
        case .include: words = ["explore", peer]
        case .descriptor: words = ["read", peer, handle]
        case .characteristic:
            if row.properties.contains(.read) {
                words = ["read", peer, handle]
            } else if row.properties.canSubscribe {
                words = ["notify", peer, handle]
            } else if row.properties.canWrite {
                words = ["write", peer, handle, "--hex", "BYTES"]
            } else {
                words = ["read", peer, handle]
            }
        }
    }

    private init(_ words: [String]) {
        self.words = words
    }

    static func reading(_ handle: AttributeHandle, of peer: String) -> EqualCommand {
        EqualCommand(["read", peer, CharacteristicReference.handle(handle).description])
    }

    static func subscribing(to handle: AttributeHandle, of peer: String) -> EqualCommand {
        EqualCommand(["notify", peer, CharacteristicReference.handle(handle).description])
    }

    static func writing(
        _ bytes: [UInt8], to handle: AttributeHandle, of peer: String, _ kind: WriteKind
    ) -> EqualCommand {
        let option = kind == .withoutResponse ? ["--without-response"] : []
        return EqualCommand(
            ["write", peer, CharacteristicReference.handle(handle).description, "--hex", Hex.encode(bytes)] + option)
    }

    /// The command line.
    var text: String { (["blescan"] + words.map(Self.quoted)).joined(separator: " ") }

    /// Returns a word as a shell takes it for one.
    private static func quoted(_ word: String) -> String {
        let isPlain = word.unicodeScalars.allSatisfy { scalar in
            scalar.isASCII && (scalar.properties.isAlphabetic || "0123456789-_./:,=@%+".unicodeScalars.contains(scalar))
        }
        if isPlain, !word.isEmpty { return word }
        return "'" + word.replacing("'", with: #"'\''"#) + "'"
    }
}

extension CharacteristicProperties {
    /// Whether a value can be written.
    var canWrite: Bool { !isDisjoint(with: [.write, .writeWithoutResponse]) }
}
