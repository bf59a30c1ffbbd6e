package import BLECore
internal import BLELinux
internal import Glibc

// The bonds of one adapter on its disk, and the only code that writes them.
//
// Duties
// - A bond counts when it is on the disk: every call that changes one returns after the file was replaced and synced,
//   and every failure leaves the file as it was.
// - Only `forget` removes a bond. Only a pairing that was to replace it replaces one, by one that is not weaker.
// - What others could read or replace is refused. What is damaged is set aside and reported, once; and by the first
//   reading of each later run, as long as the file that it was moved to is there.
//
// Invariants
// - The file is read before each change and replaced as a whole; the store keeps no key in memory between two calls.
// - No two bonds of a store's life have the same version, also where the file was set aside, removed or put back from a
//   copy in between: what is remembered of a bond is known by it.
// - `turn` is held from the reading to the end of the writing.
// - No error and no description has a key in it.

/// The bonds of one adapter, with exclusive access.
///
/// The calls block for as long as the disk takes. They may be made on several threads; one after the other has its
/// turn.
package final class OpenBondStore: Sendable {
    /// The contents of a store.
    package struct Contents: Sendable {
        /// The bonds, in the order in which they were stored.
        package fileprivate(set) var records: [BondRecord] = []
        /// The version of the list. It grows with each change of a key.
        package fileprivate(set) var generation: UInt64 = 0
        /// The reason that the file, or some of its lines, were not used (`.unusableState`).
        package fileprivate(set) var damage: BLEError?
        /// The path to which they were moved.
        package fileprivate(set) var movedTo: String?
        /// The peers of lines that were not used, now or earlier, as far as those lines show them. They may have one
        /// of the bonds.
        package fileprivate(set) var lostPeers: Set<PeerID> = []
    }

    enum Place: Sendable {
        case files(BondFiles, OwnedFileLock)
        /// The lock was refused with this error number: nothing may be written.
        case unwritable(BondFiles, errno: Int32)
        case memory(BondMemory)
    }

    /// The time of the last encryption is stored when it is this much later, in seconds: each change is a write to the
    /// disk.
    package static let timeBetweenNotes: UInt64 = 3_600

    /// The address of the adapter.
    package let adapter: BluetoothAddress
    private let place: Place
    // The highest version of the list that was seen. Its holder blocks, which is contrary to the rule of `Lock`: only
    // threads that wait for the disk in any case take it.
    private let turn: Lock<UInt64>

    /// Whether this process may change the bonds.
    var isWritable: Bool { if case .unwritable = place { false } else { true } }

    init(_ adapter: BluetoothAddress, _ place: Place, turn: Lock<UInt64>) {
        self.adapter = adapter
        self.place = place
        self.turn = turn
    }

    /// Returns the bonds.
    ///
    /// A file that cannot be used is moved aside, so that it is reported once and not overwritten. So are single lines,
    /// if the disk permits it; otherwise they stay and are reported each time.
    ///
    /// - Throws: `BLEError` with `.notPermitted`, also for a file of another user, that other users may read, or that
    ///   is a symbolic link; `.diskFull`, `.system`.
    package func load() throws(BLEError) -> Contents {
        try turn.withLock { highest throws(BLEError) in
            let operation = "load the bonds"
            var contents = try read(during: operation, &highest)
            switch place {
            case .memory: break
            case .files(let files, _), .unwritable(let files, _):
                let folder = try StoredFolder.ofBonds(files.directory, during: operation)
                contents.lostPeers.formUnion(try files.movedPeers(in: folder, during: operation))
            }
            return contents
        }
    }

    /// Returns the bonds, for the first time in a run: what earlier runs have moved aside is damage of this one too.
    ///
    /// - Throws: As `load()`.
    package func loadFirst() throws(BLEError) -> Contents {
        var contents = try load()
        guard contents.damage == nil else { return contents }
        switch place {
        case .memory: break
        case .files(let files, _), .unwritable(let files, _):
            let operation = "load the bonds"
            let folder = try StoredFolder.ofBonds(files.directory, during: operation)
            do throws(SystemCallError) {
                // An empty list would be taken for one without such files.
                let names = try folder.names(orAmong: [files.nameOfDamaged, files.nameOfOtherVersion])
                contents.damage = BLEError(bondsMovedAside: files, among: names, during: operation)
            } catch {
                throw BLEError(error, bonds: files.directory, during: operation)
            }
        }
        return contents
    }

    /// Stores the bond that a pairing has made.
    ///
    /// - Parameters:
    ///   - isForStorage: Whether the kernel's store hint is set for each of the keys.
    ///   - replaced: The identity whose bond this pairing may replace, if any.
    ///   - generation: The version of the list that the kernel had when the pairing began, if that matters: under
    ///     another one the bond is not stored.
    /// - Returns: The stored record.
    /// - Throws: `BLEError` with `.bondNotStored`, `.keyTooShort`: the former bonds are intact. With `.unusableState`
    ///   if the file was damaged: what is left of it was set aside, and the next call stores the bond.
    package func save(
        _ record: BondRecord, isForStorage: Bool, replacing replaced: PeerID? = nil,
        minimumKeySize: Int = BondRules.minimumKeySize, begunUnder generation: UInt64? = nil
    ) throws(BLEError) -> BondRecord {
        let operation = "store the bond"
        return try change(during: operation, reportsDamage: true) { contents throws(BLEError) in
            guard generation == nil || generation == contents.generation else {
                throw BLEError(
                    .bondNotStored, subject: "\(record.identity)", during: operation,
                    because: "other bonds were stored or forgotten since the pairing began", hint: "Pair again.")
            }
            var accepted: BondRecord
            do throws(BondRefusal) {
                accepted = try BondRules.accept(
                    record, isForStorage: isForStorage, replacing: replaced, minimumKeySize: minimumKeySize,
                    among: contents.records)
            } catch {
                throw BLEError(error, bondWith: record.identity, during: operation)
            }
            contents.generation &+= 1
            accepted.generation = contents.generation
            // A peer that distributes the same key again has signed with it before:
            // nothing of that may be accepted again.
            if let former = contents.records.compactMap(\.peerSigning).first(where: {
                $0.key == accepted.peerSigning?.key
            }) {
                accepted.peerSigning = former
            }
            if let index = contents.records.firstIndex(where: { $0.identity == accepted.identity }) {
                contents.records[index] = accepted
            } else {
                contents.records.append(accepted)
            }
            return accepted
        }
    }

    /// Removes the bond with a peer, also from the files with bonds that were moved aside. The peer keeps its own
    /// record.
    ///
    /// - Returns: Whether there was one that could be used.
    /// - Throws: `BLEError` with `.bondNotStored`; the bond then still exists. With `.unusableState` if the file was
    ///   damaged: what is left of it was set aside, and the next call removes the bond.
    package func forget(_ identity: PeerID) throws(BLEError) -> Bool {
        let operation = "forget the bond"
        return try change(during: operation, reportsDamage: true) { contents throws(BLEError) in
            // First, because the bond is still in use if this fails.
            do throws(BLEError) {
                try removeMoved(identity, during: operation)
            } catch {
                throw error.asBondNotStored
            }
            guard let index = contents.records.firstIndex(where: { $0.identity == identity }) else { return false }
            contents.records.remove(at: index)
            contents.generation &+= 1
            return true
        }
    }

    /// Notes that the peer does not accept the key, if that was not known. The key stays.
    ///
    /// - Parameter time: Seconds since 1970.
    /// - Returns: Whether there is a bond.
    /// - Throws: `BLEError` with `.bondNotStored`.
    package func markRejected(_ identity: PeerID, at time: UInt64) throws(BLEError) -> Bool {
        try changeRecord(of: identity, during: "mark the bond") { record in
            if record.state == .good { record.state = .rejected(since: time) }
        }
    }

    /// Notes that the key has encrypted a link, which also ends a rejection.
    ///
    /// - Parameter time: Seconds since 1970.
    /// - Returns: Whether there is a bond.
    /// - Throws: `BLEError` with `.bondNotStored`.
    package func noteEncrypted(_ identity: PeerID, at time: UInt64) throws(BLEError) -> Bool {
        try changeRecord(of: identity, during: "note the encryption") { record in
            let former = record.lastEncryptedAt
            // The clock may have been set back.
            let distance = former.map { max($0, time) - min($0, time) }
            guard record.state != .good || distance.map({ $0 >= Self.timeBetweenNotes }) ?? true else { return }
            record.state = .good
            record.lastEncryptedAt = time
        }
    }

    /// Reserves counters for signed writes: the next call begins after them, also after a crash.
    ///
    /// - Returns: The key, and the first of the reserved counters; `nil` if there is no such key, or fewer counters are
    ///   left.
    /// - Throws: `BLEError` with `.bondNotStored`: none may be used.
    package func reserveSignatures(_ count: UInt32, for identity: PeerID) throws(BLEError) -> BondRecord.Signing? {
        var reserved: BondRecord.Signing?
        _ = try changeRecord(of: identity, during: "reserve signatures") { record in
            guard let signing = record.signing, let counter = signing.counter else { return }
            let (next, isBeyond) = counter.addingReportingOverflow(count)
            guard !isBeyond else { return }
            reserved = signing
            record.signing?.counter = next
        }
        return reserved
    }

    /// Stores the lowest counters that are accepted of signed writes, by the keys of the peers that sign them.
    ///
    /// - Parameter counters: `nil` as a counter if all have been used.
    /// - Returns: Whether a bond has one of the keys.
    /// - Throws: `BLEError` with `.bondNotStored`: no write with a higher counter than before may be executed.
    package func storeAcceptedCounters(_ counters: [Secret128: UInt32?]) throws(BLEError) -> Bool {
        try change(during: "store the counters of signatures") { contents throws(BLEError) in
            var isFound = false
            for index in contents.records.indices {
                guard let key = contents.records[index].peerSigning?.key, let counter = counters[key] else { continue }
                contents.records[index].peerSigning?.counter = counter
                isFound = true
            }
            return isFound
        }
    }

    // MARK: Changes

    private func changeRecord(
        of identity: PeerID, during operation: String, _ body: (inout BondRecord) -> Void
    ) throws(BLEError) -> Bool {
        try change(during: operation) { contents throws(BLEError) in
            guard let index = contents.records.firstIndex(where: { $0.identity == identity }) else { return false }
            body(&contents.records[index])
            return true
        }
    }

    /// Reads the bonds, changes them, and writes them if they have changed.
    ///
    /// - Parameter reportsDamage: Whether damage that is found is the failure, in place of `.bondNotStored`.
    private func change<Result>(
        during operation: String, reportsDamage: Bool = false, _ body: (inout Contents) throws(BLEError) -> Result
    ) throws(BLEError) -> Result {
        try turn.withLock { highest throws(BLEError) in
            var contents: Contents
            do throws(BLEError) {
                contents = try read(during: operation, &highest)
            } catch {
                throw error.asBondNotStored
            }
            // Never a new file over a damaged one without a notice.
            if let damage = contents.damage { throw reportsDamage ? damage : damage.asBondNotStored }
            let former = contents.records
            let result = try body(&contents)
            guard contents.records != former else { return result }
            let file = BondFile(generation: contents.generation, records: contents.records)
            do throws(BLEError) {
                try write(file, during: operation)
            } catch {
                throw error.asBondNotStored
            }
            highest = max(highest, contents.generation)
            return result
        }
    }

    // MARK: The disk

    /// - Parameter highest: The highest version of the list that was seen, which no list is below.
    private func read(during operation: String, _ highest: inout UInt64) throws(BLEError) -> Contents {
        var contents = try read(during: operation)
        contents.generation = max(contents.generation, highest)
        highest = contents.generation
        return contents
    }

    private func read(during operation: String) throws(BLEError) -> Contents {
        switch place {
        case .memory(let memory):
            let file = memory.read(adapter)
            return Contents(records: file.records, generation: file.generation)
        case .files(let files, _), .unwritable(let files, _):
            let folder = try StoredFolder.ofBonds(files.directory, during: operation)
            var bytes: [UInt8]
            do throws(StoredFolder.Exposure) {
                guard let stored = try folder.readSecrets(files.name, limit: BondFile.byteLimit) else {
                    return Contents()
                }
                bytes = stored
            } catch {
                guard case .system(let failure) = error, [EFBIG, EINVAL, EISDIR].contains(failure.errno) else {
                    throw BLEError(error, bonds: files.path(files.name), during: operation)
                }
                let reason = failure.errno == EFBIG ? "it is too large for a file of bonds" : "it is not a plain file"
                return try setAside(
                    files, as: files.unused(files.nameOfDamaged, in: folder), because: reason, during: operation)
            }
            defer { StoredFile.wipe(&bytes) }
            do throws(MalformedPacket) {
                let file = try BondFile(bytes: bytes)
                return setAsideLines(of: file, files, in: folder, during: operation)
            } catch {
                let name = BondFile.isOtherVersion(error) ? files.nameOfOtherVersion : files.nameOfDamaged
                return try setAside(
                    files, as: files.unused(name, in: folder), because: "\(error)", during: operation)
            }
        }
    }

    private func write(_ file: BondFile, during operation: String) throws(BLEError) {
        switch place {
        case .memory(let memory): memory.write(file, adapter)
        case .unwritable(let files, let errno):
            throw BLEError(
                SystemCallError(call: "open", errno: errno), bonds: files.path(files.name), during: operation)
        case .files(let files, _):
            let folder = try StoredFolder.ofBonds(files.directory, during: operation)
            var bytes = file.bytes
            defer { StoredFile.wipe(&bytes) }
            guard bytes.count <= BondFile.byteLimit else {
                throw BLEError(
                    .bondNotStored, subject: files.path(files.name), during: operation,
                    because: "there would be \(bytes.count) bytes, more than are read", hint: "Forget some bonds.")
            }
            do throws(SystemCallError) {
                try folder.replace(files.name, with: bytes)
            } catch {
                throw BLEError(error, bonds: files.path(files.name), during: operation)
            }
        }
    }

    /// Removes a peer from the files with bonds that were moved aside.
    private func removeMoved(_ identity: PeerID, during operation: String) throws(BLEError) {
        switch place {
        case .memory: return
        case .files(let files, _):
            let folder = try StoredFolder.ofBonds(files.directory, during: operation)
            try files.removeMoved(identity, in: folder, during: operation)
        case .unwritable(let files, let errno):
            let folder = try StoredFolder.ofBonds(files.directory, during: operation)
            guard try files.movedPeers(in: folder, during: operation).contains(identity) else { return }
            throw BLEError(
                SystemCallError(call: "open", errno: errno), bonds: files.path(files.name), during: operation)
        }
    }

    /// Moves the whole file aside.
    private func setAside(
        _ files: BondFiles, as name: String, because reason: String, during operation: String
    ) throws(BLEError) -> Contents {
        do throws(SystemCallError) {
            try StoredFile.move(files.path(files.name), to: files.path(name))
        } catch {
            throw BLEError(error, bonds: files.path(files.name), during: operation)
        }
        let path = files.path(name)
        let damage = BLEError(
            .unusableState, subject: files.path(files.name), during: operation, because: reason,
            hint: "It is now \(path), with its keys; there are no bonds until peers are paired again.")
        return Contents(damage: damage, movedTo: path)
    }

    /// Moves lines that are not bonds aside, and returns the others.
    private func setAsideLines(
        of file: BondFile, _ files: BondFiles, in folder: borrowing StoredFolder, during operation: String
    ) -> Contents {
        var contents = Contents(records: file.records, generation: file.generation)
        guard !file.damagedLines.isEmpty else { return contents }
        // The lines may stay where they are.
        contents.lostPeers = file.peersOfDamagedLines
        var hint = "They stay in the file; the other bonds are used."
        var damaged = file.bytesOfDamaged
        var others = file.bytes
        defer {
            StoredFile.wipe(&damaged)
            StoredFile.wipe(&others)
        }
        let name = files.unused(files.nameOfDamaged, in: folder)
        do throws(SystemCallError) {
            // In this order, so that they are lost at no step.
            try folder.replace(name, with: damaged)
            do throws(SystemCallError) {
                try folder.replace(files.name, with: others)
            } catch {
                // Each further reading would leave one more copy of their keys.
                try? folder.remove(name)
                throw error
            }
            contents.movedTo = files.path(name)
            hint = "They are now in \(files.path(name)), with their keys; the other bonds are used."
        } catch {
            hint += " (\(error.call): errno \(error.errno))"
        }
        let lines = file.damagedLines.prefix(8).map { "\($0)" }.joined(separator: ", ")
        contents.damage = BLEError(
            .unusableState, subject: files.path(files.name), during: operation,
            because: "\(file.damagedLines.count) of its lines are not bonds: \(lines)", hint: hint)
        return contents
    }
}
