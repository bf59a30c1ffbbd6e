import ArgumentParser
import BLECore

/// A service as people write it: a UUID, or a name such as `heart-rate`.
struct ServiceArgument: Hashable, Sendable, ExpressibleByArgument {
    let uuid: BluetoothUUID

    init?(argument: String) {
        guard let uuid = BluetoothUUID(argument) ?? AssignedNumbers.service(named: argument) else { return nil }
        self.uuid = uuid
    }
}

/// A company's number as people write it: `004c`.
struct CompanyArgument: Hashable, Sendable, ExpressibleByArgument {
    let number: UInt16

    init?(argument: String) {
        guard argument.count == 4, let number = UInt16(argument, radix: 16) else { return nil }
        self.number = number
    }
}

/// A device's address, with its type where that is known.
struct AddressArgument: Hashable, Sendable, ExpressibleByArgument {
    let address: BluetoothAddress
    let type: AddressType?

    init?(argument: String) {
        if let peer = PeerID(argument) {
            (address, type) = (peer.address, peer.type)
        } else if let address = BluetoothAddress(argument) {
            (self.address, type) = (address, nil)
        } else {
            return nil
        }
    }
}
