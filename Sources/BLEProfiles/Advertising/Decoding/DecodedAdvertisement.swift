public import BLECore

/// Decoded manufacturer or service data of an advertisement.
///
/// The formats come from their vendors or were reverse engineered. Data that does not fit a known format is not
/// decoded. Advertisements are not authenticated: anybody can send one with any contents.
public struct DecodedAdvertisement: Hashable, Sendable, CustomStringConvertible {
    /// The format.
    public let kind: Kind
    /// The display name of the format or device, such as "RuuviTag".
    public let title: String
    /// The extent to which encrypted parts of the data could be read.
    public let encryption: Encryption
    /// A Boolean value that indicates whether parts of the data were not decrypted.
    public var isEncrypted: Bool { encryption == .noKey || encryption == .wrongKey }
    /// The decoded fields, in display order. No two fields have the same name.
    ///
    /// All formats use the same names and units: "temperature" in °C, "humidity" in %, "pressure" in hPa, "battery" in
    /// %, "voltage" in V, "illuminance" in lx.
    public let fields: [ValueField]

    /// The extent to which encrypted parts of an advertisement could be read.
    public enum Encryption: Hashable, Sendable {
        /// Nothing is encrypted.
        case none
        /// There is no key for the device, or this format or version is not decrypted.
        case noKey
        /// The key for the device does not fit.
        case wrongKey
        /// They were decrypted.
        case decrypted
    }

    init(_ kind: Kind, _ title: String, isEncrypted: Bool = false, _ fields: [ValueField] = []) {
        self.init(kind, title, isEncrypted ? .noKey : .none, fields)
    }

    init(_ kind: Kind, _ title: String, _ encryption: Encryption, _ fields: [ValueField] = []) {
        self.kind = kind
        self.title = title
        self.encryption = encryption
        self.fields = fields
    }

    /// Returns the field with this name, such as "temperature".
    public subscript(name: String) -> ValueField? {
        fields.first { $0.name == name }
    }

    /// A one-line summary, such as "RuuviTag: temperature 24.30 °C, humidity 53.49 %".
    ///
    /// Texts appear as the device sent them: escape control characters before printing to a terminal.
    public var description: String {
        var text = ""
        for field in fields {
            let part = field.text
            if !part.isEmpty { text += (text.isEmpty ? "" : ", ") + part }
        }
        switch encryption {
        case .none, .decrypted: break
        case .noKey: text += text.isEmpty ? "encrypted" : ", the rest is encrypted"
        case .wrongKey: text += text.isEmpty ? "wrong key" : ", wrong key for the rest"
        }
        return text.isEmpty ? title : "\(title): \(text)"
    }
}

extension AdvertisingData {
    /// The decoded manufacturer and service data, in payload order; unknown formats are skipped.
    public var decoded: [DecodedAdvertisement] { decoded(nil) }

    func decoded(_ keys: SenderKeys?) -> [DecodedAdvertisement] {
        var decoded: [DecodedAdvertisement] = []
        var walk = Walk(bytes.span)
        while var structure = walk.next() {
            if let meaning = DecodedAdvertisement.of(structure.type, &structure.value, in: self, keys) {
                decoded.append(meaning)
            }
        }
        return decoded
    }

    /// Decodes one structure of this payload. Returns `nil` if its format is unknown or its bytes do not fit it.
    public func decoded(_ structure: Structure) -> DecodedAdvertisement? {
        var value = ByteReader(structure.value.span)
        return DecodedAdvertisement.of(structure.type, &value, in: self, nil)
    }
}

/// The former name of `DecodedAdvertisement`.
@available(*, deprecated, renamed: "DecodedAdvertisement")
public typealias AdvertisementMeaning = DecodedAdvertisement

extension AdvertisingData {
    /// The former name of `decoded`.
    @available(*, deprecated, renamed: "decoded")
    public var meanings: [DecodedAdvertisement] { decoded }

    /// The former name of `decoded(_:)`.
    @available(*, deprecated, renamed: "decoded(_:)")
    public func meaning(of structure: Structure) -> DecodedAdvertisement? { decoded(structure) }
}
