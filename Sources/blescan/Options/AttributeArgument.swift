import BLECore
import BareBLE

/// A characteristic as people write it: `0x0022` is a handle, `2a19` or the long form a UUID, `battery-level` a name.
struct AttributeArgument: Hashable, Sendable {
    let text: String
    let reference: CharacteristicReference

    /// Whether it says where, not what.
    var isHandle: Bool {
        if case .handle = reference { return true }
        return false
    }

    /// Reads an argument.
    ///
    /// - Throws: `NotAnAttribute`, which says what may have been meant.
    init(argument: String) throws(NotAnAttribute) {
        text = argument
        if let digits = argument.dropped(prefix: "0x") {
            guard (1...4).contains(digits.utf8.count), digits.utf8.allSatisfy({ $0 != 0x2B }),
                let handle = UInt16(digits, radix: 16), handle != 0
            else { throw NotAnAttribute(description: "handles go from 0x0001 to 0xffff.") }
            reference = .handle(handle)
        } else if let uuid = BluetoothUUID(argument) {
            reference = .uuid(uuid)
        } else if let uuid = AssignedNumbers.characteristic(named: argument) {
            reference = .uuid(uuid)
        } else {
            throw NotAnAttribute(argument)
        }
    }
}

/// What is wrong with an argument that names no attribute, as the end of a sentence.
struct NotAnAttribute: Error, CustomStringConvertible {
    let description: String
}

extension NotAnAttribute {
    init(_ text: String) {
        let names = NearNames.near(text, in: AssignedNumbers.characteristicNames)
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let handle = UInt16(text), handle > 0 {
            description = "handles are hexadecimal: \(text) is \(CharacteristicReference.handle(handle))."
        } else if let service = AssignedNumbers.service(named: text) {
            description =
                "that is the service \(service). Name one of its characteristics; `blescan explore` lists them."
        } else if AssignedNumbers.descriptor(named: text) != nil {
            description = "that is a descriptor. Name it by its handle; `blescan explore` tells it."
        } else if names.isEmpty {
            description =
                "no characteristic has such a name. `blescan explore` tells the UUIDs and handles of what a peer has."
        } else {
            description = "did you mean \(NearNames.list(names))?"
        }
    }
}
