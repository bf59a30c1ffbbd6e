import ArgumentParser
import BLECore

/// A service on the command line: a UUID, or a name such as `heart-rate`.
struct ServiceArgument: Hashable, Sendable {
    let uuid: BluetoothUUID

    /// Parses an argument.
    ///
    /// - Throws: `NotAService`, with suggestions.
    init(argument: String) throws(NotAService) {
        guard let uuid = BluetoothUUID(written: argument) ?? AssignedNumbers.service(named: argument) else {
            throw NotAService(text: argument)
        }
        self.uuid = uuid
    }
}

/// The defect of an argument that names no service, as the end of a sentence.
struct NotAService: Error, CustomStringConvertible {
    let text: String

    var description: String {
        let names = NearNames.near(text, in: AssignedNumbers.serviceNames)
        if !names.isEmpty { return "did you mean \(NearNames.list(names))?" }
        if AssignedNumbers.characteristic(named: text) != nil {
            return "that is a characteristic, which is not advertised; name the service that has it."
        }
        return "no service has such a name. Give its UUID, as `blescan scan` shows it."
    }
}

/// A company identifier on the command line: `004c`.
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
