internal import BLECore

/// A device of Victron Energy with instant readout.
///
///     company 0x02E1 | 10 | … 1 | model 2 | record 1 | counter 2 | first byte of the key 1 | encrypted record …
///
/// The record is encrypted by AES in counter mode, from a block that begins with the counter. There is no message
/// check: a wrong key is recognized by its first byte alone.
/// Spec: Victron Energy, Extra Manufacturer Data, 2022-12-14.
enum Victron {
    static func decode(_ value: inout ByteReader, _ keys: SenderKeys?) -> DecodedAdvertisement? {
        guard value.u8() == 0x10, value.skip(1), let model = value.u16() else { return nil }
        let digits = Hex.encode([UInt8(model >> 8), UInt8(model & 0xFF)])
        let title = "Victron " + (name(of: model) ?? "0x" + digits)
        // In between, a device advertises its model alone.
        guard let record = value.u8() else { return DecodedAdvertisement(.victron, title) }
        guard let counter = value.u16(), let check = value.u8() else { return nil }
        var list = FieldList()
        list.add("record", word: VictronRecord(rawValue: record)?.word ?? "record \(record)")
        let encrypted = value.rest()
        guard let known = VictronRecord(rawValue: record), !encrypted.isEmpty, encrypted.count <= 16 else {
            return DecodedAdvertisement(.victron, title, .noKey, list.fields)
        }
        let opening = keys.open { _, key in
            guard key.withBytes({ $0[0] }) == check else { return nil }
            let block = [UInt8(truncatingIfNeeded: counter), UInt8(counter >> 8)] + [UInt8](repeating: 0, count: 14)
            return EncryptedMessage(key: key, .counter(block: block), encrypted)
        }
        switch opening {
        case .noKey: return DecodedAdvertisement(.victron, title, .noKey, list.fields)
        case .wrongKey: return DecodedAdvertisement(.victron, title, .wrongKey, list.fields)
        case .opened(let plain):
            var bits = BitReader(plain)
            // What does not fit the layout was not encrypted with this key.
            guard known.add(&bits, to: &list) else {
                return DecodedAdvertisement(.victron, title, .wrongKey, list.fields)
            }
            return DecodedAdvertisement(.victron, title, .decrypted, list.fields)
        }
    }

    /// The most common products.
    private static func name(of model: UInt16) -> String? {
        switch model {
        case 0x2780: "MultiPlus-II 12/3000/120-50 2x120V"
        case 0xA042: "BlueSolar MPPT 75/15"
        case 0xA043: "BlueSolar MPPT 100/15"
        case 0xA04C: "BlueSolar MPPT 75/10"
        case 0xA053: "SmartSolar MPPT 75/15"
        case 0xA054: "SmartSolar MPPT 75/10"
        case 0xA055: "SmartSolar MPPT 100/15"
        case 0xA056: "SmartSolar MPPT 100/30"
        case 0xA057: "SmartSolar MPPT 100/50"
        case 0xA05F: "SmartSolar MPPT 100/20"
        case 0xA060: "SmartSolar MPPT 100/20 48V"
        case 0xA330: "Blue Smart IP22 Charger 12/30"
        case 0xA381: "BMV-712 Smart"
        case 0xA383: "BMV-712 Smart"
        case 0xA389: "SmartShunt 500A/50mV"
        case 0xA38A: "SmartShunt 1000A/50mV"
        case 0xA38B: "SmartShunt 2000A/50mV"
        case 0xA3A4, 0xA3A5: "Smart Battery Sense"
        case 0xA3B0: "Smart BatteryProtect 12/24V-65A"
        case 0xA3C0: "Orion Smart 12V/12V-18A"
        case 0xA3C8: "Orion Smart 12V/12V-30A"
        default: nil
        }
    }
}

/// The kinds of records whose layout is read here.
enum VictronRecord: UInt8 {
    case solarCharger = 0x01
    case batteryMonitor = 0x02
    case converter = 0x04
    case charger = 0x08
    case batteryProtect = 0x09
    case veBus = 0x0C
    case energyMeter = 0x0D

    var word: String {
        switch self {
        case .solarCharger: "solar charger"
        case .batteryMonitor: "battery monitor"
        case .converter: "DC/DC converter"
        case .charger: "AC charger"
        case .batteryProtect: "battery protect"
        case .veBus: "VE.Bus"
        case .energyMeter: "DC energy meter"
        }
    }

    /// The length of the part that every version has, in bits.
    private var width: Int {
        switch self {
        case .solarCharger: 89
        case .batteryMonitor: 118
        case .converter: 80
        case .charger: 104
        case .batteryProtect: 120
        case .veBus: 102
        case .energyMeter: 88
        }
    }

    /// Adds the record's fields; returns false if it is too short.
    func add(_ bits: inout BitReader, to list: inout FieldList) -> Bool {
        guard bits.has(width) else { return false }
        switch self {
        case .solarCharger: Self.addSolarCharger(&bits, to: &list)
        case .batteryMonitor: Self.addBatteryMonitor(&bits, to: &list)
        case .converter: Self.addConverter(&bits, to: &list)
        case .charger: Self.addCharger(&bits, to: &list)
        case .batteryProtect: Self.addBatteryProtect(&bits, to: &list)
        case .veBus: Self.addVEBus(&bits, to: &list)
        case .energyMeter: Self.addEnergyMeter(&bits, to: &list)
        }
        return true
    }

    private static func addSolarCharger(_ bits: inout BitReader, to list: inout FieldList) {
        addState(&bits, to: &list)
        list.measured("voltage", bits.knownSigned(16), exponent: -2, "V")
        list.measured("current", bits.knownSigned(16), exponent: -1, "A")
        list.measured("yield today", bits.known(16), exponent: -2, "kWh")
        list.measured("solar power", bits.known(16), "W")
        if let load = bits.known(9) { list.measured("load", load, exponent: -1, "A") }
    }

    private static func addBatteryMonitor(_ bits: inout BitReader, to list: inout FieldList) {
        let minutes = bits.known(16)
        let voltage = bits.knownSigned(16)
        let alarm = bits.unsigned(16) ?? 0
        let auxiliary = bits.unsigned(16) ?? 0
        let mode = bits.unsigned(2) ?? 3
        let current = bits.knownSigned(22)
        let consumed = bits.known(20).map { 0 - Int32(bitPattern: $0) }
        list.measured("battery", bits.known(10), exponent: -1, "%")
        list.measured("voltage", voltage, exponent: -2, "V")
        list.measured("current", current, exponent: -3, "A")
        list.measured("consumed", consumed, exponent: -1, "Ah")
        if let minutes { list.measured("time to go", minutes, "min") }
        addAuxiliary(auxiliary, mode, to: &list)
        addBits("alarm", alarm, to: &list)
    }

    private static func addConverter(_ bits: inout BitReader, to list: inout FieldList) {
        addState(&bits, to: &list)
        list.measured("input voltage", bits.known(16), exponent: -2, "V")
        list.measured("output voltage", bits.knownSigned(16), exponent: -2, "V")
        addBits("off reason", bits.unsigned(32) ?? 0, to: &list)
    }

    private static func addCharger(_ bits: inout BitReader, to list: inout FieldList) {
        addState(&bits, to: &list)
        for number in 1...3 {
            let (voltage, current) = (bits.known(13), bits.known(11))
            let end = number == 1 ? "" : " \(number)"
            // Most have one output.
            guard number == 1 || voltage != nil || current != nil else { continue }
            list.measured("voltage" + end, voltage, exponent: -2, "V")
            list.measured("current" + end, current, exponent: -1, "A")
        }
        if let temperature = bits.known(7) { list.measured("temperature", Int32(bitPattern: temperature) - 40, "°C") }
        if let current = bits.known(9) { list.measured("ac current", current, exponent: -1, "A") }
    }

    private static func addBatteryProtect(_ bits: inout BitReader, to list: inout FieldList) {
        let state = bits.known(8)
        let output = bits.known(8)
        if let state { list.add("state", word: word(forState: state)) }
        if let output { list.add("output", word: output == 1 ? "output on" : output == 4 ? "output off" : nil) }
        addError(bits.known(8), to: &list)
        addBits("alarm", bits.unsigned(16) ?? 0, to: &list)
        addBits("warning", bits.unsigned(16) ?? 0, to: &list)
        list.measured("input voltage", bits.knownSigned(16), exponent: -2, "V")
        list.measured("output voltage", bits.known(16), exponent: -2, "V")
        addBits("off reason", bits.unsigned(32) ?? 0, to: &list)
    }

    private static func addVEBus(_ bits: inout BitReader, to list: inout FieldList) {
        addState(&bits, to: &list)
        let current = bits.knownSigned(16)
        list.measured("voltage", bits.known(14), exponent: -2, "V")
        list.measured("current", current, exponent: -1, "A")
        switch bits.unsigned(2) {
        case 0: list.add("ac input", word: "AC input 1")
        case 1: list.add("ac input", word: "AC input 2")
        case 2: list.add("ac input", word: "no AC input")
        default: break
        }
        list.measured("ac input power", bits.knownSigned(19), "W")
        list.measured("ac output power", bits.knownSigned(19), "W")
        switch bits.unsigned(2) {
        case 1: list.add("alarm", word: "warning")
        case 2: list.add("alarm", word: "alarm")
        default: break
        }
        if let temperature = bits.known(7) { list.measured("temperature", Int32(bitPattern: temperature) - 40, "°C") }
        if let charge = bits.known(7) { list.measured("battery", charge, "%") }
    }

    private static func addEnergyMeter(_ bits: inout BitReader, to list: inout FieldList) {
        let kind = Int16(truncatingIfNeeded: bits.unsigned(16) ?? 0)
        let voltage = bits.knownSigned(16)
        let alarm = bits.unsigned(16) ?? 0
        let auxiliary = bits.unsigned(16) ?? 0
        let mode = bits.unsigned(2) ?? 3
        list.measured("meter", kind)
        list.measured("voltage", voltage, exponent: -2, "V")
        list.measured("current", bits.knownSigned(22), exponent: -3, "A")
        // It has no midpoint.
        if mode != 1 { addAuxiliary(auxiliary, mode, to: &list) }
        addBits("alarm", alarm, to: &list)
    }

    /// Adds what the auxiliary input measures, by its mode.
    private static func addAuxiliary(_ value: UInt32, _ mode: UInt32, to list: inout FieldList) {
        switch mode {
        case 0:
            let known = value == 0x7FFF ? nil : Int16(truncatingIfNeeded: value)
            list.measured("starter voltage", known, exponent: -2, "V")
        case 1: list.measured("midpoint voltage", value == 0xFFFF ? nil : value, exponent: -2, "V")
        case 2:
            // In hundredths of a kelvin.
            let known = value == 0xFFFF ? nil : Int32(bitPattern: value) - 27_315
            list.measured("temperature", known, exponent: -2, "°C")
        default: break
        }
    }

    private static func addState(_ bits: inout BitReader, to list: inout FieldList) {
        if let state = bits.known(8) { list.add("state", word: word(forState: state)) }
        addError(bits.known(8), to: &list)
    }

    private static func addError(_ number: UInt32?, to list: inout FieldList) {
        if let number, number != 0 { list.measured("error", number) }
    }

    private static func addBits(_ name: String, _ bits: UInt32, to list: inout FieldList) {
        if bits != 0 { list.add(ValueField(name, .text("0x" + String(bits, radix: 16)))) }
    }

    private static func word(forState state: UInt32) -> String {
        switch state {
        case 0: "off"
        case 1: "low power"
        case 2: "fault"
        case 3: "bulk"
        case 4: "absorption"
        case 5: "float"
        case 6: "storage"
        case 7: "equalize"
        case 9: "inverting"
        case 11: "power supply"
        case 245: "starting up"
        case 246: "repeated absorption"
        case 247: "recondition"
        case 248: "battery safe"
        case 249: "active"
        case 252: "external control"
        default: "state \(state)"
        }
    }
}
