internal import BLECore

/// A sensor that uses the open BTHome format, version 2.
///
///     service 0xFCD2 | version 3 bits, on events only 1 bit, address follows 1 bit, encrypted 1 bit
///                    | address 6 | object 1 | value … | object 1 | value …
///     service 0xFCD2 | …, encrypted | address 6 | encrypted objects … | counter 4 | message integrity check 4
///
/// Objects are sorted by number, so that a reader can stop at the first unknown one. They are encrypted by AES-CCM; the
/// nonce is the address, the service, the first byte and the counter.
/// Spec: bthome.io, format v2; Encryption.
enum BTHome {
    static func decode(_ value: inout ByteReader, _ keys: SenderKeys?) -> DecodedAdvertisement? {
        guard let information = value.u8(), information >> 5 == 2 else { return nil }
        var address: BluetoothAddress?
        if information & 2 != 0 {
            guard let number = value.u48() else { return nil }
            address = BluetoothAddress(rawValue: number)
        }
        if information & 1 == 0 { return objects(&value).map { DecodedAdvertisement(.btHome, "BTHome", $0.fields) } }
        guard value.remaining >= 8, let encrypted = value.array(value.remaining - 8), let counter = value.array(4)
        else {
            return DecodedAdvertisement(.btHome, "BTHome", .noKey)
        }
        let tag = value.rest()
        let opening = keys.open(as: address) { address, key in
            let nonce = address.littleEndianBytes.reversed() + [0xD2, 0xFC, information] + counter
            return EncryptedMessage(key: key, .ccm(nonce: nonce, associatedData: [], tag: tag), encrypted)
        }
        switch opening {
        case .noKey: return DecodedAdvertisement(.btHome, "BTHome", .noKey)
        case .wrongKey: return DecodedAdvertisement(.btHome, "BTHome", .wrongKey)
        case .opened(let plain):
            var value = ByteReader(plain.span)
            return objects(&value).map { DecodedAdvertisement(.btHome, "BTHome", .decrypted, $0.fields) }
        }
    }

    private static func objects(_ value: inout ByteReader) -> FieldList? {
        var list = FieldList()
        while let identifier = value.u8() {
            guard let object = BTHomeObject(identifier) else { break }
            guard let field = object.field(&value) else { return nil }
            list.add(numbered: field)
        }
        return list
    }
}
