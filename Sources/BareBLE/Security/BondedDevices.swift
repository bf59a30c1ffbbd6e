internal import BLECore
internal import BLELinux
internal import Logging

// The bonds of one adapter while a program uses it: the open store, and the records as the disk has them.
//
// Duties
// - Opens the store once, however many tasks need it at the same time.
// - Does one job on the disk after the other, each on a thread of its own, and takes over what the disk has afterwards,
//   in that order. A caller waits 5 s at most; what a late job has changed is taken over when it ends, and the
//   kernel is given the keys if these have changed.
// - Knows when links to bonded peers ended, and which bonds are for other hardware than the adapter's.
//
// Invariants
// - All state belongs to the event loop's thread.
// - `records` is what the disk had after the last job, with the changes that this job has reported as done. A rejection
//   by the peer is part of it from the moment that it is known, whatever the disk does, until the key has worked again.
// - While a store is configured and not open, nothing is known of any bond:
//   no link may be used that a bond could concern.

/// The bonds of an adapter, and their store.
// Unchecked: only the loop's thread touches its state.
final class BondedDevices: @unchecked Sendable {
    /// A call on the open store, on another thread.
    typealias Job<Value> = @Sendable (OpenBondStore) throws(BLEError) -> Value

    private enum State {
        case closed
        case opening
        case open(OpenBondStore)
    }

    /// Why a signed write is not executed although its key is right.
    enum CounterFault: Sendable {
        case used, skipsTooOften, noBond
    }

    /// What a job has left.
    private struct Outcome: Sendable {
        var opened: OpenBondStore?
        var contents: OpenBondStore.Contents?
    }

    /// The longest time for which a task waits for the disk, its turn included.
    static let storageTime: Duration = .seconds(5)

    let configuration: SecurityConfiguration?
    private let loop: EventLoop
    private let logger: Logger
    private let disk = DiskGate()
    private var state = State.closed
    private var isWorking = false
    private let turns: Waiters<Void>
    /// The tasks whose job is on the disk.
    private let workers: Waiters<Void>
    private(set) var records: [BondRecord] = []
    /// What the adapter's hardware is now; `nil` before it was found.
    private(set) var hardware: String?
    /// The records without the rejections that only this process knows.
    private var stored: [BondRecord] = []
    /// What peers have rejected: the version of the bond, and since when.
    private var rejections: [PeerID: (generation: UInt64, since: UInt64)] = [:]
    private var linkEnds: [PeerID: BootInstant] = [:]
    /// The peers for which an encryption is being noted on the disk.
    private var encryptionsToNote: Set<PeerID> = []
    /// The peers whose rejected bonds could not be marked on the disk, which was logged.
    private var unmarked: Set<PeerID> = []
    /// What the kernel is not given of the bonds, which was logged.
    private var omissions: Set<BondRules.KeyLists.Omission> = []
    private var signers = BondSigners()
    private let acceptedSignatures = AcceptedSignatures()
    /// Why bonds could not be read, if some could not, in this run or an earlier one: peers without a bond may have had
    /// one.
    private(set) var damage: BLEError?
    /// The peers of bonds that could not be read, as far as they are known.
    private var lostPeers: Set<PeerID> = []
    /// The damage that was found when the store was opened, until a call has taken it to report it: the one that began
    /// to open the store may have timed out by then.
    private var unreportedDamage: BLEError?
    /// Called after the records have changed, with whether the kernel is to be given their keys again.
    private var changeHandler: (@Sendable (_ areKeysLate: Bool) -> Void)?

    init(_ configuration: SecurityConfiguration?, on loop: EventLoop, logger: Logger) {
        self.configuration = configuration
        self.loop = loop
        self.logger = logger
        turns = Waiters(on: loop)
        workers = Waiters(on: loop)
    }

    /// The number of tasks that wait for their turn at the disk.
    var waitingTasks: Int { turns.count }

    /// Whether the bonds are known.
    var isOpen: Bool { if case .open = state { true } else { false } }

    /// The bond of a peer, by its identity.
    func record(of identity: PeerID) -> BondRecord? { records.first { $0.identity == identity } }

    /// Whether a bond of a peer could not be read, and there is no other one.
    func isLost(_ identity: PeerID) -> Bool { lostPeers.contains(identity) && record(of: identity) == nil }

    /// The bond of a peer, by its identity, if its keys may be used on the adapter as it is now.
    func usableRecord(of identity: PeerID) -> BondRecord? {
        record(of: identity).flatMap { $0.isFor(adapter: hardware) ? $0 : nil }
    }

    /// The adapter was found, with hardware that may be other than before.
    func use(hardware: String) {
        guard hardware != self.hardware else { return }
        self.hardware = hardware
        if records.contains(where: { $0.adapterPin != nil }) { changeHandler?(false) }
    }

    /// Has a handler called on the loop after the records have changed, with whether the kernel is to be given their
    /// keys again: these have changed, and no task waited for that any more. It replaces an earlier one.
    func onChange(_ handler: @escaping @Sendable (_ areKeysLate: Bool) -> Void) { changeHandler = handler }

    /// Returns what the kernel is not given of the bonds and was not at the last call, and takes note of it.
    func newOmissions(_ current: [BondRules.KeyLists.Omission]) -> [BondRules.KeyLists.Omission] {
        defer { omissions = Set(current) }
        return current.filter { !omissions.contains($0) }
    }

    // MARK: Links

    /// A link to a peer has ended, or was not heard at its address: it may use another one since.
    func linkEnded(_ identity: PeerID, at time: BootInstant) {
        if record(of: identity) != nil { linkEnds[identity] = time }
    }

    /// When the last link to a peer ended; `nil` if none did.
    func lastLinkEnd(of identity: PeerID) -> BootInstant? { linkEnds[identity] }

    // MARK: The store

    /// Opens the store and reads the bonds, unless that was done. `takeUnreportedDamage` is to follow.
    ///
    /// - Throws: `BLEError` with the codes of `BondStore`, `.timedOut` if the disk does not respond, `.cancelled`.
    func open(adapter: BluetoothAddress, in context: CallContext) async throws(BLEError) {
        guard let bonds = configuration?.bonds, !isOpen else { return }
        let context = context.limited(to: loop.now() + Self.storageTime)
        try await takeTurn(in: context)
        if isOpen {
            passTurn()
            return
        }
        state = .opening
        try await work(in: context, afterwards: {}) { () -> (Result<Void, BLEError>, Outcome) in
            do throws(BLEError) {
                let store = try bonds.open(adapter: adapter)
                let contents = try store.loadFirst()
                return (.success(()), Outcome(opened: store, contents: contents))
            } catch {
                return (.failure(error), Outcome())
            }
        }
    }

    /// Returns why bonds could not be read when the store was opened, if some were set aside, in this run or an earlier
    /// one; `nil` if a call has returned it before.
    func takeUnreportedDamage() -> BLEError? { unreportedDamage.take() }

    /// Does a job with the open store.
    ///
    /// - Parameter afterwards: Called on the loop when the job has ended and its changes are taken over, however late
    ///   that is; not if the job had no turn.
    /// - Throws: `BLEError` with the codes of the job; `.timedOut` if the disk does not respond: the job may be done
    ///   later. `.cancelled`.
    func change<Value: Sendable>(
        during operation: String, _ job: @escaping Job<Value>, afterwards: @escaping @Sendable () -> Void = {}
    ) async throws(BLEError) -> Value {
        let context = CallContext(.text(operation), until: loop.now() + Self.storageTime)
        try await takeTurn(in: context)
        guard case .open(let store) = state else {
            passTurn()
            throw BLEError(.adapterDown, during: operation, because: "the bonds are not open")
        }
        return try await work(in: context, afterwards: afterwards) {
            do throws(BLEError) {
                let value = try job(store)
                // What the job has done is done, whether or not the file can be read after it.
                return (.success(value), Outcome(contents: try? store.load()))
            } catch {
                // Where this process may not write, another one may have changed the bonds. Elsewhere the file may just
                // have been set aside, and the bonds that are known stay in force.
                guard !store.isWritable, let contents = try? store.load(), contents.damage == nil else {
                    return (.failure(error), Outcome())
                }
                return (.failure(error), Outcome(contents: contents))
            }
        }
    }

    /// Reads the bonds again, which others may have changed. Where that fails, those that are known stay in force.
    func readAgain() async {
        do throws(BLEError) {
            try await change(during: "read the bonds again") { _ in }
        } catch {
            logger.debug("the bonds were not read again", metadata: ["reason": "\(error)"])
        }
    }

    /// Stores the bond that a pairing has made; returns the stored record.
    func save(
        _ record: BondRecord, replacing replaced: PeerID?, during operation: String
    ) async throws(BLEError) -> BondRecord {
        let minimum = configuration?.minimumKeySize ?? BondRules.minimumKeySize
        var record = record
        if configuration?.pinsAdapter == true { record.adapterPin = hardware }
        // It may have been forgotten in this run, and what it has signed before may have been recorded.
        record.peerSigning = record.peerSigning.map(acceptedSignatures.current)
        let (made, signatures) = (record, acceptedSignatures)
        let stored = try await change(during: operation) { store throws(BLEError) in
            let stored = try store.save(made, isForStorage: true, replacing: replaced, minimumKeySize: minimum)
            if let signing = stored.peerSigning { signatures.stored(signing.counter, by: signing.key) }
            return stored
        }
        if self.stored.first(where: { $0.identity == stored.identity }) != stored {
            use(self.stored.filter { $0.identity != stored.identity } + [stored])
        }
        return stored
    }

    /// Removes the bond with a peer.
    func forget(_ identity: PeerID, during operation: String) async throws(BLEError) {
        _ = try await change(during: operation) { store throws(BLEError) in try store.forget(identity) }
        lostPeers.remove(identity)
        if record(of: identity) != nil { use(stored.filter { $0.identity != identity }) }
    }

    /// Records that a peer does not accept its key, in this process at once, and on the disk if that is possible.
    func markRejected(_ identity: PeerID) async {
        guard isOpen, let time = configuration?.timeOfDay() else { return }
        if let record = record(of: identity), rejections[identity]?.generation != record.generation {
            rejections[identity] = (record.generation, time)
            use(stored)
        }
        do throws(BLEError) {
            _ = try await change(during: "mark the bond") { store throws(BLEError) in
                try store.markRejected(identity, at: time)
            } afterwards: {
                // If the key has worked again meanwhile, that was noted before the mark, or not at all.
                if self.rejections[identity] == nil { self.recordEncryption(identity) }
            }
        } catch {
            // The peer may be connected to over and over.
            guard unmarked.insert(identity).inserted else { return }
            logger.warning(
                "a bond that the peer rejects could not be marked on the disk: the next run does not know of it",
                metadata: ["peer": "\(identity)", "reason": "\(error)"])
        }
    }

    /// Records, at most once an hour, that the key of a bond works.
    func recordEncryption(_ identity: PeerID) {
        guard isOpen, let time = configuration?.timeOfDay(), let record = record(of: identity) else { return }
        let isRecent =
            record.lastEncryptedAt.map { max($0, time) - min($0, time) < OpenBondStore.timeBetweenNotes } ?? false
        if rejections.removeValue(forKey: identity) != nil { use(stored) }
        if record.state == .good, isRecent { return }
        guard encryptionsToNote.insert(identity).inserted else { return }
        Task(executorPreference: loop) {
            defer { _ = self.encryptionsToNote.remove(identity) }
            // The disk may have stored a mark while the note waited for its turn. It is tried once more at most: the
            // disk may be full.
            for _ in 1...2 {
                do throws(BLEError) {
                    _ = try await self.change(during: "note the encryption") { store throws(BLEError) in
                        try store.noteEncrypted(identity, at: time)
                    }
                    return
                } catch {
                    self.logger.debug("an encryption was not noted", metadata: ["reason": "\(error)"])
                }
                guard let record = self.record(of: identity), record.state != .good, self.rejections[identity] == nil
                else { return }
            }
        }
    }

    // MARK: Signatures

    /// Whether a write can be signed with the key of a bond.
    func canSign(_ bond: BondID) -> Bool { signers.canSign(bond) }

    /// Signs a write with the key of a bond, if counters are reserved.
    func sign(_ value: [UInt8], for handle: AttributeHandle, with bond: BondID) -> BondSigners.Outcome {
        signers.sign(value, for: handle, with: bond)
    }

    /// Reserves counters on the disk; returns whether some were left.
    func reserveSignatures(
        of bond: BondID, during operation: String, _ code: @escaping BondSigners.Code
    ) async throws(BLEError) -> Bool {
        let identity = bond.identity
        let reserved = try await change(during: operation) {
            store throws(BLEError) -> (signing: BondRecord.Signing, count: UInt32)? in
            // Fewer may be left.
            for count in [BondSigners.block, 1] {
                if let signing = try store.reserveSignatures(count, for: identity) { return (signing, count) }
            }
            return nil
        }
        guard let reserved else { return false }
        signers.add(reserved.signing, count: reserved.count, of: bond, code)
        return true
    }

    /// Accepts the counter of a signed write of a peer; returns why not, if it does not. The disk has it before,
    /// or higher ones.
    func acceptSignature(
        _ counter: UInt32, by key: Secret128, during operation: String
    ) async throws(BLEError) -> CounterFault? {
        let signatures = acceptedSignatures
        // Other writes, or the end of a local peripheral, may come between storing and accepting.
        while let signing = records.compactMap(\.peerSigning).first(where: { $0.key == key }) {
            switch signatures.accept(counter, by: signing, at: loop.now()) {
            case .accepted: return nil
            case .used: return .used
            case .skipsTooOften: return .skipsTooOften
            case .needsStorage(let lowest):
                let isStored = try await change(during: operation) { store throws(BLEError) in
                    let lowest = signatures.raise(to: lowest, by: key)
                    guard try store.storeAcceptedCounters([key: lowest]) else { return false }
                    signatures.stored(lowest, by: key)
                    return true
                }
                guard isStored else { return .noBond }
            }
        }
        return .noBond
    }

    /// Has the disk keep the exact counters of the signed writes that were accepted, so that the next run skips none.
    func storeExactCounters() async {
        let signatures = acceptedSignatures
        guard isOpen, signatures.isAhead else { return }
        do throws(BLEError) {
            try await change(during: "store the counters of signatures") { store throws(BLEError) in
                _ = try store.storeAcceptedCounters(signatures.takeExact())
            }
        } catch {
            logger.warning(
                "the counters of signed writes are not stored: the next run drops up to \(AcceptedSignatures.block) of each central",
                metadata: ["reason": "\(error)"])
        }
    }

    // MARK: The disk

    private func takeTurn(in context: CallContext) async throws(BLEError) {
        while isWorking {
            switch await turns.wait(until: context.deadline, { _ in isWorking ? nil : () }) {
            case .resumed: continue
            case .timedOut: throw diskError(during: context.operation)
            case .cancelled: throw BLEError(.cancelled, during: context.operation, because: "the task was cancelled")
            }
        }
        isWorking = true
    }

    private func passTurn() {
        isWorking = false
        turns.resumeAll()
    }

    /// Does a job whose turn it is. It is not cancelled: what the disk has begun cannot be undone.
    private func work<Value: Sendable>(
        in context: CallContext, afterwards: @Sendable @escaping () -> Void,
        _ job: @Sendable @escaping () -> (Result<Value, BLEError>, Outcome)
    ) async throws(BLEError) -> Value {
        let result = Lock<Result<Value, BLEError>?>(nil)
        let isLate = Lock(false)
        Task(executorPreference: loop) {
            var outcome = Outcome()
            do throws(WorkFailure) {
                outcome = try await self.disk.run(on: self.loop) { () -> Outcome in
                    let (done, outcome) = job()
                    result.withLock { $0 = done }
                    return outcome
                }
            } catch {
                result.withLock { $0 = .failure(.noRoom(during: context.operation)) }
            }
            self.ended(outcome, isLate: isLate.withLock { $0 })
            afterwards()
        }
        _ = await workers.wait(until: context.deadline, interruption: .ignoresCancellation) { _ in
            result.withLock { $0 == nil } || isWorking ? nil : ()
        }
        guard let result = result.withLock({ $0 }) else {
            isLate.withLock { $0 = true }
            throw diskError(during: context.operation)
        }
        return try result.get()
    }

    private func ended(_ outcome: Outcome, isLate: Bool) {
        if let opened = outcome.opened {
            state = .open(opened)
            unreportedDamage = outcome.contents?.damage
        } else if case .opening = state {
            state = .closed
        }
        if let found = outcome.contents?.damage { damage = found }
        if let contents = outcome.contents { lostPeers = contents.lostPeers }
        if let contents = outcome.contents, contents.records != stored { use(contents.records, isLate: isLate) }
        isWorking = false
        workers.resumeAll()
        turns.resumeAll()
    }

    private func use(_ stored: [BondRecord], isLate: Bool = false) {
        // A peer may have a counter change with each of its writes; nothing else goes by them.
        let isOther = stored.map(\.withoutCounters) != self.stored.map(\.withoutCounters)
        // A mark or a note changes nothing that the kernel has.
        let areKeysLate =
            isLate
            && BondRules.keyLists(of: stored, adapter: hardware)
                != BondRules.keyLists(of: self.stored, adapter: hardware)
        self.stored = stored
        records = stored.map { record in
            guard let rejection = rejections[record.identity], rejection.generation == record.generation,
                record.state == .good
            else { return record }
            var record = record
            record.state = .rejected(since: rejection.since)
            return record
        }
        let known = Set(records.map { $0.identity })
        rejections = rejections.filter { known.contains($0.key) }
        linkEnds = linkEnds.filter { known.contains($0.key) }
        unmarked.formIntersection(known)
        acceptedSignatures.limit(to: Set(records.compactMap(\.peerSigning?.key)))
        if isOther { changeHandler?(areKeysLate) }
    }

    private func diskError(during operation: String) -> BLEError {
        BLEError(
            .timedOut, subject: configuration?.bonds.directory, during: operation,
            because: "the disk with the bonds has not responded in time",
            hint: "`dmesg` may show what is wrong with it.")
    }
}

extension BondRecord {
    /// The record without the counters of its signatures.
    fileprivate var withoutCounters: BondRecord {
        var record = self
        record.signing?.counter = nil
        record.peerSigning?.counter = nil
        return record
    }
}
