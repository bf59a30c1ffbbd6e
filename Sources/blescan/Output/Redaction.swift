// The implementation of `--redact`. It changes the scan results and not the output, so that no screen and no format
// has to handle it: the address, the names, and every copy of them in the payloads.
//
// - An address keeps what identifies its kind: the maker's three bytes of a public one, the two top bits of a random
//   one. The rest is a number, the same for the same device in one run.
// - A name becomes "(name 1)", and the same name the same number. The few formats that are recognized by the device's
//   name are not recognized then.
// - In manufacturer and service data, the places of an address or a name in a known format are masked, and all places
//   with the bytes of the device's own address or name. What an unknown format hides in another way remains.

import BLECore

/// Removes the identity of devices from scan results.
struct Redaction {
    private var addresses = Aliases()
    private var names = Aliases()

    /// Returns the same result for a device without a name.
    mutating func redacted(_ sighting: Sighting) -> Sighting {
        let reports = [sighting.advertisement, sighting.scanResponse].compactMap(\.self)
        var owner = Owner(peer: sighting.peer)
        owner.alias = sighting.peer.map { alias(of: $0.address, type: $0.type) }
        for report in reports {
            for structure in report.advertisingData.structures where structure.type.isName {
                // Shorter ones occur in other data by chance.
                if structure.value.count > 2 { owner.names.append(structure.value) }
            }
        }
        let peer = sighting.peer.map { PeerID(address: owner.alias ?? $0.address, type: $0.type) }
        return sighting.replacing(peer: peer) { report in
            var report = report
            if report.address != nil { report.address = owner.alias }
            report.directAddress = report.directAddress.map { alias(of: $0, type: report.directAddressType ?? .random) }
            report.data = redacted(report.data, of: owner)
            return report
        }
    }

    /// The owner of a payload.
    private struct Owner {
        let peer: PeerID?
        var alias: BluetoothAddress?
        var names: [[UInt8]] = []
    }

    // MARK: Payloads

    private mutating func redacted(_ payload: [UInt8], of owner: Owner) -> [UInt8] {
        var output: [UInt8] = []
        var reader = ByteReader(payload.span)
        while let length = reader.u8() {
            let left = reader.remaining
            guard length > 0, let type = reader.u8(), var content = reader.take(Int(length) - 1) else {
                // The end, or a structure that is cut off: it keeps its length, so that its defect stays visible.
                return output + [length] + [UInt8](repeating: 0, count: left)
            }
            let value = redacted(content.rest(), type: AdvertisingDataType(rawValue: type), of: owner)
            output.append(UInt8(clamping: value.count + 1))
            output.append(type)
            output += value.prefix(254)
        }
        return output
    }

    private mutating func redacted(_ value: [UInt8], type: AdvertisingDataType, of owner: Owner) -> [UInt8] {
        if type.isName {
            return value.isEmpty ? [] : Array("(name \(names.number(of: String(decoding: value, as: UTF8.self))))".utf8)
        }
        var value = value
        switch type {
        case .publicTargetAddress, .randomTargetAddress:
            for place in stride(from: 0, to: value.count, by: 6) { maskAddress(in: &value, at: place, owner) }
        case .leDeviceAddress: maskAddress(in: &value, at: 0, owner)
        case .serviceData16Bit: maskServiceData(&value, owner)
        case .manufacturerSpecificData: maskManufacturerData(&value, owner)
        default: break
        }
        if let peer = owner.peer, let alias = owner.alias {
            let (own, new) = (peer.address.littleEndianBytes, alias.littleEndianBytes)
            value.replace(own, with: new)
            value.replace(own.reversed(), with: Array(new.reversed()))
        }
        for name in owner.names { Self.mask(name, in: &value) }
        return value
    }

    /// Replaces each letter of `name` by an x, in upper or lower case, also with two bytes for each or with a percent
    /// sign, as in a URI.
    private static func mask(_ name: [UInt8], in value: inout [UInt8]) {
        let text = String(decoding: name, as: UTF8.self)
        let wide = text.utf16.map { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
        let escaped = name.flatMap { isPlainInURI($0) ? [$0] : Array("%\(Hex.encode([$0]))".utf8) }
        for spelling in [name, wide.flatMap(\.self), wide.flatMap { $0.reversed() }, escaped] {
            let wanted = spelling.map(lowercase)
            var place = 0
            while place + wanted.count <= value.count, !wanted.isEmpty {
                guard value.dropFirst(place).prefix(wanted.count).elementsEqual(wanted, by: { lowercase($0) == $1 })
                else {
                    place += 1
                    continue
                }
                let mask = [UInt8](repeating: UInt8(ascii: "x"), count: wanted.count)
                value.replaceSubrange(place..<place + wanted.count, with: mask)
                place += wanted.count
            }
        }
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    /// Letters, digits and the marks that no URI has to escape.
    private static func isPlainInURI(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// ATC and pvvx begin with the address; MiBeacon and BTHome contain a flag for it.
    private mutating func maskServiceData(_ value: inout [UInt8], _ owner: Owner) {
        let control = value.dropFirst(2).first ?? 0
        switch value.prefix(2) {
        case [0x1A, 0x18] where value.count == 15: maskAddress(in: &value, at: 2, owner, isBigEndian: true)
        case [0x1A, 0x18] where value.count == 17: maskAddress(in: &value, at: 2, owner)
        case [0x95, 0xFE] where control & 0x10 != 0: maskAddress(in: &value, at: 7, owner)
        case [0xD2, 0xFC] where control & 0x02 != 0: maskAddress(in: &value, at: 3, owner)
        default: break
        }
    }

    /// A RuuviTag ends with its address; Microsoft's beacons have addresses and names at their ends.
    private mutating func maskManufacturerData(_ value: inout [UInt8], _ owner: Owner) {
        switch value.prefix(3) {
        case [0x99, 0x04, 0x05]: maskAddress(in: &value, at: 20, owner, isBigEndian: true)
        case [0x06, 0x00, 0x01] where (value.dropFirst(4).first ?? 0) & 1 != 0: erase(&value, from: 6)
        case [0x06, 0x00, 0x03]: erase(&value, from: 5)
        default: break
        }
    }

    private mutating func maskAddress(
        in value: inout [UInt8], at place: Int, _ owner: Owner, isBigEndian: Bool = false
    ) {
        let found = Array(value.dropFirst(place).prefix(6))
        guard found.count == 6 else { return }
        let bytes = isBigEndian ? found : found.reversed()
        let address = BluetoothAddress(rawValue: bytes.reduce(0) { $0 << 8 | UInt64($1) })
        let alias =
            address == owner.peer?.address ? owner.alias ?? address : alias(of: address, type: .public)
        let new = isBigEndian ? alias.littleEndianBytes.reversed() : alias.littleEndianBytes
        value = Array(value.prefix(place)) + new + value.dropFirst(place + 6)
    }

    private func erase(_ value: inout [UInt8], from place: Int) {
        value = value.prefix(place) + value.dropFirst(place).map { _ in UInt8(ascii: "x") }
    }

    // MARK: Addresses

    private mutating func alias(of address: BluetoothAddress, type: AddressType) -> BluetoothAddress {
        let number = UInt64(addresses.number(of: address.description)) & 0xFF_FFFF
        let kept: UInt64 = type.space == .public ? 0xFFFF_FF00_0000 : 0xC000_0000_0000
        return BluetoothAddress(rawValue: address.rawValue & kept | number)
    }
}

extension AdvertisingDataType {
    /// Whether the value is a name of the device.
    fileprivate var isName: Bool {
        [.shortenedLocalName, .completeLocalName, .broadcastName].contains(self)
    }
}
