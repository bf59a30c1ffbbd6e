internal import BLECore

/// An Eddystone-TLM frame: beacon telemetry.
///
///     20 00 | battery 2 | temperature 2 | advertisements 4 | uptime 4        all big-endian
public struct EddystoneTLM: Hashable, Sendable {
    /// The battery voltage in millivolts, or `nil` if the beacon is not battery powered.
    public let batteryMillivolts: UInt16?
    /// The temperature in degrees Celsius, in steps of 1/256, or `nil` if not measured.
    public let temperature: Double?
    /// The number of advertisements sent since power-on.
    public let advertisementCount: UInt32
    /// The time since power-on, in steps of 0.1 s.
    public let uptime: Duration

    init?(_ value: inout ByteReader) {
        guard let battery = value.u16()?.byteSwapped, let temperature = value.u16()?.byteSwapped,
            let count = value.u32()?.byteSwapped, let uptime = value.u32()?.byteSwapped
        else { return nil }
        self.batteryMillivolts = battery == 0 ? nil : battery
        self.temperature = temperature == 0x8000 ? nil : Double(Int16(bitPattern: temperature)) / 256
        self.advertisementCount = count
        self.uptime = .milliseconds(Int64(uptime) * 100)
    }
}

/// An encrypted Eddystone-TLM frame: telemetry that only key holders can read.
///
///     20 01 | encrypted telemetry 12 | salt 2 | message check 2
public struct EddystoneEncryptedTLM: Hashable, Sendable {
    /// The encrypted telemetry.
    public let payload: [UInt8]
    /// The salt; big-endian on air.
    public let salt: UInt16
    /// The message integrity check; big-endian on air.
    public let messageCheck: UInt16

    init?(_ value: inout ByteReader) {
        guard let payload = value.array(12), let salt = value.u16(), let check = value.u16() else { return nil }
        self.payload = payload
        self.salt = salt.byteSwapped
        self.messageCheck = check.byteSwapped
    }
}
