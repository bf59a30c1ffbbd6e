extension AdvertisementData.Element {
    /// An iBeacon, Apple's proximity beacon; 27 bytes, so that there is room for flags and nothing else in a legacy
    /// advertisement.
    ///
    /// - Parameters:
    ///   - proximityUUID: The UUID that the owner's beacons share.
    ///   - major: The group number.
    ///   - minor: The beacon's number in its group.
    ///   - measuredPower: The expected signal strength at one metre, in dBm.
    public static func iBeacon(
        _ proximityUUID: BluetoothUUID, major: UInt16, minor: UInt16, measuredPower: Int8
    ) -> AdvertisementData.Element {
        var value = ByteWriter(reserving: 23)
        value.u8(0x02)
        value.u8(0x15)
        value.u64(proximityUUID.high.byteSwapped)
        value.u64(proximityUUID.low.byteSwapped)
        value.u16(major.byteSwapped)
        value.u16(minor.byteSwapped)
        value.i8(measuredPower)
        return .manufacturerData(value.bytes, company: 0x004C)
    }

    /// An Eddystone-UID frame, a beacon identifier, and the service that it belongs to; 28 bytes in all.
    ///
    /// - Parameters:
    ///   - namespace: The namespace of the owner's beacons, 10 bytes.
    ///   - instance: The beacon's identifier in the namespace, 6 bytes.
    ///   - txPower: The transmit power at 0 m, in dBm.
    /// - Throws: `Invalid.eddystoneIdentifier` for other numbers of bytes.
    public static func eddystoneUID(
        namespace: [UInt8], instance: [UInt8], txPower: Int8
    ) throws(AdvertisementData.Invalid) -> AdvertisementData.Element {
        guard namespace.count == 10, instance.count == 6 else {
            throw .eddystoneIdentifier(namespace: namespace.count, instance: instance.count)
        }
        return eddystone([0x00, UInt8(bitPattern: txPower)] + namespace + instance + [0, 0])
    }

    /// An Eddystone-URL frame, a link to a web page, and the service that it belongs to; 11 to 28 bytes in all.
    ///
    /// Common beginnings and endings of a URL, such as `https://www.` and `.com/`, take one byte each.
    ///
    /// - Parameters:
    ///   - url: A URL that begins with `http://` or `https://`, of printable ASCII characters without blanks.
    ///   - txPower: The transmit power at 0 m, in dBm.
    /// - Throws: `Invalid.eddystoneURL` for any other URL, and for one with more than 17 encoded bytes after its
    ///   scheme.
    public static func eddystoneURL(
        _ url: String, txPower: Int8
    ) throws(AdvertisementData.Invalid) -> AdvertisementData.Element {
        let text = Array(url.utf8)
        guard let scheme = urlSchemes.firstIndex(where: { text.starts(with: $0.utf8) }) else {
            throw .eddystoneURL(bytes: 0)
        }
        var rest = text.dropFirst(urlSchemes[scheme].utf8.count)
        var encoded: [UInt8] = []
        while let character = rest.first {
            // The forms with a slash come first: they are the longer ones.
            if let code = urlEndings.firstIndex(where: { rest.starts(with: $0.utf8) }) {
                encoded.append(UInt8(truncatingIfNeeded: code))
                rest = rest.dropFirst(urlEndings[code].utf8.count)
            } else {
                guard 0x21...0x7E ~= character else { throw .eddystoneURL(bytes: 0) }
                encoded.append(character)
                rest = rest.dropFirst()
            }
        }
        guard encoded.count <= eddystoneURLLimit else { throw .eddystoneURL(bytes: encoded.count) }
        return eddystone([0x10, UInt8(bitPattern: txPower), UInt8(truncatingIfNeeded: scheme)] + encoded)
    }

    /// An Eddystone-TLM frame, a beacon's telemetry, and the service that it belongs to; 22 bytes in all.
    ///
    /// - Parameters:
    ///   - batteryMillivolts: The battery voltage in millivolts, or `nil` if there is no battery.
    ///   - temperature: The temperature in degrees Celsius, sent in steps of 1/256, or `nil` if not measured.
    ///   - advertisementCount: The number of advertisements since power-on.
    ///   - uptime: The time since power-on, sent in steps of 0.1 s.
    /// - Throws: `Invalid.eddystoneTelemetry` if the temperature or the uptime is out of range.
    public static func eddystoneTLM(
        batteryMillivolts: UInt16?, temperature: Double?, advertisementCount: UInt32, uptime: Duration
    ) throws(AdvertisementData.Invalid) -> AdvertisementData.Element {
        var degrees: UInt16 = 0x8000
        if let temperature {
            let steps = (temperature * 256).rounded()
            guard steps > -32_768, steps < 32_768 else { throw .eddystoneTelemetry }
            degrees = UInt16(bitPattern: Int16(steps))
        }
        let tenths = uptime.saturatedNanoseconds / 100_000_000
        guard uptime >= .zero, let time = UInt32(exactly: tenths) else { throw .eddystoneTelemetry }
        var value = ByteWriter(reserving: 14)
        value.u8(0x20)
        value.u8(0x00)
        value.u16((batteryMillivolts ?? 0).byteSwapped)
        value.u16(degrees.byteSwapped)
        value.u32(advertisementCount.byteSwapped)
        value.u32(time.byteSwapped)
        return eddystone(value.bytes)
    }

    /// How many bytes of a URL fit after its scheme.
    static let eddystoneURLLimit = 17

    private static func eddystone(_ frame: [UInt8]) -> AdvertisementData.Element {
        let service: BluetoothUUID = 0xFEAA
        return AdvertisementData.Element(.beacon(service, structure(of: service, frame)))
    }

    /// By code; the first two are the longer forms of the others.
    private static let urlSchemes = ["http://www.", "https://www.", "http://", "https://"]

    /// By code.
    private static let urlEndings = [
        ".com/", ".org/", ".edu/", ".net/", ".info/", ".biz/", ".gov/", ".com", ".org", ".edu", ".net", ".info", ".biz",
        ".gov",
    ]
}
