import BLECore
import BLEProfiles

/// What a device advertises, in words: measurements first, then other decoded data, at last UUIDs.
///
/// Many devices alternate between several advertisements. What one of them contained stays while the others are heard,
/// so that the words are steady.
struct DeviceData: Sendable {
    private struct Entry {
        let kind: String
        let text: String
        let rank: Rank
        var lastSeen: BootInstant
        /// The decoded data if it has a measurement.
        var measurement: DecodedAdvertisement?
    }

    /// The order of entries.
    private enum Rank: Int, Comparable {
        case measurement, decoded, beacon, unknown

        static func < (left: Rank, right: Rank) -> Bool { left.rawValue < right.rawValue }
    }

    /// The time for which an entry stays that is not repeated.
    private static let staysFor: Duration = .seconds(60)
    /// The number of entries of a device.
    private static let limit = 4

    private var entries: [Entry] = []
    /// The kinds of entries in the newest report.
    private var current: Set<String> = []
    private var services: [BluetoothUUID] = []
    private var isConnectable = false

    init(_ scanResult: ScanResult) {
        take(scanResult)
    }

    /// Adds what a newer report contains.
    mutating func take(_ scanResult: ScanResult) {
        let now = scanResult.lastSeen
        services = scanResult.serviceUUIDs
        isConnectable = scanResult.isConnectable
        entries.removeAll { now - $0.lastSeen > Self.staysFor }
        current = []
        let payload = scanResult.payload
        payload.forEachStructure { type, value in
            guard let entry = Self.entry(type, value, in: payload, from: scanResult.senders, at: now) else { return }
            current.insert(entry.kind)
            if let place = entries.firstIndex(where: { $0.kind == entry.kind }) {
                entries[place] = entry
            } else {
                entries.append(entry)
            }
        }
        // The decoded ones have more.
        while entries.count > Self.limit, let place = entries.lastIndex(where: { $0.rank == entries.map(\.rank).max() })
        {
            entries.remove(at: place)
        }
    }

    /// A report was heard again that contains the same as the newest one.
    mutating func repeated(at now: BootInstant) {
        for index in entries.indices where current.contains(entries[index].kind) { entries[index].lastSeen = now }
    }

    /// The words, without characters that could control a terminal.
    var text: String {
        let ranked = entries.enumerated().sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }
        var parts = ranked.map(\.element.text)
        let names = services.map { uuid in
            AssignedNumbers.serviceName(uuid) ?? AssignedNumbers.memberName(uuid).map { "\($0) \(uuid)" }
                ?? uuid.description
        }
        if !names.isEmpty { parts.append(names.joined(separator: ", ")) }
        if isConnectable { parts.append("connectable") }
        return parts.joined(separator: " · ").printable
    }

    /// Whether a measurement is among them.
    var hasMeasurements: Bool { entries.contains { $0.measurement != nil } }

    /// The measurements with the names of the device's kind and of the values, which `text` leaves out.
    var measurements: String { entries.compactMap { $0.measurement?.description }.joined(separator: "\n") }

    private static func entry(
        _ type: AdvertisingDataType, _ value: Span<UInt8>, in payload: AdvertisingData,
        from senders: [BluetoothAddress],
        at now: BootInstant
    ) -> Entry? {
        var reader = ByteReader(value)
        let structure = AdvertisingData.Structure(type: type, value: reader.rest())
        if let decoded = SensorKeys.decoded(structure, of: payload, from: senders) {
            return Entry(
                kind: decoded.kind.rawValue, text: text(of: decoded), rank: rank(of: decoded), lastSeen: now,
                measurement: decoded.hasMeasurement ? decoded : nil)
        }
        let alone = AdvertisingData(joining: [structure])
        if let data = alone.serviceData.first {
            let name = AssignedNumbers.serviceName(data.service) ?? AssignedNumbers.memberName(data.service)
            let text = "\(name ?? data.service.description) data \(data.data.count) B"
            return Entry(kind: data.service.description, text: text, rank: .unknown, lastSeen: now)
        }
        if let data = alone.manufacturerData.first {
            let key = "company " + JSONLine.companyKey(data.company)
            let text = "\(AssignedNumbers.companyName(data.company) ?? key) \(data.data.count) B"
            return Entry(kind: key, text: text, rank: .unknown, lastSeen: now)
        }
        return nil
    }

    private static func rank(of decoded: DecodedAdvertisement) -> Rank {
        if [.iBeacon, .altBeacon].contains(decoded.kind) { return .beacon }
        return climate(of: decoded).isEmpty ? .decoded : .measurement
    }

    /// Returns the decoded data; climate without the names that its units make superfluous, and without the title.
    private static func text(of decoded: DecodedAdvertisement) -> String {
        let climate = climate(of: decoded)
        guard !climate.isEmpty else { return decoded.description }
        let values = climate.map { field in
            field.text.dropped(prefix: field.name + " ") ?? field.text
        }
        let others = decoded.fields.filter { field in !climate.contains { $0.name == field.name } }.map(\.text)
        return (values + others.filter { !$0.isEmpty }).joined(separator: "  ")
    }

    private static func climate(of decoded: DecodedAdvertisement) -> [ValueField] {
        ["temperature", "humidity"].compactMap { decoded[$0] }.filter { $0.number != nil }
    }
}
