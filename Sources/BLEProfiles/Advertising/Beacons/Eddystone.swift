public import BLECore

/// A frame of Eddystone, Google's open beacon format, carried as service data of 0xFEAA.
public enum Eddystone: Hashable, Sendable {
    /// A beacon identifier.
    case uid(EddystoneUID)
    /// A URL.
    case url(EddystoneURL)
    /// Beacon telemetry.
    case telemetry(EddystoneTLM)
    /// Beacon telemetry that only key holders can read.
    case encryptedTelemetry(EddystoneEncryptedTLM)
    /// An ephemeral identifier that only key holders can resolve.
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
