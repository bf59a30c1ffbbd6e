import BLECore

/// What a value says, for the few kinds that every device has. The bytes are always shown too.
enum Meaning {
    /// A short text, or `nil` when the bytes are all there is to say.
    static func text(of value: [UInt8], uuid: BluetoothUUID?) -> String? {
        switch uuid {
        case 0x2A19 where value.count == 1: "\(value.first ?? 0) %"
        case 0x2A01 where value.count == 2:
            AssignedNumbers.appearanceName(number(value))
        case 0x2A04: connectionParameters(value)
        case 0x2A37: heartRate(value)
        case 0x2A38: bodySensorLocation(value)
        case 0x2A50: productIdentity(value)
        case 0x2A6E where value.count == 2: hundredths(Int(Int16(bitPattern: number(value)))) + " °C"
        case 0x2A6F where value.count == 2: hundredths(Int(number(value))) + " %"
        case 0x2902 where value.count == 2: configuration(number(value))
        default: quoted(value)
        }
    }

    /// The same for programs: a number where the value is one, text where it is text.
    static func json(of value: [UInt8], uuid: BluetoothUUID?) -> JSONLine? {
        switch uuid {
        case 0x2A19 where value.count == 1: value.first.map { .integer(Int($0)) }
        case 0x2A01 where value.count == 2: .integer(Int(number(value)))
        default: Self.string(value).map { .string($0) }
        }
    }

    private static func number(_ value: [UInt8]) -> UInt16 {
        value.reversed().reduce(0) { $0 << 8 | UInt16($1) }
    }

    private static func quoted(_ value: [UInt8]) -> String? {
        string(value).map { "\"\($0)\"" }
    }

    /// The value as text, when it is some: at least two bytes, all of them printable UTF-8.
    private static func string(_ value: [UInt8]) -> String? {
        guard value.count >= 2, let text = String(validating: value, as: UTF8.self) else { return nil }
        return text.printable == text ? text : nil
    }

    private static func hundredths(_ number: Int) -> String {
        let (sign, size) = (number < 0 ? "-" : "", number.magnitude)
        return "\(sign)\(size / 100).\(size % 100 / 10)\(size % 10)"
    }

    /// Two bytes of `value`, low byte first.
    private static func number(_ value: [UInt8], at offset: Int) -> UInt16 {
        number(Array(value.dropFirst(offset).prefix(2)))
    }

    /// Interval in 1.25 ms, how many the device may sleep through, time-out in 10 ms; 0xffff where it does not care.
    ///
    /// Spec: Peripheral Preferred Connection Parameters, Core Vol 3 Part C, 12.3.
    private static func connectionParameters(_ value: [UInt8]) -> String? {
        guard value.count == 8 else { return nil }
        let intervals = [number(value, at: 0), number(value, at: 2)].map { steps in
            steps == 0xFFFF ? "any" : hundredths(Int(steps) * 125) + " ms"
        }
        let timeout = number(value, at: 6)
        let limit = timeout == 0xFFFF ? "any time-out" : "time-out \(Int(timeout) * 10) ms"
        return "interval \(intervals[0]) to \(intervals[1]), latency \(number(value, at: 4)), \(limit)"
    }

    /// Whose vendor number it is, then vendor, product and version.
    ///
    /// Spec: PnP ID, Device Information Service 1.2, 3.9.
    private static func productIdentity(_ value: [UInt8]) -> String? {
        guard value.count == 7, let source = value.first, source == 1 || source == 2 else { return nil }
        let numbers = stride(from: 1, to: 7, by: 2).map { number(value, at: $0) }
        let name = source == 1 ? AssignedNumbers.companyName(numbers[0]) : nil
        let digits = numbers.map { "0x" + Hex.encode([UInt8($0 >> 8), UInt8($0 & 0xFF)]) }
        let vendor = "\(source == 1 ? "company" : "USB vendor") \(digits[0])\(name.map { " " + $0 } ?? "")"
        return "\(vendor), product \(digits[1]), version \(digits[2])"
    }

    private static func configuration(_ bits: UInt16) -> String {
        switch bits {
        case 0: "off"
        case 1: "notifications on"
        case 2: "indications on"
        default: "both on"
        }
    }

    /// Spec: Body Sensor Location, Heart Rate Service 1.0, 3.2.
    private static func bodySensorLocation(_ value: [UInt8]) -> String? {
        let names = ["other", "chest", "wrist", "finger", "hand", "ear lobe", "foot"]
        guard value.count == 1, let index = value.first, index < names.count else { return nil }
        return names[Int(index)]
    }

    /// Flags, then the rate in one or two bytes, the energy in two if flagged, and RR intervals of 1/1024 s.
    ///
    /// Spec: Heart Rate Measurement, Heart Rate Service 1.0, 3.1.
    private static func heartRate(_ value: [UInt8]) -> String? {
        var bytes = value[...]
        func next(_ count: Int) -> UInt16? {
            guard bytes.count >= count else { return nil }
            defer { bytes = bytes.dropFirst(count) }
            return bytes.prefix(count).reversed().reduce(0) { $0 << 8 | UInt16($1) }
        }
        guard let flags = next(1), let rate = next(flags & 1 == 0 ? 1 : 2) else { return nil }
        var text = "heart rate \(rate) bpm"
        if flags & 0b100 != 0 { text += flags & 0b10 != 0 ? ", skin contact" : ", no skin contact" }
        if flags & 0b1000 != 0 {
            guard let energy = next(2) else { return nil }
            text += ", \(energy) kJ"
        }
        guard flags & 0b1_0000 != 0 else { return text }
        while let interval = next(2) {
            let thousandths = (Int(interval) * 1000 + 512) / 1024
            let digits = String(thousandths % 1000)
            text += ", RR \(thousandths / 1000)." + String(repeating: "0", count: 3 - digits.count) + digits + " s"
        }
        return text
    }
}
