import BLECore
import BareBLE

/// An attribute on the command line: `0x0022` is a handle, `2a19` or the long form a UUID, `battery-level` a name.
struct AttributeArgument: Hashable, Sendable {
    let text: String
    let reference: CharacteristicReference

    /// Whether it is a handle, not a type.
    var isHandle: Bool {
        if case .handle = reference { return true }
        return false
    }

    /// Parses an argument.
    ///
    /// - Throws: `NotAnAttribute`, with suggestions.
    init(argument: String) throws(NotAnAttribute) {
        text = argument
        if let digits = argument.dropped(prefix: "0x") {
            guard (1...4).contains(digits.utf8.count), digits.utf8.allSatisfy({ $0 != 0x2B }),
                let handle = UInt16(digits, radix: 16), handle != 0
            else { throw NotAnAttribute("handles go from 0x0001 to 0xffff", .list) }
            reference = .handle(handle)
        } else if let uuid = BluetoothUUID(written: argument) {
            if uuid.isService { throw NotAnAttribute(service: uuid) }
            reference = .uuid(uuid)
        } else if let uuid = AssignedNumbers.characteristic(named: argument) {
            reference = .uuid(uuid)
        } else {
            throw NotAnAttribute(argument)
        }
    }
}

extension AttributeArgument {
    /// A characteristic that discovery has found.
    init(_ characteristic: GATTCharacteristic) {
        text = characteristic.uuid.description
        reference = .characteristic(characteristic)
    }
}

/// What is to be read, on the command line: an attribute, or a service, which stands for its readable characteristics.
enum ReadArgument: Hashable, Sendable {
    case attribute(AttributeArgument)
    case service(BluetoothUUID)

    /// Parses an argument.
    ///
    /// - Throws: `NotAnAttribute`, with suggestions.
    init(argument: String) throws(NotAnAttribute) {
        if let service = Self.service(argument) {
            self = .service(service)
        } else {
            self = .attribute(try AttributeArgument(argument: argument))
        }
    }

    /// The argument as it was written, or the service.
    var text: String {
        switch self {
        case .attribute(let attribute): attribute.text
        case .service(let service): service.description
        }
    }

    /// Whether it is one value, and not several.
    var isAttribute: Bool {
        if case .attribute = self { return true }
        return false
    }

    /// The UUID of an attribute whose type is unknown, and which the peer may have as a service.
    var possibleService: BluetoothUUID? {
        guard case .attribute(let attribute) = self, case .uuid(let uuid, nil, nil) = attribute.reference,
            AssignedNumbers.characteristicName(uuid) == nil, AssignedNumbers.descriptorName(uuid) == nil
        else { return nil }
        return uuid
    }

    /// Returns the service that an argument names; `nil` if it can be an attribute.
    private static func service(_ argument: String) -> BluetoothUUID? {
        if let uuid = BluetoothUUID(written: argument) { return uuid.isService ? uuid : nil }
        guard AssignedNumbers.characteristic(named: argument) == nil else { return nil }
        return AssignedNumbers.service(named: argument)
    }
}

/// The defect of an argument that names no attribute.
struct NotAnAttribute: Error, CustomStringConvertible {
    /// What helps.
    enum Remedy: Hashable, Sendable {
        /// What was probably meant.
        case meant(String)
        /// A characteristic of the service that is named.
        case characteristic
        /// The handle of the descriptor that is named.
        case handle
        /// The list of what the peer has.
        case list
    }

    /// The defect as the end of a sentence, with what helps.
    let description: String
    /// The defect alone, without a full stop.
    let reason: String
    let remedy: Remedy

    /// Returns a sentence about what to do next, for a peer on the command line.
    func hint(for peer: String) -> String {
        let explore = "`blescan explore \(peer.shellQuoted)`"
        return switch remedy {
        case .meant(let words): "Did you mean \(words)?"
        case .characteristic: "Name one of its characteristics; \(explore) lists them."
        case .handle: "Name it by its handle; \(explore) shows it."
        case .list: "\(explore) lists what the peer has."
        }
    }
}

extension NotAnAttribute {
    private static let unknownName = "no characteristic has such a name"

    /// A defect with a remedy.
    fileprivate init(_ reason: String, _ remedy: Remedy) {
        self.init(description: reason + ".", reason: reason, remedy: remedy)
    }

    /// A service in the place of an attribute.
    fileprivate init(service: BluetoothUUID) {
        let reason = "that is the service \(service)"
        self.init(
            description: "\(reason). Name one of its characteristics; `blescan explore` lists them.", reason: reason,
            remedy: .characteristic)
    }

    /// A word that is neither a handle, a UUID nor the name of a characteristic.
    fileprivate init(_ text: String) {
        let names = NearNames.near(text, in: AssignedNumbers.characteristicNames)
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(text), number > 0 {
            let handle = CharacteristicReference.handle(number).description
            self.init(
                description: "handles are hexadecimal: \(text) is \(handle).", reason: "handles are hexadecimal",
                remedy: .meant(handle))
        } else if let service = AssignedNumbers.service(named: text) {
            self.init(service: service)
        } else if AssignedNumbers.descriptor(named: text) != nil {
            self.init(
                description: "that is a descriptor. Name it by its handle; `blescan explore` shows it.",
                reason: "that is a descriptor", remedy: .handle)
        } else if names.isEmpty {
            self.init(
                description: "\(Self.unknownName). `blescan explore` shows the UUIDs and handles of what a peer has.",
                reason: Self.unknownName, remedy: .list)
        } else {
            let list = NearNames.list(names)
            self.init(description: "did you mean \(list)?", reason: Self.unknownName, remedy: .meant(list))
        }
    }
}

extension BluetoothUUID {
    /// Parses a UUID: 128 bits also without dashes.
    init?(written text: String) {
        guard text.utf8.count == 32 else {
            self.init(text)
            return
        }
        var dashed = ""
        for (index, character) in text.enumerated() {
            if [8, 12, 16, 20].contains(index) { dashed.append("-") }
            dashed.append(character)
        }
        self.init(dashed)
    }

    /// Whether it is known as a service, of the SIG or of a vendor, and as nothing else.
    fileprivate var isService: Bool {
        AssignedNumbers.serviceName(self) != nil && AssignedNumbers.characteristicName(self) == nil
    }
}
