import BLECore

extension JSONLine {
    /// A device's scan result: advertisement and scan response together, and each of them as bytes.
    init(_ scanResult: ScanResult, event: ScanLines.Event, origin: ScanLines.Origin) {
        let together = (scanResult.advertisement?.data ?? []) + (scanResult.scanResponse?.data ?? [])
        let members: [JSONLine.Member?] = [
            .init(key: "address", value: scanResult.peer.map { .string($0.address.description) } ?? .null),
            .init(key: "addressType", value: scanResult.peer.map { $0.type == .public ? "public" : "random" } ?? .null),
            .init(key: "addressKind", value: scanResult.peer.map { .string($0.kind.rawValue) } ?? .null),
            scanResult.identity.map { .init(key: "identity", value: .string($0.description)) },
            .init(key: "rssi", value: scanResult.rssi.map { .integer(Int($0)) } ?? .null),
            .init(key: "connectable", value: .bool(scanResult.isConnectable)),
            scanResult.name.map { .init(key: "name", value: .string($0)) },
            scanResult.advertisement.map { .init(key: "hex", value: .string(Hex.encode($0.data))) },
            scanResult.scanResponse.map { .init(key: "scanResponseHex", value: .string(Hex.encode($0.data))) },
        ]
        self = .object(
            Self.members(of: origin, event: event.rawValue) + members.compactMap(\.self)
                + Self.members(of: AdvertisingData(together), from: scanResult.senders))
    }
}
