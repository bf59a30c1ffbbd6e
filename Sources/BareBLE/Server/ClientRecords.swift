internal import BLECore
internal import BLELinux
internal import Logging

// What bonded centrals have configured in the local services, between their links and between runs of the program.
//
// Duties
// - Keeps the records, and passes each to the links of its central.
// - Compares the services of this run with those that the records are of, once: when the first link is served. Services
//   that are published before that are no changes.
// - Has what changed written to the disk, if it is kept there.
//
// Invariants
// - Only the event loop's thread uses it.
// - A central without a bond has no record.

/// The records of bonded centrals.
// Unchecked: only the loop's thread touches its state.
final class ClientRecords: @unchecked Sendable {
    /// The minimum time between two writes to the disk.
    private static let interval: Duration = .seconds(5)

    private let loop: EventLoop
    private let logger: Logger
    private var table = ClientTable()
    private var hasBegun = false
    private var writer: PacedWriter<ClientTable>?

    init(on loop: EventLoop, logger: Logger) {
        self.loop = loop
        self.logger = logger
    }

    /// The status of the file; `nil` if nothing is kept.
    var status: StateStore.Status? { writer?.status }

    /// The number of centrals.
    var count: Int { table.count }

    // MARK: The disk

    /// Continues with what a file has, and keeps it current from now on.
    func keep(_ contents: ClientTable, in file: StateFile) {
        table = contents
        writer = PacedWriter(every: Self.interval, on: loop, logger: logger) { table in
            Result { () throws(BLEError) in try file.replace(with: table.bytes, during: "save the configurations") }
        } letGo: {
            file.close()
        }
    }

    /// Returns when the disk has everything; logs if that fails.
    func flush(until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation) async {
        do throws(BLEError) {
            try await writer?.flush(
                in: CallContext("save the configurations", until: deadline), isolation: isolation)
        } catch {
            logger.error("the configurations of centrals are not on the disk", metadata: ["reason": "\(error)"])
        }
    }

    /// Ends the writing, after what is pending.
    func close() {
        writer?.close()
        writer = nil
    }

    private func change(_ body: (inout ClientTable) -> Void) {
        let former = table
        body(&table)
        guard let writer, table != former else { return }
        writer.changed(to: table)
    }

    // MARK: Services

    /// The first link is served: the services are those of this run from now on.
    func begin(with database: ServerDatabase) {
        guard !hasBegun else { return }
        hasBegun = true
        change { $0.begin(with: database.outline, checksum: database.checksum) }
    }

    /// The services have changed. Links to be notified store what becomes of it afterwards.
    func databaseChanged(_ handles: ClosedRange<AttributeHandle>, _ database: ServerDatabase) {
        guard hasBegun else { return }
        change { $0.databaseChanged(handles, checksum: database.checksum, outline: database.outline) }
    }

    // MARK: Centrals

    /// Returns what a central has configured under a bond, and makes it the one that was seen last.
    func record(of bond: BondID) -> ClientRecord? {
        change { $0.seen(bond.identity) }
        return table.record(of: bond.identity, bond: bond.generation)
    }

    /// Stores what a central has configured. Beyond 1,024 the one that was not seen for the longest time is dropped.
    func store(_ record: ClientRecord, of bond: BondID, connected: Set<PeerID>) {
        change { $0.store(record, of: bond.identity, bond: bond.generation, connected: connected) }
    }
}
