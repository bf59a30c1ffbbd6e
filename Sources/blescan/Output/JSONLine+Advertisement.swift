import BLECore
import BLELinux
import BLEProfiles

// The keys of advertisements, the same in scan, replay and decode: where it came from, then what was advertised.
// Advertising data has only the keys of what was advertised, and always `structures`; a report has all its own keys,
// null if the event has no value. If a key can hold one value and the payload has several, the first one counts;
// `structures` has them all.

extension JSONLine {
    /// Creates the object for a decoded line of input; `line` is its number in the input.
    init(_ input: DecodedInput, line: Int? = nil) {
        // The failure that ends the command has it too.
        let code: [Member] = input.isDecoded ? [] : [Member(key: "code", value: .string(ExitStatus.badData.code))]
        let number = line.map { [Member(key: "line", value: .integer($0))] } ?? []
        self = .object(Self.members(of: input) + code + number)
    }

    private static func members(of input: DecodedInput) -> [Member] {
        let version = Member(key: "v", value: 1)
        switch input {
        case .payload(let data):
            return [version, Member(key: "hex", value: .string(Hex.encode(data.bytes)))] + members(of: data)
        case .event(let reports, let problem):
            let error = problem ?? reports.lazy.compactMap { $0.advertisingData.problem }.first
            var writer = JSONWriter()
            writer.array { writer in
                for report in reports { writer.report(report) }
            }
            let reports = Member(key: "reports", value: .rendered(writer.bytes))
            return [version, reports] + (error.map { [Member(key: "error", value: .string($0))] } ?? [])
        case .unreadable(let reason): return [version] + members(ofDefect: "not hexadecimal: \(reason)")
        case .tooLong(let length): return [version] + members(ofDefect: "too long: \(length)")
        }
    }

    /// Returns the members for a line that has no bytes.
    private static func members(ofDefect defect: String) -> [Member] {
        [Member(key: "structures", value: .array([])), Member(key: "error", value: .string(defect))]
    }

    /// Returns the members for advertising data.
    static func members(of data: AdvertisingData, from senders: [BluetoothAddress] = []) -> [Member] {
        var members: [Member] = []
        func add(_ key: String, _ value: JSONLine?) {
            if let value { members.append(Member(key: key, value: value)) }
        }
        add("flags", data.flags.map { .integer(Int($0.rawValue)) })
        add("localName", data.localName.map { .string($0.text) })
        add("shortName", data.shortenedLocalName.map { .string($0.text) })
        add("txPower", data.txPowerLevel.map { .integer(Int($0)) })
        add("appearance", data.appearance.map { .integer(Int($0)) })
        add("serviceUUIDs", list(data.serviceUUIDs))
        add("solicitedUUIDs", list(data.solicitedServiceUUIDs))
        add("serviceData", values(data.serviceData.map { ($0.service.description, $0.data) }))
        add(
            "manufacturerData",
            values(
                data.manufacturerData.map { (companyKey($0.company), $0.data) }))
        let meanings = SensorKeys.decoded(data, from: senders)
        add("decoded", meanings.isEmpty ? nil : .array(meanings.map(\.json)))
        add(
            "structures",
            .array(
                data.structures.map {
                    .array([.integer(Int($0.type.rawValue)), .string(Hex.encode($0.value))])
                }))
        add("error", data.problem.map { .string($0) })
        return members
    }

    /// Returns a company identifier as the output writes it: four digits.
    static func companyKey(_ company: UInt16) -> String {
        Hex.encode([UInt8(truncatingIfNeeded: company >> 8), UInt8(truncatingIfNeeded: company)])
    }

    private static func list(_ uuids: [BluetoothUUID]) -> JSONLine? {
        uuids.isEmpty ? nil : .array(uuids.map { .string($0.description) })
    }

    private static func values(_ values: [(key: String, data: [UInt8])]) -> JSONLine? {
        var members: [Member] = []
        for value in values where !members.contains(where: { $0.key == value.key }) {
            members.append(Member(key: value.key, value: .string(Hex.encode(value.data))))
        }
        return members.isEmpty ? nil : .object(members)
    }
}

extension JSONWriter {
    /// Writes the object of a report.
    mutating func report(_ report: AdvertisingReport) {
        object { writer in
            writer.member("address", orNull: report.address?.description)
            writer.member(
                "addressType", orNull: report.addressType.map { $0.space == .public ? "public" : "random" })
            writer.member("addressKind", orNull: report.peer?.kind.rawValue)
            writer.member("rssi", orNull: report.rssi.map(Int.init))
            writer.member("eventType", Int(report.eventType))
            writer.member("connectable", report.isConnectable)
            writer.member("scannable", report.isScannable)
            writer.member("primaryPHY", Int(report.primaryPHY.rawValue))
            writer.member("sid", orNull: report.sid.map(Int.init))
            writer.member("hex", hex: report.data)
            writer.rendered(Self.members(ofPayload: report.data, from: report.address))
        }
    }

    /// A payload, with the address of its sender if that matters.
    private struct Payload: Hashable {
        let sender: BluetoothAddress?
        let data: [UInt8]
    }

    /// The payloads that were written last: devices repeat the same ones.
    private static let payloads = Lock<[Payload: [UInt8]]>([:])
    static let mostPayloads = 1024

    /// Returns the members of advertising data: there is always one.
    private static func members(ofPayload data: [UInt8], from sender: BluetoothAddress?) -> [UInt8] {
        let payload = Payload(sender: SensorKeys.areThere ? sender : nil, data: data)
        if let known = payloads.withLock({ $0[payload] }) { return known }
        let senders = sender.map { [$0] } ?? []
        let object = JSONLine.object(JSONLine.members(of: AdvertisingData(data), from: senders)).bytes
        let bytes = Array(object.dropFirst().dropLast())
        payloads.withLock { payloads in
            if payloads.count >= mostPayloads { payloads.removeAll(keepingCapacity: true) }
            payloads[payload] = bytes
        }
        return bytes
    }
}

extension AdvertisingData {
    /// The defects of the data in one sentence.
    var problem: String? {
        let defects = defects
        return defects.isEmpty ? nil : defects.map(\.description).joined(separator: "; ")
    }
}
