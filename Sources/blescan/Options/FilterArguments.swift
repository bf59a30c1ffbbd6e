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

/// A company on the command line: its identifier, `004c`, `4c` or `0x4c`, or its name or the beginning of it, `apple`.
struct CompanyArgument: Hashable, Sendable {
    let number: UInt16

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, with suggestions.
    init(argument: String) throws(BadValue) {
        let digits = argument.dropped(prefix: "0x")
        if let number = Self.number(digits ?? argument) {
            // Sent low byte first, as captures show it.
            let swapped = number.byteSwapped
            if digits == nil, AssignedNumbers.companyName(number) == nil,
                let name = AssignedNumbers.companyName(swapped)
            {
                let (written, right) = (JSONLine.companyKey(number), JSONLine.companyKey(swapped))
                throw BadValue(
                    description: "\(written) is not assigned; did you mean \(right), \(name)? "
                        + "0x\(written) searches for it all the same.")
            }
            self.number = number
            return
        }
        let found = Self.companies(called: argument)
        guard let company = found.first else {
            throw BadValue(
                description: "no company has such a number or name. Write four hexadecimal digits, such as 004c.")
        }
        guard found.count == 1 else {
            let list = found.map { "\(JSONLine.companyKey($0.company)) \($0.name)" }
            throw BadValue(description: "several companies are called so: \(NearNames.list(list)).")
        }
        number = company.company
    }

    /// Returns the companies with this name; else those whose first words, else those whose first letters it is.
    private static func companies(called text: String) -> [(company: UInt16, name: String)] {
        let wanted = NearNames.written(text)
        guard !wanted.isEmpty else { return [] }
        let found = AssignedNumbers.companyNames.filter { NearNames.written($0.name).hasPrefix(wanted) }
        for end in ["", "-"] {
            let closer = found.filter {
                let name = NearNames.written($0.name)
                return end.isEmpty ? name == wanted : name.hasPrefix(wanted + end)
            }
            if !closer.isEmpty { return closer }
        }
        return found
    }

    private static func number(_ digits: String) -> UInt16? {
        guard (1...4).contains(digits.utf8.count), digits.allSatisfy(\.isHexDigit) else { return nil }
        return UInt16(digits, radix: 16)
    }
}

/// The least RSSI on the command line.
enum RSSIArgument {
    /// Parses a number of dBm.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    static func parse(_ text: String) throws(BadValue) -> Int8 {
        guard let number = Int8(text) else { throw BadValue(description: "it takes dBm from -128 to 0.") }
        guard number <= 0 else { throw BadValue(description: "RSSI is negative; did you mean -\(number)?") }
        return number
    }
}

/// A device's address, with its type where that is known.
struct AddressArgument: Hashable, Sendable {
    let address: BluetoothAddress
    let type: AddressType?

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        if let peer = PeerID(argument) {
            (address, type) = (peer.address, peer.type)
        } else if let address = BluetoothAddress(argument) {
            (self.address, type) = (address, nil)
        } else {
            throw BadValue(
                description: "write AA:BB:CC:DD:EE:FF, with /random or /public where the type is known.")
        }
    }
}
