/// What the data of one maker or service in an advertisement says.
///
/// The formats come from their makers, or from people who took devices apart. What does not fit a known one has no
/// meaning here and stays bytes. An advertisement can be sent by anybody: nothing in it is proven.
public struct AdvertisementMeaning: Hashable, Sendable, CustomStringConvertible {
    /// The format.
    public let kind: Kind
    /// What people call the format or the device, such as "RuuviTag".
    public let title: String
    /// Whether there is more in it that only the holder of a key can read.
    public let isEncrypted: Bool
    /// What it says, in the order in which people want to read it. No two fields have the same name.
    ///
    /// All formats use the same names and units: "temperature" in °C, "humidity" in %, "pressure" in hPa, "battery" in %,
    /// "voltage" in V, "illuminance" in lx.
    public let fields: [ValueField]

    init(_ kind: Kind, _ title: String, isEncrypted: Bool = false, _ fields: [ValueField] = []) {
        self.kind = kind
        self.title = title
        self.isEncrypted = isEncrypted
        self.fields = fields
    }

    /// The field of this name, such as "temperature".
    public subscript(name: String) -> ValueField? {
        fields.first { $0.name == name }
    }

    /// One line for people, such as "RuuviTag: temperature 24.300 °C, humidity 53.4900 %".
    ///
    /// Texts are in it as the device sent them: escape what could steer a terminal.
    public var description: String {
        var text = ""
        for field in fields {
            let part = field.text
            if !part.isEmpty { text += (text.isEmpty ? "" : ", ") + part }
        }
        if isEncrypted { text += text.isEmpty ? "encrypted" : ", the rest is encrypted" }
        return text.isEmpty ? title : "\(title): \(text)"
    }
}

extension AdvertisingData {
    /// What makers' and services' data say, in payload order; what is not known is left out.
    public var meanings: [AdvertisementMeaning] {
        var meanings: [AdvertisementMeaning] = []
        var walk = Walk(bytes.span)
        while var structure = walk.next() {
            if let meaning = AdvertisementMeaning.of(structure.type, &structure.value, in: self) {
                meanings.append(meaning)
            }
        }
        return meanings
    }

    /// What one structure of this payload says; `nil` when its format is not known or its bytes do not fit it.
    public func meaning(of structure: Structure) -> AdvertisementMeaning? {
        var value = ByteReader(structure.value.span)
        return AdvertisementMeaning.of(structure.type, &value, in: self)
    }
}
