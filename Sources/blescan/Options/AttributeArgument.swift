import ArgumentParser
import BLECore
import BareBLE

/// A characteristic as people write it: `0x0022` is a handle, `2a19` or the long form a UUID, `battery-level` a name.
struct AttributeArgument: Hashable, Sendable {
    let text: String
    let reference: CharacteristicReference
}

extension AttributeArgument: ExpressibleByArgument {
    init?(argument: String) {
        text = argument
        if let digits = argument.dropped(prefix: "0x") {
            guard (1...4).contains(digits.utf8.count), digits.utf8.allSatisfy({ $0 != 0x2B }),
                let handle = UInt16(digits, radix: 16), handle != 0
            else { return nil }
            reference = .handle(handle)
        } else if let uuid = BluetoothUUID(argument) {
            reference = .uuid(uuid)
        } else if let uuid = AssignedNumbers.characteristic(named: argument) {
            reference = .uuid(uuid)
        } else {
            return nil
        }
    }
}
