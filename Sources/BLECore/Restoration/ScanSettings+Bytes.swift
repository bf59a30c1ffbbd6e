/// The layout of a scan in the state of a daemon. Numbers are little-endian:
///
///     active 1 | interval 2, window 2 (0.625 ms) | PHYs 1
///     duplicates 1 (0 all, 1 changed, 2 every), every 8 (-1: none)
///     filters in controller 1 | RSSI delta 2 (FFFF: none) | lost after 8 (-1: never)
///     sets, each: count 2, elements in the order of their bytes:
///       services: UUID; solicited: UUID; peers: peer; addresses: 6; companies: 2;
///       manufacturer: company 2, length 1, bytes;
///       service data: UUID, length 1, bytes; names: text; excluded: peer
///     name prefix: flag 1, text | least RSSI: flag 1, 1 | connectable only 1
extension RestorationState.Scan {
    func write(to writer: inout ByteWriter) {
        writer.u8(settings.isActive ? 1 : 0)
        writer.u16(settings.intervalUnits)
        writer.u16(settings.windowUnits)
        writer.u8(settings.phys.rawValue)
        switch settings.duplicates {
        case .all:
            writer.u8(0)
            writer.stateDuration(nil)
        case .changed:
            writer.u8(1)
            writer.stateDuration(nil)
        case .every(let pause):
            writer.u8(2)
            writer.stateDuration(pause)
        }
        writer.u8(settings.filtersDuplicatesInController ? 1 : 0)
        writer.u16(settings.rssiDelta.map { UInt16(clamping: min($0, 0xFFFE)) } ?? .max)
        writer.stateDuration(lostAfter)
        settings.filter.write(to: &writer)
    }
}

extension ScanFilter {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.stateSet(services) { $1.storedUUID($0) }
        writer.stateSet(solicitedServices) { $1.storedUUID($0) }
        writer.stateSet(peers) { $1.storedPeer($0) }
        writer.stateSet(addresses) { $1.u48($0.rawValue) }
        writer.stateSet(companies) { $1.u16($0) }
        writer.stateSet(manufacturerData) { data, writer in
            writer.u16(data.company)
            writer.statePrefix(data.prefix)
        }
        writer.stateSet(serviceData) { data, writer in
            writer.storedUUID(data.service)
            writer.statePrefix(data.prefix)
        }
        writer.stateSet(names) { $1.storedText($0) }
        writer.stateSet(excluding) { $1.storedPeer($0) }
        writer.u8((namePrefix == nil ? 0 : 1) | (nameContains == nil ? 0 : 2))
        if let namePrefix { writer.storedText(namePrefix) }
        if let nameContains { writer.storedText(nameContains) }
        writer.u8(minimumRSSI == nil ? 0 : 1)
        if let minimumRSSI { writer.i8(minimumRSSI) }
        writer.u8(connectableOnly ? 1 : 0)
    }
}

extension ByteWriter {
    fileprivate mutating func stateSet<Element>(
        _ elements: Set<Element>, _ write: (Element, inout ByteWriter) -> Void
    ) {
        let stored = elements.map { element in
            var writer = ByteWriter()
            write(element, &writer)
            return writer.bytes
        }.sorted { $0.lexicographicallyPrecedes($1) }.prefix(RestorationState.limit)
        u16(UInt16(clamping: stored.count))
        for bytes in stored { array(bytes) }
    }

    fileprivate mutating func statePrefix(_ prefix: [UInt8]) {
        let stored = prefix.prefix(255)
        u8(UInt8(clamping: stored.count))
        array(Array(stored))
    }
}

extension ByteReader {
    @_lifetime(self: copy self)
    mutating func persistedScan() throws(MalformedPacket) -> RestorationState.Scan {
        let start = offset
        let isActive = try storedFlag("active", in: RestorationState.form)
        guard let interval = u16(), let window = u16(), let phys = u8(), let kind = u8() else {
            throw .state(at: start, .tooShort)
        }
        let pause = try stateDuration("pause between repetitions")
        let duplicates: ScanSettings.Duplicates
        switch (kind, pause) {
        case (0, nil): duplicates = .all
        case (1, nil): duplicates = .changed
        case (2, let pause?): duplicates = .every(pause)
        default: throw .state(at: start, .invalidField("duplicates"))
        }
        let filters = try storedFlag("filters duplicates", in: RestorationState.form)
        guard let delta = u16() else { throw .state(at: offset, .tooShort) }
        let lostAfter = try stateDuration("lost after")
        let filter = try scanFilter()
        let unit = Duration.microseconds(625)
        guard
            let settings = try? ScanSettings(
                isActive: isActive, interval: unit * Int(interval), window: unit * Int(window), duplicates: duplicates,
                filtersDuplicatesInController: filters, phys: LEPHYs(rawValue: phys), filter: filter,
                rssiDelta: delta == .max ? nil : Int(delta))
        else { throw .state(at: start, .invalidField("scan settings")) }
        return RestorationState.Scan(settings, lostAfter: lostAfter)
    }

    @_lifetime(self: copy self)
    private mutating func scanFilter() throws(MalformedPacket) -> ScanFilter {
        let form = RestorationState.form
        var filter = ScanFilter()
        for _ in 0..<(try stateCount("services")) { filter.services.insert(try someUUID()) }
        for _ in 0..<(try stateCount("solicited services")) { filter.solicitedServices.insert(try someUUID()) }
        for _ in 0..<(try stateCount("peers")) { filter.peers.insert(try somePeer()) }
        for _ in 0..<(try stateCount("addresses")) {
            guard let address = u48() else { throw .state(at: offset, .tooShort) }
            filter.addresses.insert(BluetoothAddress(rawValue: address))
        }
        for _ in 0..<(try stateCount("companies")) {
            guard let company = u16() else { throw .state(at: offset, .tooShort) }
            filter.companies.insert(company)
        }
        for _ in 0..<(try stateCount("manufacturer data")) {
            guard let company = u16() else { throw .state(at: offset, .tooShort) }
            filter.manufacturerData.insert(.init(company: company, prefix: try statePrefix()))
        }
        for _ in 0..<(try stateCount("service data")) {
            let service = try someUUID()
            filter.serviceData.insert(.init(service: service, prefix: try statePrefix()))
        }
        for _ in 0..<(try stateCount("names")) { filter.names.insert(try storedText("names", in: form)) }
        for _ in 0..<(try stateCount("excluded peers")) { filter.excluding.insert(try somePeer()) }
        let start = offset
        guard let parts = u8() else { throw .state(at: start, .tooShort) }
        guard parts <= 3 else { throw .state(at: start, .invalidField("parts of a name")) }
        if parts & 1 != 0 { filter.namePrefix = try storedText("name prefix", in: form) }
        if parts & 2 != 0 { filter.nameContains = try storedText("part of a name", in: form) }
        if try storedFlag("least RSSI", in: form) {
            guard let rssi = i8() else { throw .state(at: offset, .tooShort) }
            filter.minimumRSSI = rssi
        }
        filter.connectableOnly = try storedFlag("connectable only", in: form)
        return filter
    }

    @_lifetime(self: copy self)
    private mutating func someUUID() throws(MalformedPacket) -> BluetoothUUID {
        let start = offset
        guard let uuid = try storedUUID("UUID", in: RestorationState.form) else {
            throw .state(at: start, .invalidField("UUID"))
        }
        return uuid
    }

    @_lifetime(self: copy self)
    private mutating func somePeer() throws(MalformedPacket) -> PeerID {
        let start = offset
        guard let peer = try storedPeer(in: RestorationState.form) else {
            throw .state(at: start, .invalidField("peer"))
        }
        return peer
    }

    @_lifetime(self: copy self)
    private mutating func statePrefix() throws(MalformedPacket) -> [UInt8] {
        let start = offset
        guard let length = u8(), let bytes = array(Int(length)) else { throw .state(at: start, .tooShort) }
        return bytes
    }
}
