package import BLECore
internal import BLELinux
internal import Glibc

/// The place of bonds between runs: a directory with one file for each adapter, `ADDRESS.bonds`.
///
/// The directory belongs to the user of the program, and no other user may write to it; the files are readable by their
/// owner only. A file is replaced as a whole, so that it has either the old bonds or the new ones, even after a crash
/// or on a full disk. One process uses the bonds of an adapter at a time, by `ADDRESS.lock` in the same directory. In a
/// directory that this process cannot write to, bonds are used as they are, and nothing can be stored.
///
/// A damaged file is renamed to `ADDRESS.bonds.damaged`, and one of a newer version to `ADDRESS.bonds.other-version`;
/// where that exists, a number follows, from 2 on. All of them still contain keys. As long as one of them is there,
/// each run reports it (`SecurityEvent.bondsDamaged(_:)`) and pairs no peer on demand, because the peer may have had
/// one of its bonds. Removing it ends that. A connect to a peer that a line of it names, and that has no other bond,
/// fails with `BLEError.Code.unusableState`, until it is paired again or `Central.forgetBond(with:)` removes the line.
public struct BondStore: Sendable {
    private enum Place: Sendable {
        case directory(String)
        case memory(BondMemory)
        /// Nothing: each use fails with this error.
        case missing(BLEError)
    }

    private let place: Place

    /// Uses a directory, and creates it for this user alone if it does not exist.
    ///
    /// It blocks for as long as the disk takes.
    ///
    /// - Throws: `BLEError` with `.notPermitted` for a directory of another user, or that other users may write to;
    ///   `.system`, also if the directory that contains it does not exist.
    public init(directory: String) throws(BLEError) {
        try Self.prepare(directory, during: "open the directory of bonds")
        place = .directory(directory)
    }

    /// Uses a directory without a look at it. Each use of the bonds fails as long as it cannot be opened, or created.
    package init(unchecked directory: String) {
        place = .directory(directory)
    }

    /// Has each use of the bonds fail with this error.
    package init(missing error: BLEError) {
        place = .missing(error)
    }

    private static func prepare(_ directory: String, during operation: String) throws(BLEError) {
        do throws(SystemCallError) {
            try StoredFolder.create(directory)
        } catch {
            throw BLEError(error, bonds: directory, during: operation)
        }
        _ = try StoredFolder.ofBonds(directory, during: operation)
    }

    /// Keeps the bonds in `memory`.
    init(_ memory: BondMemory) {
        place = .memory(memory)
    }

    /// A new store that keeps bonds until it goes away: for tests, and for peers that are paired at each start.
    public static var inMemory: BondStore { BondStore(BondMemory()) }

    /// The directory; `nil` if the bonds are kept in memory.
    public var directory: String? {
        switch place {
        case .directory(let path): path
        case .memory, .missing: nil
        }
    }

    /// Opens the bonds of the adapter with this address for this process, until the result goes away.
    ///
    /// A directory that does not exist is created. It blocks for as long as the disk takes: keep it off the event loop.
    ///
    /// - Throws: `BLEError` with `.busy` if another process has them, which the reason names; `.notPermitted`,
    ///   `.diskFull`, `.system`.
    package func open(adapter: BluetoothAddress) throws(BLEError) -> OpenBondStore {
        switch place {
        case .missing(let error): throw error
        case .memory(let memory): return OpenBondStore(adapter, .memory(memory), turn: memory.turn)
        case .directory(let directory):
            let operation = "open the bonds"
            let files = BondFiles(directory: directory, adapter: adapter)
            try Self.prepare(directory, during: operation)
            do throws(FileLock.Failure) {
                let lock = try FileLock(files.lockPath)
                // Temporary files of processes that were killed while they wrote; there are keys in them.
                StoredFile.removeRemains(in: directory) { files.isWritten($0) }
                return OpenBondStore(adapter, .files(files, OwnedFileLock(lock)), turn: Lock(0))
            } catch {
                switch error {
                case .held(let process):
                    let isOwn = process == getpid()
                    let holder = isOwn ? "this process" : process.map { "process \($0)" } ?? "another process"
                    throw BLEError(
                        .busy, subject: files.lockPath, during: operation, because: "\(holder) has it",
                        hint: isOwn
                            ? "Another central of it uses the same adapter."
                            : "End that one first, or let it use another adapter or directory.")
                case .system(let error) where [EROFS, EACCES].contains(error.errno):
                    // Nothing is written without the lock, and a file that another process replaces is read as a whole.
                    return OpenBondStore(adapter, .unwritable(files, errno: error.errno), turn: Lock(0))
                case .system(let error):
                    throw BLEError(error, bonds: files.lockPath, during: operation)
                }
            }
        }
    }
}

// MARK: - Looking

/// The bonds of one adapter, as they are on the disk.
package struct StoredBonds: Sendable {
    /// The address of the adapter.
    package let adapter: BluetoothAddress
    /// The bonds that can be used, in the order in which they were stored.
    package let records: [BondRecord]
    /// The reason that the file, or some of its lines, cannot be used; `nil` if all of it can.
    package let damage: BLEError?
    /// The report of bonds that were moved aside, as long as their files are there; `nil` if there are none.
    package fileprivate(set) var movedAside: BLEError?
    /// The peers of lines that cannot be used, here or in files that were moved aside, as far as those show them.
    package fileprivate(set) var lostPeers: Set<PeerID> = []
}

extension BondStore {
    /// Returns the bonds of all adapters without exclusive access, for programs that only show them. What is damaged is
    /// reported, and stays where it is. An adapter whose file was moved aside has no bonds.
    ///
    /// It blocks for as long as the disk takes.
    ///
    /// - Throws: `BLEError` with `.notPermitted`, `.system`.
    package func all() throws(BLEError) -> [StoredBonds] {
        guard let directory = try directoryToList() else { return [] }
        let operation = "list the bonds"
        let folder = try StoredFolder.ofBonds(directory, during: operation)
        let names = folder.names()
        var found: [StoredBonds] = []
        for name in Set(names.map { String($0.prefix(BondFiles.nameLength)) }).sorted() {
            guard let adapter = BondFiles.adapter(ofFile: name) else { continue }
            let files = BondFiles(directory: directory, adapter: adapter)
            let movedAside = BLEError(bondsMovedAside: files, among: names, during: operation)
            guard names.contains(name) || movedAside != nil else { continue }
            var stored = StoredBonds(adapter: adapter, records: [], damage: nil)
            if names.contains(name) { stored = Self.read(name, of: adapter, in: folder, directory) }
            stored.movedAside = movedAside
            if movedAside != nil { stored.lostPeers.formUnion(try files.movedPeers(in: folder, during: operation)) }
            found.append(stored)
        }
        return found
    }

    /// Returns the names of the files with bonds that were moved aside, because they were damaged or are newer.
    package func namesOfMovedFiles() throws(BLEError) -> [String] {
        guard let directory = try directoryToList() else { return [] }
        let folder = try StoredFolder.ofBonds(directory, during: "list the bonds")
        return folder.names().filter { name in
            guard let adapter = BondFiles.adapter(ofFile: String(name.prefix(BondFiles.nameLength))) else {
                return false
            }
            return BondFiles(directory: directory, adapter: adapter).isMovedAside(name)
        }
    }

    private func directoryToList() throws(BLEError) -> String? {
        if case .missing(let error) = place { throw error }
        return directory
    }

    private static func read(
        _ name: String, of adapter: BluetoothAddress, in folder: borrowing StoredFolder, _ directory: String
    ) -> StoredBonds {
        let operation = "list the bonds"
        let path = "\(directory)/\(name)"
        var bytes: [UInt8]
        do throws(StoredFolder.Exposure) {
            bytes = try folder.readSecrets(name, limit: BondFile.byteLimit) ?? []
        } catch {
            return StoredBonds(
                adapter: adapter, records: [], damage: BLEError(error, bonds: path, during: operation))
        }
        defer { StoredFile.wipe(&bytes) }
        do throws(MalformedPacket) {
            let file = try BondFile(bytes: bytes)
            let lines = file.damagedLines.prefix(8).map { "\($0)" }.joined(separator: ", ")
            let damage =
                lines.isEmpty
                ? nil
                : BLEError(
                    .unusableState, subject: path, during: operation,
                    because: "\(file.damagedLines.count) of its lines are not bonds: \(lines)",
                    hint: "The other bonds are used.")
            return StoredBonds(
                adapter: adapter, records: file.records, damage: damage, lostPeers: file.peersOfDamagedLines)
        } catch {
            let damage = BLEError(
                .unusableState, subject: path, during: operation, because: "\(error)",
                hint: "Its bonds are not used: pair again, or restore the file.")
            return StoredBonds(
                adapter: adapter, records: [], damage: damage, lostPeers: BondFile.peers(ofUnused: bytes))
        }
    }
}
