internal import BLECore

/// A device of the Xiaomi ecosystem.
///
///     service 0xFE95 | control 2 | product 2 | counter 1 | address 6 | capability 1 | input and output 1
///                    | object … | object …
///
///     service 0xFE95 | … encrypted objects … | counter, upper part 3 | message integrity check 4
///
/// The control bits select which parts follow the counter, and whether the objects are encrypted. Versions 4 and 5
/// encrypt them by AES-CCM; the nonce is the address, the product and both parts of the counter. Earlier versions,
/// which have no message integrity check, stay encrypted. Spec: Xiaomi IoT developer documentation, MiBeacon protocol.
enum MiBeacon {
    static func decode(_ value: inout ByteReader, _ keys: SenderKeys?) -> DecodedAdvertisement? {
        guard let control = value.u16(), control >> 12 >= 2, let product = value.u16(), let counter = value.u8() else {
            return nil
        }
        var address: BluetoothAddress?
        if control & 0x10 != 0 {
            guard let number = value.u48() else { return nil }
            address = BluetoothAddress(rawValue: number)
        }
        if control & 0x20 != 0 {
            guard let capability = value.u8() else { return nil }
            if capability & 0x20 != 0, !value.skip(1) { return nil }
        }
        let model = [UInt8(product >> 8), UInt8(product & 0xFF)]
        var encryption = DecodedAdvertisement.Encryption.none
        var list = FieldList()
        if control & 0x40 != 0, control & 0x08 == 0 {
            guard addObjects(&value, to: &list) else { return nil }
        } else if control & 0x40 != 0 {
            let start = Array(model.reversed()) + [counter]
            switch control >> 12 >= 4 ? open(&value, start, address, keys) : .noKey {
            case .noKey: encryption = .noKey
            case .wrongKey: encryption = .wrongKey
            case .opened(let plain):
                encryption = .decrypted
                var value = ByteReader(plain.span)
                guard addObjects(&value, to: &list) else { return nil }
            }
        }
        list.measured("counter", counter)
        let title = "Xiaomi " + (name(of: product) ?? "0x" + Hex.encode(model))
        return DecodedAdvertisement(.miBeacon, title, encryption, list.fields)
    }

    private static func addObjects(_ value: inout ByteReader, to list: inout FieldList) -> Bool {
        while !value.isAtEnd {
            guard let type = value.u16(), let length = value.u8(), var object = value.take(Int(length)) else {
                return false
            }
            for field in MiBeaconObject.fields(type, &object) { list.add(numbered: field) }
        }
        return true
    }

    /// Decrypts the objects; `start` are the bytes of the nonce before the upper part of the counter.
    private static func open(
        _ value: inout ByteReader, _ start: [UInt8], _ address: BluetoothAddress?, _ keys: SenderKeys?
    ) -> AdvertisementKeys.Opening {
        guard value.remaining > 7, let encrypted = value.array(value.remaining - 7), let upper = value.array(3) else {
            return .noKey
        }
        let tag = value.rest()
        return keys.open(as: address) { address, key in
            let nonce = address.littleEndianBytes + start + upper
            return EncryptedMessage(key: key, .ccm(nonce: nonce, associatedData: [0x11], tag: tag), encrypted)
        }
    }

    /// The most common products, by model number.
    private static func name(of product: UInt16) -> String? {
        switch product {
        case 0x0098: "HHCCJCY01"
        case 0x0153: "YLYK01YL"
        case 0x015D: "HHCCPOT002"
        case 0x01AA: "LYWSDCGQ"
        case 0x02DF: "JQJCY01YM"
        case 0x0347: "CGG1"
        case 0x0387: "MHO-C401"
        case 0x03BC: "GCLS002"
        case 0x03D6: "CGH1"
        case 0x03DD: "MUE4094RT"
        case 0x045B: "LYWSD02"
        case 0x04E1: "XMMF01JQD"
        case 0x055B: "LYWSD03MMC"
        case 0x0576: "CGD1"
        case 0x066F: "CGDK2"
        case 0x06D3: "MHO-C303"
        case 0x07F6: "MJYD02YL"
        case 0x0863: "SJWS01LM"
        case 0x098B: "MCCGQ02HL"
        case 0x0997: "JTYJGD03MI"
        case 0x0A8D: "RTCGQ02LM"
        case 0x0B48: "CGG1"
        case 0x1203: "XMWSDJ04MMC"
        case 0x2832, 0x4C47: "MJWSD05MMC"
        default: nil
        }
    }
}
