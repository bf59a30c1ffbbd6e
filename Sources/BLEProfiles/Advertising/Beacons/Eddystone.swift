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

/// An Eddystone-UID frame: a beacon identifier.
///
///     00 | power 1 | namespace 10 | instance 6 | reserved 2, often missing
public struct EddystoneUID: Hashable, Sendable {
    /// The transmit power at 0 m, in dBm; the expected signal strength at one metre is 41 dB lower.
    public let txPower: Int8
    /// The namespace of the owner's beacons, 10 bytes.
    public let namespace: [UInt8]
    /// The beacon's identifier in the namespace, 6 bytes.
    public let instance: [UInt8]

    init?(_ value: inout ByteReader) {
        guard let power = value.i8(), let namespace = value.array(10), let instance = value.array(6) else { return nil }
        self.txPower = power
        self.namespace = namespace
        self.instance = instance
    }
}

/// An Eddystone-EID frame: an ephemeral identifier that only key holders can resolve.
///
///     30 | power 1 | identifier 8
public struct EddystoneEID: Hashable, Sendable {
    /// The transmit power at 0 m, in dBm; the expected signal strength at one metre is 41 dB lower.
    public let txPower: Int8
    /// The identifier, 8 bytes; changes every few minutes.
    public let identifier: [UInt8]

    init?(_ value: inout ByteReader) {
        guard let power = value.i8(), let identifier = value.array(8) else { return nil }
        self.txPower = power
        self.identifier = identifier
    }
}
