import BLECore

extension JSONLine {
    /// A device's scan result: advertisement and scan response together, and each of them as bytes.
    init(_ sighting: Sighting, event: ScanLines.Event, origin: ScanLines.Origin) {
        let together = (sighting.advertisement?.data ?? []) + (sighting.scanResponse?.data ?? [])
        let members: [JSONLine.Member?] = [
            .init(key: "address", value: sighting.peer.map { .string($0.address.description) } ?? .null),
            .init(key: "addressType", value: sighting.peer.map { $0.type == .public ? "public" : "random" } ?? .null),
            .init(key: "kind", value: sighting.peer.map { .string($0.kind.rawValue) } ?? .null),
            .init(key: "rssi", value: sighting.rssi.map { .integer(Int($0)) } ?? .null),
            .init(key: "connectable", value: .bool(sighting.isConnectable)),
            sighting.name.map { .init(key: "name", value: .string($0)) },
            sighting.advertisement.map { .init(key: "raw", value: .string(Hex.encode($0.data))) },
            sighting.scanResponse.map { .init(key: "rawScanResponse", value: .string(Hex.encode($0.data))) },
        ]
        self = .object(
            Self.members(of: origin, event: event.rawValue) + members.compactMap(\.self)
                + Self.members(of: AdvertisingData(together)))
    }
}
