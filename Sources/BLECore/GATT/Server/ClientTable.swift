// What bonded clients have configured in the local services, between their links and between runs of the program.
//
// Responsibilities: keep one record for each bond, in a bounded number; record the changes of services for all clients,
// until those that are connected store what they have learned; the form in which all of it is stored.
//
// Invariants:
// - A record is that of one bond. A client that has paired again has none until it stores one.
// - At most `limit` clients are kept, beyond those that are connected. The least recently seen one goes first.
// - All records are of the services in `outline`, whose checksum each of them has.

/// The records of all bonded clients.
///
/// Spec: Core Vol 3 Part G, 2.5.2.1, 3.3.3.3, 7.1 and 7.2.
package struct ClientTable: Hashable, Sendable {
    /// The maximum number of clients.
    package static let limit = 1_024

    /// One bonded client.
    private struct Client: Hashable, Sendable {
        let peer: PeerID
        /// The number of the bond.
        let bond: UInt64
        var record: ClientRecord
    }

    /// The least recently seen one first.
    private var clients: [Client] = []
    /// The services that the clients know, or are to be notified of; `nil` if nothing was recorded.
    package private(set) var outline: ServerOutline?

    package init() {}

    /// The number of clients.
    package var count: Int { clients.count }

    /// Returns what was stored of a client under this bond.
    package func record(of peer: PeerID, bond: UInt64) -> ClientRecord? {
        clients.first { $0.peer == peer && $0.bond == bond }?.record
    }

    /// Stores the record of a client in place of the former one. Those in `connected` stay,
    /// however long they were not seen.
    package mutating func store(
        _ record: ClientRecord, of peer: PeerID, bond: UInt64, connected: Set<PeerID> = []
    ) {
        clients.removeAll { $0.peer == peer }
        clients.append(Client(peer: peer, bond: bond, record: record))
        while clients.count > Self.limit, let index = clients.firstIndex(where: { !connected.contains($0.peer) }) {
            clients.remove(at: index)
        }
    }

    /// Makes a client the most recently seen one, if it is known.
    package mutating func seen(_ peer: PeerID) {
        guard let index = clients.firstIndex(where: { $0.peer == peer }), index != clients.count - 1 else { return }
        clients.append(clients.remove(at: index))
    }

    /// Records a change of the services for all clients.
    ///
    /// That includes those that are connected: a client that does not encrypt its link with the key of its bond does
    /// not learn of the change there, and anybody may use its address. What a client that does confirms is stored next.
    ///
    /// - Parameters:
    ///   - handles: The handles that are affected.
    ///   - checksum: The checksum of the database from now on.
    ///   - outline: The services from now on.
    package mutating func databaseChanged(
        _ handles: ClosedRange<AttributeHandle>, checksum: UInt32, outline: ServerOutline
    ) {
        for index in clients.indices { clients[index].record.databaseChanged(handles, checksum: checksum) }
        self.outline = outline
    }

    /// Takes over the services of this run, and records for all clients how they differ from those of the run before.
    ///
    /// - Returns: The handles that are affected; `nil` if nothing has changed, or nothing was recorded before.
    @discardableResult
    package mutating func begin(with outline: ServerOutline, checksum: UInt32) -> ClosedRange<AttributeHandle>? {
        let former = self.outline
        self.outline = outline
        guard let former else { return nil }
        let difference = outline.difference(from: former)
        if let difference { databaseChanged(difference, checksum: checksum, outline: outline) }
        return difference
    }
}

// MARK: - The form that is stored

/// The layout inside the frame (`FileEnvelope`, "BLEW"). Numbers are little-endian:
///
///     services: flag 1, and if it is 1 what `ServerOutline.swift` specifies
///     clients 2, each: peer 7, number of the bond 8, length 2, record (`ClientRecord`); the least recently seen first
private enum Layout {
    static let form = FileEnvelope(
        "client table", signature: [0x42, 0x4C, 0x45, 0x57], version: 1, limit: 1 << 20)
    /// The bytes of a client, without its record.
    static let clientSize = 17
}

extension ClientTable {
    /// The maximum length of `bytes`.
    package static var byteLimit: Int { Layout.form.byteLimit }

    /// The encoded form to store. Of more clients than there is room for, the most recently seen ones are in it.
    package var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.u8(outline == nil ? 0 : 1)
        if let outline { writer.storedOutline(outline) }
        var room = Layout.form.byteLimit - writer.bytes.count - 64
        var stored: [(client: Client, record: [UInt8])] = []
        for client in clients.reversed() where stored.count < Self.limit {
            let record = client.record.bytes
            room -= Layout.clientSize + record.count
            guard room >= 0 else { break }
            stored.append((client, record))
        }
        writer.u16(UInt16(clamping: stored.count))
        for (client, record) in stored.reversed() {
            writer.storedPeer(client.peer)
            writer.u64(client.bond)
            writer.u16(UInt16(clamping: record.count))
            writer.array(record)
        }
        return Layout.form.enclose(writer.bytes)
    }

    /// Decodes the form.
    ///
    /// - Throws: `MalformedPacket` with the position and the field.
    package init(bytes: [UInt8]) throws(MalformedPacket) {
        let end = try Layout.form.check(bytes)
        var reader = ByteReader(bytes.span)
        _ = reader.skip(FileEnvelope.headerLength)
        self.init()
        if try reader.storedFlag("services", in: Layout.form) {
            outline = try reader.storedOutline(in: Layout.form)
        }
        let start = reader.offset
        guard let count = reader.u16() else { throw .stored(Layout.form, at: start, .tooShort) }
        guard Int(count) <= Self.limit else {
            throw .stored(Layout.form, at: start, .invalidField("number of clients"))
        }
        var known: Set<PeerID> = []
        for _ in 0..<count {
            let place = reader.offset
            guard let peer = try reader.storedPeer(in: Layout.form), known.insert(peer).inserted else {
                throw .stored(Layout.form, at: place, .invalidField("client"))
            }
            guard let bond = reader.u64(), let length = reader.u16(), let record = reader.array(Int(length)) else {
                throw .stored(Layout.form, at: reader.offset, .tooShort)
            }
            clients.append(Client(peer: peer, bond: bond, record: try ClientRecord(bytes: record)))
        }
        guard reader.offset == end else {
            throw .stored(Layout.form, at: reader.offset, .trailingBytes(end - reader.offset))
        }
    }

    /// Returns a Boolean value that indicates whether `error` means that the bytes are intact, but of a version that
    /// this library does not know.
    package static func isOtherVersion(_ error: MalformedPacket) -> Bool {
        FileEnvelope.isOtherVersion(error)
    }
}
