/// A frame of Google's open beacon format, carried as service data of 0xFEAA.
public enum Eddystone: Hashable, Sendable {
    /// Names a beacon.
    case uid(EddystoneUID)
    /// Points to a web page.
    case url(EddystoneURL)
    /// Says how the beacon is doing.
    case telemetry(EddystoneTLM)
    /// Says how the beacon is doing, to holders of its key only.
    case encryptedTelemetry(EddystoneEncryptedTLM)
    /// Names a beacon, to holders of its key only.
    case ephemeral(EddystoneEID)

    /// The service whose data carries the frames.
    public static let service = BluetoothUUID(0xFEAA as UInt16)

    init?(_ value: inout ByteReader) {
        switch value.u8() {
        case 0x00:
            guard let frame = EddystoneUID(&value) else { return nil }
            self = .uid(frame)
        case 0x10:
            guard let frame = EddystoneURL(&value) else { return nil }
            self = .url(frame)
        case 0x20:
            switch value.u8() {
            case 0x00:
                guard let frame = EddystoneTLM(&value) else { return nil }
                self = .telemetry(frame)
            case 0x01:
                guard let frame = EddystoneEncryptedTLM(&value) else { return nil }
                self = .encryptedTelemetry(frame)
            default: return nil
            }
        case 0x30:
            guard let frame = EddystoneEID(&value) else { return nil }
            self = .ephemeral(frame)
        default: return nil
        }
    }
}

extension AdvertisingData {
    /// The payload as an Eddystone frame.
    public var eddystone: Eddystone? {
        withServiceData(of: Eddystone.service) { Eddystone(&$0) }
    }
}
