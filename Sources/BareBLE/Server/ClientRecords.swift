internal import BLECore

/// What bonded centrals have configured in the local services, between their links.
///
/// At most 1,024 are kept; beyond that the one that was stored least recently is dropped.
struct ClientRecords {
    private static let limit = 1_024

    private var records: [PeerID: ClientRecord] = [:]
    /// The least recently stored one first.
    private var order: [PeerID] = []

    func record(of peer: PeerID) -> ClientRecord? { records[peer] }

    mutating func store(_ record: ClientRecord, of peer: PeerID) {
        order.removeAll { $0 == peer }
        order.append(peer)
        records[peer] = record
        if order.count > Self.limit { records[order.removeFirst()] = nil }
    }

    /// The services have changed while these centrals are away; those that are connected learn of it at their links.
    mutating func databaseChanged(
        _ handles: ClosedRange<AttributeHandle>, checksum: UInt32, connected: Set<PeerID>
    ) {
        for peer in order where !connected.contains(peer) {
            records[peer]?.databaseChanged(handles, checksum: checksum)
        }
    }
}
