public import BLECore

// Redaction changes the received data and not the output, so that no screen, log or format has to handle it: the
// address, the names, and every copy of them in the payloads.
//
// - An address keeps the part that identifies its kind: the manufacturer's three bytes if it is public, the two top
//   bits if it is random. The rest is a number, the same for the same device for as long as the redaction lives.
// - A name becomes "(name 1)", and the same name gets the same number. Where the format of a sensor's data is
//   recognized by the name, the model stays, as in "GVH5075_(name 1)": all devices of a kind have it, and without it
//   the measurements could not be decoded from what is left.
// - In manufacturer and service data, the fields that hold an address or a name in a known format are masked, and so
//   are the bytes of the device's own address or name at any position.
// - The lasting identifiers of beacons, trackers and accessories become numbers in fields of the same size, the same
//   for the same identifier. Those in an unknown format stay.

/// Removes from advertisements what identifies devices and their owners, so that they can be logged, sent or published.
///
/// Addresses, names and the lasting identifiers of beacons, Tile trackers and HomeKit accessories are replaced by
/// numbers, in the order of their first appearance. One value replaces the same device in the same way every time, so
/// that a reader can still follow each device. Measurements and services stay, and so does the model in the name of a
/// sensor whose data is recognized by it.
/// Data that a manufacturer has encrypted or encoded in an unknown way stays too, and may identify a device.
///
/// A value remembers up to 65,536 addresses, and as many names and identifiers.
public struct AdvertisementRedaction: Sendable {
    private var addresses = Aliases<BluetoothAddress>()
    private var names = Aliases<[UInt8]>()
    private var identifiers = Aliases<[UInt8]>()

    /// Creates a redaction that has not replaced anything yet.
    public init() {}

    /// Returns the same device with another address and name, and with payloads that no longer contain the original
    /// ones.
    ///
    /// Times, signal strengths and counts stay.
    public mutating func redacted(_ scanResult: ScanResult) -> ScanResult {
        let reports = [scanResult.advertisement, scanResult.scanResponse].compactMap { $0 }
        var owner = Owner(peer: scanResult.peer)
        owner.alias = scanResult.peer.map { alias(of: $0.address, type: $0.type) }
        owner.formats = scanResult.decoded.map(\.kind)
        for report in reports {
            for structure in report.advertisingData.structures where structure.type.isName {
                // Shorter ones occur in other data by chance.
                if structure.value.count > 2 { owner.add(structure.value) }
            }
        }
        let peer = scanResult.peer.map { PeerID(address: owner.alias ?? $0.address, type: $0.type) }
        let identity = scanResult.identity.map {
            PeerID(address: alias(of: $0.address, type: $0.type), type: $0.type)
        }
        return scanResult.replacing(peer: peer, identity: identity) { report in
            var report = report
            if report.address != nil { report.address = owner.alias }
            report.directAddress = report.directAddress.map { alias(of: $0, type: report.directAddressType ?? .random) }
            report.data = redacted(report.data, of: owner)
            return report
        }
    }

    /// The device that sent the payload.
    private struct Owner {
        let peer: PeerID?
        var alias: BluetoothAddress?
        /// The formats of the data, which may be recognized by the name.
        var formats: [DecodedAdvertisement.Kind] = []
        /// The names to mask, in all spellings, in small letters. A payload full of names does not make masking slow:
        /// beyond `nameLimit` they are replaced only where they are names.
        private(set) var spellings: [[UInt8]] = []
        private var names: Set<[UInt8]> = []

        private static let nameLimit = 4

        init(peer: PeerID?) {
            self.peer = peer
        }

        mutating func add(_ name: [UInt8]) {
            guard names.count < Self.nameLimit, names.insert(name).inserted else { return }
            spellings += AdvertisementRedaction.spellings(of: name)
        }
    }

    // MARK: Payloads

    private mutating func redacted(_ payload: [UInt8], of owner: Owner) -> [UInt8] {
        var output: [UInt8] = []
        var reader = ByteReader(payload.span)
        while let length = reader.u8() {
            let left = reader.remaining
            guard length > 0, let type = reader.u8(), var content = reader.take(Int(length) - 1) else {
                // The end, or a truncated structure: it keeps its length, so that it looks as malformed as it is.
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
        if type.isName { return redacted(name: value, of: owner) }
        var value = value
        switch type {
        case .publicTargetAddress, .randomTargetAddress:
            var place = 0
            while place < value.count {
                maskAddress(in: &value, at: place, type == .randomTargetAddress ? .random : .public, owner)
                place += 6
            }
        case .leDeviceAddress:
            // The lowest bit of the last byte is the type.
            let isRandom = value.dropFirst(6).first.map { $0 & 1 == 1 } ?? false
            maskAddress(in: &value, at: 0, isRandom ? .random : .public, owner)
        default: maskFields(in: &value, type, owner)
        }
        if let peer = owner.peer, let alias = owner.alias {
            let (own, new) = (peer.address.littleEndianBytes, alias.littleEndianBytes)
            Self.replace(own, with: new, in: &value)
            Self.replace(own.reversed(), with: new.reversed(), in: &value)
        }
        for spelling in owner.spellings { Self.mask(spelling, in: &value) }
        return value
    }

    private mutating func redacted(name: [UInt8], of owner: Owner) -> [UInt8] {
        guard !name.isEmpty else { return [] }
        let alias = "(name \(names.number(of: name)))"
        let masked = owner.formats.lazy.compactMap { $0.masked(name, as: alias) }.first
        return Array((masked ?? alias).utf8)
    }

    /// Masks the fields of the known formats.
    private mutating func maskFields(in value: inout [UInt8], _ type: AdvertisingDataType, _ owner: Owner) {
        let (start, fields) = Self.fields(value, type)
        for field in fields {
            switch field {
            case .address(let place, let isBigEndian):
                maskAddress(in: &value, at: start + place, .public, owner, isBigEndian: isBigEndian)
            case .rest(let place):
                let kept = value.prefix(start + place)
                value = kept + [UInt8](repeating: UInt8(ascii: "x"), count: value.count - kept.count)
            case .identifier(let place, let count):
                maskIdentifier(in: &value, at: start + place, count)
            }
        }
    }

    /// Returns the fields of a structure, and the position from which their offsets count.
    private static func fields(_ value: [UInt8], _ type: AdvertisingDataType) -> (Int, [IdentifyingField]) {
        var reader = ByteReader(value.span)
        if type == .manufacturerSpecificData {
            guard let company = reader.u16() else { return (0, []) }
            return (reader.offset, IdentifyingField.fields(company: company, reader.unread))
        }
        guard let size = type.serviceDataUUIDSize, let service = reader.uuid(size)?.short else { return (0, []) }
        return (reader.offset, IdentifyingField.fields(service: service, reader.unread))
    }

    private mutating func maskAddress(
        in value: inout [UInt8], at place: Int, _ type: AddressType, _ owner: Owner, isBigEndian: Bool = false
    ) {
        let found = [UInt8](value.dropFirst(place).prefix(6))
        guard found.count == 6 else { return }
        let bytes: [UInt8] = isBigEndian ? found : found.reversed()
        let address = BluetoothAddress(rawValue: bytes.reduce(0) { $0 << 8 | UInt64($1) })
        let alias =
            address == owner.peer?.address ? owner.alias ?? address : alias(of: address, type: type)
        let new: [UInt8] = isBigEndian ? alias.littleEndianBytes.reversed() : alias.littleEndianBytes
        value = value.prefix(place) + new + value.dropFirst(place + 6)
    }

    /// Replaces an identifier, also a truncated one, by its number, big-endian.
    private mutating func maskIdentifier(in value: inout [UInt8], at place: Int, _ count: Int) {
        let found = [UInt8](value.dropFirst(place).prefix(count))
        guard !found.isEmpty else { return }
        let number = identifiers.number(of: found)
        let new: [UInt8] = found.indices.map { UInt8(truncatingIfNeeded: number >> (8 * (found.count - 1 - $0))) }
        value = value.prefix(place) + new + value.dropFirst(place + found.count)
    }

    // MARK: Bytes

    /// Returns a name in lower case, as it is, in UTF-16 of both byte orders, and with percent signs as in a URI.
    private static func spellings(of name: [UInt8]) -> [[UInt8]] {
        let text = String(decoding: name, as: UTF8.self)
        let wide = text.utf16.map { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
        let escaped = name.flatMap { isPlainInURI($0) ? [$0] : [UInt8]("%\(Hex.encode([$0]))".utf8) }
        return [name, wide.flatMap { $0 }, wide.flatMap { $0.reversed() }, escaped].map { $0.map(lowercase) }
    }

    /// Replaces each byte of a spelling by an x, also if its letters are in upper case.
    private static func mask(_ spelling: [UInt8], in value: inout [UInt8]) {
        let mask = [UInt8](repeating: UInt8(ascii: "x"), count: spelling.count)
        replace(spelling, with: mask, in: &value, isSame: { lowercase($0) == $1 })
    }

    /// Replaces each occurrence of some bytes with the same number of others.
    private static func replace(
        _ wanted: [UInt8], with new: [UInt8], in value: inout [UInt8],
        isSame: (UInt8, UInt8) -> Bool = { $0 == $1 }
    ) {
        guard !wanted.isEmpty, wanted.count == new.count else { return }
        var place = 0
        while place + wanted.count <= value.count {
            guard value.dropFirst(place).prefix(wanted.count).elementsEqual(wanted, by: isSame) else {
                place += 1
                continue
            }
            value.replaceSubrange(place..<place + wanted.count, with: new)
            place += wanted.count
        }
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    /// Whether the byte is a letter, a digit or a mark that a URI does not have to escape.
    private static func isPlainInURI(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    // MARK: Addresses

    private mutating func alias(of address: BluetoothAddress, type: AddressType) -> BluetoothAddress {
        let number = UInt64(addresses.number(of: address)) & 0xFF_FFFF
        let kept: UInt64 = type.space == .public ? 0xFFFF_FF00_0000 : 0xC000_0000_0000
        return BluetoothAddress(rawValue: address.rawValue & kept | number)
    }
}

extension AdvertisingDataType {
    /// Whether the value is a name of the device.
    fileprivate var isName: Bool {
        self == .shortenedLocalName || self == .completeLocalName || self == .broadcastName
    }
}
