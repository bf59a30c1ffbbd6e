import BLECore

/// An iBeacon on the command line, `UUID/major/minor`.
struct IBeaconArgument: Hashable, Sendable {
    let uuid: BluetoothUUID
    let major: UInt16
    let minor: UInt16

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let uuid = BluetoothUUID(String(parts[0])), uuid.short == nil,
            let major = UInt16(parts[1]), let minor = UInt16(parts[2])
        else { throw BadValue(description: "write a UUID of 32 digits and two numbers: UUID/1/7.") }
        self.uuid = uuid
        self.major = major
        self.minor = minor
    }

    /// Returns the beacon; without a power, with -59 dBm at 1 m.
    func element(measuredPower: Int8?) -> AdvertisementData.Element {
        .iBeacon(uuid, major: major, minor: minor, measuredPower: measuredPower ?? -59)
    }
}

/// An Eddystone frame on the command line.
enum EddystoneArgument: Hashable, Sendable {
    case url(address: String)
    case identifier(namespace: [UInt8], instance: [UInt8])
    case telemetry(millivolts: UInt16?, celsius: Double?, advertisements: UInt32, uptime: Duration)

    /// The lowest power that a frame may state, in dBm.
    ///
    /// Spec: Eddystone, Eddystone-UID, Tx Power.
    static let lowestPower: Int8 = -100

    /// Parses a web address.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    static func parseURL(_ argument: String) throws(BadValue) -> EddystoneArgument {
        try checked(.url(address: argument), "give a short address that begins with http:// or https://.")
    }

    /// Parses `namespace/instance`.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    static func parseIdentifier(_ argument: String) throws(BadValue) -> EddystoneArgument {
        let example = "8b0ca750095477cb3e77/000000000007"
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let namespace = try? Hex.decode(parts[0]), let instance = try? Hex.decode(parts[1])
        else {
            throw BadValue(description: "write a namespace and an instance in hexadecimal: \(example).")
        }
        return try checked(
            .identifier(namespace: namespace, instance: instance), "write 20 and 12 hexadecimal digits: \(example).")
    }

    /// Parses `millivolts/celsius`, with or without `/advertisements/seconds`.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    static func parseTelemetry(_ argument: String) throws(BadValue) -> EddystoneArgument {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 || parts.count == 4 else {
            throw BadValue(
                description: "write the millivolts and the degrees Celsius, - for what is not measured, and then the "
                    + "advertisements and the seconds since power-on: 2950/21.5, or -/21.5/1000/3600.")
        }
        let millivolts: UInt16? = parts[0] == "-" ? nil : try number(parts[0], "the millivolts")
        var celsius: Double?
        if parts[1] != "-" {
            guard let degrees = Double(parts[1]) else {
                throw BadValue(description: "the degrees Celsius are a number such as 21.5, or -.")
            }
            celsius = degrees
        }
        let advertisements: UInt32 = parts.count == 4 ? try number(parts[2], "the advertisements") : 0
        let seconds: UInt32 = parts.count == 4 ? try number(parts[3], "the seconds") : 0
        return try checked(
            .telemetry(
                millivolts: millivolts, celsius: celsius, advertisements: advertisements, uptime: .seconds(seconds)),
            "write for example 2950/21.5/1000/3600.")
    }

    /// Whether the frame states a power.
    var statesPower: Bool {
        if case .telemetry = self { return false }
        return true
    }

    /// Returns the frame; without a power, with -20 dBm at 0 m.
    ///
    /// - Throws: Nothing for a frame that was parsed.
    func element(power: Int8?) throws(AdvertisementData.Invalid) -> AdvertisementData.Element {
        let power = power ?? -20
        return switch self {
        case .url(let address): try .eddystoneURL(address, txPower: power)
        case .identifier(let namespace, let instance):
            try .eddystoneUID(namespace: namespace, instance: instance, txPower: power)
        case .telemetry(let millivolts, let celsius, let advertisements, let uptime):
            try .eddystoneTLM(
                batteryMillivolts: millivolts, temperature: celsius, advertisementCount: advertisements, uptime: uptime)
        }
    }

    private static func checked(_ frame: EddystoneArgument, _ advice: String) throws(BadValue) -> EddystoneArgument {
        do throws(AdvertisementData.Invalid) {
            _ = try frame.element(power: nil)
        } catch {
            throw BadValue(description: "\(error); \(advice)")
        }
        return frame
    }

    private static func number<Number: FixedWidthInteger>(_ text: String, _ name: String) throws(BadValue) -> Number {
        guard let number = Number(text) else {
            throw BadValue(description: "\(name) are a number from 0 to \(Number.max).")
        }
        return number
    }
}

/// A beacon's power on the command line, in dBm.
enum MeasuredPowerArgument {
    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    static func parse(_ text: String) throws(BadValue) -> Int8 {
        guard let power = Int8(text), -127...20 ~= power else {
            throw BadValue(description: "it takes dBm from -127 to 20.")
        }
        return power
    }
}
