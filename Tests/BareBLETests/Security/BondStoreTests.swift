import BLECore
import BareBLE
import Foundation
import TestSupport
import Testing

/// The storage rules of bonds, on a real disk. What a disk or a killed process does to a file is in FaultTests.
@Suite struct BondStoreTests {
    private static let adapter = BluetoothAddress("00:AA:01:00:00:42")!
    private static let now: UInt64 = 1_790_010_000

    private let parent: Folder
    private let directory: String
    private let store: BondStore
    private let first = RecordedBonds.first
    private let second = RecordedBonds.second

    init() throws {
        parent = try Folder()
        directory = parent.path + "/bonds"
        store = try BondStore(directory: directory)
    }

    private var path: String { directory + "/00AA01000042.bonds" }
    private var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted()
    }

    private func open() throws(BLEError) -> OpenBondStore { try store.open(adapter: Self.adapter) }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    private func setMode(_ mode: Int, of path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private func write(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(filePath: path))
        try setMode(0o600, of: path)
    }

    private var contents: [UInt8] { get throws { [UInt8](try Data(contentsOf: URL(filePath: path))) } }

    private func failure(_ body: () throws(BLEError) -> Void) -> BLEError? {
        do throws(BLEError) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    @Test func bondsAreKeptForTheirOwnerAlone() throws {
        var opened: OpenBondStore? = try open()
        #expect(try opened?.load().records.isEmpty == true)
        let stored = try #require(try opened?.save(first, isForStorage: true))
        #expect(stored.generation == 1)
        _ = try opened?.save(second, isForStorage: true)
        #expect(names == ["00AA01000042.bonds", "00AA01000042.lock"], "nothing temporary is left")
        #expect(try mode(directory) == 0o700)
        for name in names { #expect(try mode("\(directory)/\(name)") == 0o600) }
        opened = nil
        let contents = try BondStore(directory: directory).open(adapter: Self.adapter).load()
        #expect(contents.records.map(\.keys) == [first.keys, second.keys])
        #expect(contents.records.map(\.generation) == [1, 2])
        #expect(contents.generation == 2)
        #expect(contents.damage == nil)
        #expect(store.directory == directory)
    }

    @Test func eachAdapterHasBondsOfItsOwn() throws {
        _ = try open().save(first, isForStorage: true)
        let other = try store.open(adapter: BluetoothAddress("00:AA:01:00:00:43")!)
        #expect(try other.load().records.isEmpty)
        _ = try other.save(second, isForStorage: true)
        #expect(try open().load().records.map(\.identity) == [first.identity])
        #expect(names.filter { $0.hasSuffix(".bonds") } == ["00AA01000042.bonds", "00AA01000043.bonds"])
    }

    @Test func oneProcessHasThemAtATime() throws {
        var opened: OpenBondStore? = try open()
        let error = try #require(failure { () throws(BLEError) in _ = try open() })
        #expect(error.code == .busy)
        #expect(error.reason == "this process has it")
        #expect(error.hint != nil)
        _ = try opened?.load()
        opened = nil
        _ = try open()
    }

    /// Each change reads what the one before has written.
    @Test(.row("O28")) func changesOfSeveralTasksAreAllKept() async throws {
        let opened = try open()
        let records = (0..<32).map { RecordedBonds.numbered($0) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for record in records {
                group.addTask { _ = try opened.save(record, isForStorage: true) }
            }
            try await group.waitForAll()
        }
        let stored = try opened.load()
        #expect(Set(stored.records.map(\.identity)) == Set(records.map(\.identity)))
        #expect(stored.records.map(\.generation) == Array(1...32))
    }

    @Test func bondsInMemoryGoWithTheirStore() throws {
        let memory = BondStore.inMemory
        #expect(memory.directory == nil)
        _ = try memory.open(adapter: Self.adapter).save(first, isForStorage: true)
        let again = try memory.open(adapter: Self.adapter)
        #expect(try again.load().records.map(\.identity) == [first.identity])
        #expect(try again.markRejected(first.identity, at: 5))
        #expect(try again.forget(first.identity))
        #expect(try again.load().records.isEmpty)
        #expect(try BondStore.inMemory.open(adapter: Self.adapter).load().records.isEmpty)
    }

    // MARK: Rule 4: what is not stored

    @Test func whatIsNotFitForStorageChangesNothing() throws {
        let opened = try open()
        _ = try opened.save(second, isForStorage: true)
        let before = try contents
        let short = first.with {
            $0.size = 7
            $0.key = RecordedBonds.secret("ef8c26c1e45e8c000000000000000000")
        }
        func code(_ record: BondRecord, isForStorage: Bool = true) -> BLEError.Code? {
            let error = failure { () throws(BLEError) in
                _ = try opened.save(record, isForStorage: isForStorage)
            }
            #expect(error?.description.contains("ef8c26") == false)
            return error?.code
        }
        #expect(code(first, isForStorage: false) == .bondNotStored)
        #expect(code(short) == .keyTooShort)
        #expect(code(first.with { $0.key = .zero }) == .bondNotStored)
        #expect(code(first.with { $0.kind = .debug }) == .bondNotStored)
        #expect(try contents == before)
        _ = try opened.save(short, isForStorage: true, minimumKeySize: 7)
        #expect(try opened.load().records.count == 2)
    }

    @Test(.row("S08")) func anIdentityKeyOfAnotherBondIsKept() throws {
        let opened = try open()
        _ = try opened.save(first, isForStorage: true)
        let twin = RecordedBonds.numbered(1).with(identityKey: first.identityKey)
        let stored = try opened.save(twin, isForStorage: true)
        #expect(stored.identityKey == first.identityKey)
        #expect(try opened.load().records.last == stored)
        #expect(!Bond(stored, adapter: opened.adapter, sharedKeys: [twin.resolvingKey!.key]).resolvesPrivateAddresses)
        #expect(Bond(stored, adapter: opened.adapter).resolvesPrivateAddresses)
    }

    // MARK: Rule 5: replacing

    @Test(.row("S05")) func aBondIsReplacedByRequestAndNeverByAWeakerOne() throws {
        let opened = try open()
        let stored = try opened.save(first, isForStorage: true)
        let before = try contents
        #expect(
            failure { () throws(BLEError) in _ = try opened.save(first, isForStorage: true) }?.code == .bondNotStored)
        let weaker = first.with(keys: RecordedBonds.legacy, level: .authenticated)
        let error = failure { () throws(BLEError) in
            _ = try opened.save(weaker, isForStorage: true, replacing: weaker.identity)
        }
        #expect(error?.code == .bondNotStored)
        #expect(error?.hint != nil)
        #expect(try contents == before)
        let new = first.with { $0.key = RecordedBonds.secret("0f0e0d0c0b0a09080706050403020100") }
        let replaced = try opened.save(new, isForStorage: true, replacing: new.identity)
        #expect(replaced.generation == stored.generation + 1)
        #expect(try opened.load().records == [replaced])
    }

    @Test func aPairingThatBeganUnderOtherBondsIsNotStored() throws {
        let opened = try open()
        let generation = try opened.load().generation
        _ = try opened.save(second, isForStorage: true, begunUnder: generation)
        let error = failure { () throws(BLEError) in
            _ = try opened.save(first, isForStorage: true, begunUnder: generation)
        }
        #expect(error?.code == .bondNotStored)
        #expect(error?.hint != nil)
        #expect(try opened.load().records.map(\.identity) == [second.identity])
        let next = try opened.load().generation
        // Notes about a bond do not change what the kernel has.
        _ = try opened.markRejected(second.identity, at: Self.now)
        _ = try opened.noteEncrypted(second.identity, at: Self.now)
        #expect(try opened.load().generation == next)
        #expect(try opened.forget(second.identity))
        #expect(try opened.load().generation > next)
    }

    // MARK: Rule 7: forgetting

    @Test func aForgottenBondIsNotOnTheDiskAnyMore() throws {
        let opened = try open()
        _ = try opened.save(first, isForStorage: true)
        _ = try opened.save(second, isForStorage: true)
        #expect(try opened.forget(first.identity))
        #expect(try opened.load().records.map(\.identity) == [second.identity])
        #expect(!String(decoding: try contents, as: UTF8.self).contains("ef8c26c1"))
        let before = try contents
        #expect(try !opened.forget(first.identity), "it was forgotten before")
        #expect(try !opened.forget(RecordedBonds.numbered(9).identity))
        #expect(try contents == before)
        #expect(try opened.forget(second.identity))
        #expect(try opened.load().records.isEmpty)
    }

    // MARK: Rule 8: a rejection

    @Test func aRejectionChangesOneField() throws {
        let opened = try open()
        var stored = try opened.save(first, isForStorage: true)
        let before = try contents
        #expect(try opened.markRejected(first.identity, at: Self.now))
        stored.state = .rejected(since: Self.now)
        #expect(try opened.load().records == [stored])
        let fields = [before, try contents].map { bytes in
            String(decoding: bytes, as: UTF8.self).split(whereSeparator: { $0 == " " || $0 == "\n" }).dropLast()
        }
        #expect(zip(fields[0], fields[1]).filter { $0 != $1 }.map { "\($0.1)" } == ["state=rejected:\(Self.now)"])
        #expect(try opened.markRejected(first.identity, at: Self.now + 5))
        #expect(try opened.load().records == [stored], "the first time counts")
        #expect(try !opened.markRejected(second.identity, at: Self.now))
        // A key that works was not lost: the rejection was somebody else's.
        #expect(try opened.noteEncrypted(first.identity, at: Self.now + 9))
        #expect(try opened.load().records.map(\.state) == [.good])
    }

    @Test func encryptionsAreNotedHourly() throws {
        let opened = try open()
        _ = try opened.save(RecordedBonds.numbered(1), isForStorage: true)
        let identity = RecordedBonds.numbered(1).identity
        func noted(_ time: UInt64) throws -> UInt64? {
            #expect(try opened.noteEncrypted(identity, at: time))
            return try opened.load().records.first?.lastEncryptedAt
        }
        #expect(try noted(Self.now) == Self.now)
        #expect(try noted(Self.now + 3_599) == Self.now)
        #expect(try noted(Self.now + 3_600) == Self.now + 3_600)
        #expect(try noted(5) == 5, "the clock was set back")
        #expect(try !opened.noteEncrypted(first.identity, at: Self.now))
    }

    /// Its writes from before could be recorded, and be sent again.
    @Test(.row("P19")) func thePeersCounterStaysWithItsKey() throws {
        let opened = try open()
        func counter(after key: Secret128) throws -> UInt32? {
            var record = first
            record.peerSigning = BondRecord.Signing(key: key, counter: 0)
            _ = try opened.save(record, isForStorage: true, replacing: first.identity)
            return try opened.load().records.first?.peerSigning?.counter
        }
        let (key, other) = (RecordedBonds.secret(String(repeating: "5a", count: 16)), try #require(second.signing).key)
        #expect(try counter(after: key) == 0)
        #expect(try opened.storeAcceptedCounters([key: 41, other: 7]))
        #expect(try !opened.storeAcceptedCounters([other: 7]))
        #expect(try counter(after: key) == 41)
        #expect(try counter(after: other) == 0)
    }

    @Test func signaturesAreReservedBeforeTheyAreUsed() throws {
        let opened = try open()
        _ = try opened.save(second, isForStorage: true)
        _ = try opened.save(first, isForStorage: true)
        let reserved = try #require(try opened.reserveSignatures(10, for: second.identity))
        #expect(reserved == second.signing)
        #expect(try opened.load().records.first?.signing?.counter == 51)
        #expect(try opened.reserveSignatures(.max, for: second.identity) == nil)
        #expect(try opened.reserveSignatures(1, for: second.identity)?.counter == 51)
        #expect(try opened.reserveSignatures(1, for: first.identity) == nil)
    }

    // MARK: Rule 9: keys are not shown

    @Test func aBondShowsNoKey() throws {
        let stored = try open().save(first, isForStorage: true)
        let bond = Bond(stored, adapter: Self.adapter)
        for text in ["\(bond)", String(reflecting: bond), "\(store)"] {
            for key in ["ef8c26", "239, 140", "000102"] { #expect(!text.lowercased().contains(key)) }
        }
        #expect(bond.peer == first.identity && bond.adapter == Self.adapter && bond.name == "Front door")
        #expect(bond.isAuthenticated && !bond.isLegacyPasskey && bond.keySize == 16)
        #expect(bond.method == .passkeyTyped && bond.resolvesPrivateAddresses)
        #expect(bond.bondedAt == 1_790_000_000 && bond.lastEncryptedAt == 1_790_003_600 && bond.rejectedSince == nil)
        // Somebody who listened to a legacy pairing with a passkey has the key.
        let legacy = Bond(second, adapter: Self.adapter)
        #expect(!legacy.isAuthenticated && legacy.isLegacyPasskey && !legacy.resolvesPrivateAddresses)
        #expect(legacy.rejectedSince == 1_790_000_002)
    }

    // MARK: Rule 10: damage

    @Test func aDamagedFileIsMovedAsideAndReportedOnce() throws {
        let opened = try open()
        let good = BondFile(generation: 3, records: [first]).bytes
        var flipped = good
        flipped[40] ^= 1
        let files = [[], Array(good.dropLast(1)), flipped, good + [0x0A]]
        // What was set aside before stays: it may be all that is left of other bonds.
        let places = ["", "-2", "-3", "-4"].map { path + ".damaged" + $0 }
        for (bytes, place) in zip(files, places) {
            try write(bytes)
            let read = try opened.load()
            #expect(read.records.isEmpty)
            #expect(read.damage?.code == .unusableState)
            #expect(read.damage?.description.contains("ef8c26") == false)
            #expect(read.movedTo == place)
            #expect(try mode(place) == 0o600)
            #expect(try opened.load().damage == nil)
        }
        for (bytes, place) in zip(files, places) {
            #expect(try [UInt8](Data(contentsOf: URL(filePath: place))) == bytes)
        }
        _ = try opened.save(first, isForStorage: true)
        #expect(try opened.load().records.map(\.identity) == [first.identity])
    }

    /// The peers of these bonds may be connected to in any later run.
    @Test(arguments: [".damaged", ".other-version"]) func whatIsMovedAsideIsReportedByEachRunUntilItIsRemoved(
        ending: String
    ) throws {
        let other = Array("BareBLE bonds 2 generation 9\nx\nchecksum 62337766\n".utf8)
        try write(ending == ".damaged" ? [1, 2, 3] : other)
        #expect(try open().load().movedTo == path + ending)
        for _ in 1...2 {
            let opened = try open()
            let read = try opened.loadFirst()
            #expect(read.records.isEmpty && read.movedTo == nil)
            #expect(read.damage?.code == .unusableState && read.damage?.subject == path)
            #expect(read.damage?.hint?.contains(path + ending) == true)
            #expect(try opened.load().damage == nil, "once in a run")
        }
        let listed = try store.all()
        #expect(listed.map(\.adapter) == [Self.adapter] && listed.first?.records.isEmpty == true)
        #expect(listed.first?.damage == nil && listed.first?.movedAside?.code == .unusableState)
        // Bonds that are made meanwhile can be used, and are no decision about the others.
        _ = try open().save(first, isForStorage: true)
        let read = try open().loadFirst()
        #expect(read.records.map(\.identity) == [first.identity] && read.damage != nil)
        #expect(try store.all().map(\.records.count) == [1])
        #expect(try store.all().first?.movedAside != nil)
        try FileManager.default.removeItem(atPath: path + ending)
        #expect(try open().loadFirst().damage == nil)
        #expect(try store.all().first?.movedAside == nil)
    }

    @Test func whatIsNotMovedAsideIsNotReported() throws {
        _ = try open().save(first, isForStorage: true)
        for ending in [".damaged.7.1.tmp", ".damaged-", ".damaged-x", ".damaged2", ".copy"] {
            try Data([1]).write(to: URL(filePath: path + ending))
        }
        // The one of another adapter.
        try Data([1]).write(to: URL(filePath: directory + "/00AA01000043.bonds.damaged"))
        #expect(try open().loadFirst().damage == nil)
        #expect(try store.all().map { $0.movedAside == nil } == [true, false])
    }

    @Test func aFileOfANewerVersionIsKeptAside() throws {
        let bytes = Array("BareBLE bonds 2 generation 9\nx\nchecksum 62337766\n".utf8)
        try write(bytes)
        let read = try open().load()
        #expect(read.records.isEmpty)
        #expect(read.movedTo == path + ".other-version")
        #expect(try [UInt8](Data(contentsOf: URL(filePath: path + ".other-version"))) == bytes)
    }

    @Test func aDamagedLineIsMovedAsideAlone() throws {
        let lines = RecordedBonds.secondLine + "nonsense\n"
        let body = "BareBLE bonds 1 generation 9\n" + lines
        let checksum = CRC32.checksum(body.utf8)
        let digits = String(checksum, radix: 16)
        let padded = String(repeating: "0", count: 8 - digits.count) + digits
        try write(Array((body + "checksum \(padded)\n").utf8))
        let opened = try open()
        let read = try opened.load()
        #expect(read.records == [second])
        #expect(read.generation == 9)
        #expect(read.damage?.code == .unusableState)
        #expect(read.damage?.reason == "1 of its lines are not bonds: line 3 (identity)")
        #expect(read.movedTo == path + ".damaged")
        let aside = try String(contentsOf: URL(filePath: path + ".damaged"), encoding: .utf8)
        #expect(aside.contains("\nnonsense\n"))
        #expect(try mode(path + ".damaged") == 0o600)
        let again = try opened.load()
        #expect(again.damage == nil)
        #expect(again.records == [second])
        // The same once more: the first one stays.
        try write(Array((body + "checksum \(padded)\n").utf8))
        #expect(try opened.load().movedTo == path + ".damaged-2")
        #expect(try String(contentsOf: URL(filePath: path + ".damaged"), encoding: .utf8) == aside)
    }

    /// The bond may be gone with the file, or be one of those that are left.
    @Test func aBondOfADamagedFileIsForgottenByTheNextCall() throws {
        let opened = try open()
        _ = try opened.save(first, isForStorage: true)
        try write(try contents + [1])
        let error = failure { () throws(BLEError) in _ = try opened.forget(first.identity) }
        #expect(error?.code == .unusableState && error?.hint?.contains(path + ".damaged") == true)
        #expect(try !opened.forget(first.identity))
        #expect(try opened.load().records.isEmpty)
    }

    /// In the run that has moved it, and in later ones; whether the whole file was damaged or one line.
    @Test(arguments: [false, true]) func thePeerOfABondThatWasMovedAsideIsKnown(isOneLine: Bool) throws {
        let opened = try open()
        _ = try opened.save(first, isForStorage: true)
        let body =
            "BareBLE bonds 1 generation 9\n" + RecordedBonds.secondLine.replacing("level=3", with: "level=9")
        let checksum = String(CRC32.checksum(body.utf8), radix: 16)
        let digits = isOneLine ? String(repeating: "0", count: 8 - checksum.count) + checksum : "no number"
        try write(Array((body + "checksum \(digits)\n").utf8))
        // Before anything is moved.
        #expect(try store.all().map(\.lostPeers) == [[second.identity]])
        let read = try opened.load()
        #expect(read.movedTo == path + ".damaged" && read.lostPeers == [second.identity])
        #expect(try opened.load().lostPeers == [second.identity])
        #expect(try store.all().map(\.lostPeers) == [[second.identity]])
        // A decision about another peer is none about this one.
        _ = try opened.save(first, isForStorage: true)
        #expect(try opened.forget(first.identity))
        #expect(try opened.load().lostPeers == [second.identity])
        #expect(try !opened.forget(second.identity), "it could not be used")
        #expect(try opened.load().lostPeers.isEmpty)
        #expect(!names.contains { $0.contains(".damaged") }, "nothing was left in it")
        #expect(try opened.loadFirst().damage == nil)
    }

    @Test func aBondIsForgottenInEachFileThatItWasMovedTo() throws {
        let opened = try open()
        let file = Array("BareBLE bonds 1\n\(RecordedBonds.firstLine)\(RecordedBonds.secondLine)".utf8)
        for _ in 1...2 {
            try write(file)
            #expect(try opened.load().lostPeers == [first.identity, second.identity])
        }
        #expect(try !opened.forget(first.identity))
        for ending in [".damaged", ".damaged-2"] {
            let text = try String(contentsOf: URL(filePath: path + ending), encoding: .utf8)
            #expect(text == "BareBLE bonds 1\n\(RecordedBonds.secondLine)")
            #expect(try mode(path + ending) == 0o600)
        }
        #expect(try opened.load().lostPeers == [second.identity])
        // Nothing is known of what others may read.
        try setMode(0o644, of: path + ".damaged")
        try setMode(0o644, of: path + ".damaged-2")
        #expect(try opened.load().lostPeers.isEmpty)
        #expect(try opened.loadFirst().damage != nil)
    }

    /// What a running program remembers of a bond is known by its version: a new bond never has the one of an earlier.
    @Test func theVersionNeverRestartsWhileTheStoreIsOpen() throws {
        let opened = try open()
        let copy = try opened.save(first, isForStorage: true)
        let bytes = try contents
        _ = try opened.save(second, isForStorage: true)
        var versions = [copy.generation, try opened.load().generation]
        for change in [
            { try FileManager.default.removeItem(atPath: path) },
            {
                try write([1, 2, 3])
                _ = try opened.load()
            },
            { try write(bytes) },
        ] as [() throws -> Void] {
            try change()
            #expect(try opened.load().generation == versions.last)
            versions.append(try opened.save(first, isForStorage: true, replacing: first.identity).generation)
        }
        #expect(versions == versions.sorted() && Set(versions).count == versions.count, "\(versions)")
    }

    /// A change never replaces a damaged file without a notice.
    @Test func aChangeOfADamagedFileFailsOnce() throws {
        let opened = try open()
        try write([1, 2, 3])
        let error = failure { () throws(BLEError) in _ = try opened.save(first, isForStorage: true) }
        #expect(error?.code == .unusableState)
        #expect(error?.hint?.contains(path + ".damaged") == true)
        #expect(names.contains("00AA01000042.bonds.damaged"))
        _ = try opened.save(first, isForStorage: true)
        #expect(try opened.load().records.map(\.identity) == [first.identity])
    }

    @Test func whatIsTooLargeOrNoFileIsMovedAside() throws {
        let opened = try open()
        try write([UInt8](repeating: 0x20, count: BondFile.byteLimit + 1))
        #expect(try opened.load().damage?.code == .unusableState)
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try FileManager.default.removeItem(atPath: path + ".damaged")
        #expect(try opened.load().damage?.code == .unusableState)
        _ = try opened.save(first, isForStorage: true)
    }

    // MARK: The owner's alone

    @Test(arguments: [0o644, 0o640, 0o620, 0o606]) func aFileThatOthersMayUseIsRefused(mode: Int) throws {
        let opened = try open()
        _ = try opened.save(first, isForStorage: true)
        let before = try contents
        try setMode(mode, of: path)
        let error = failure { () throws(BLEError) in _ = try opened.load() }
        #expect(error?.code == .notPermitted)
        #expect(error?.hint != nil)
        #expect(failure { () throws(BLEError) in _ = try opened.forget(first.identity) }?.code == .bondNotStored)
        #expect(try contents == before)
        try setMode(0o600, of: path)
        #expect(try opened.load().records.count == 1)
    }

    @Test(arguments: [0o770, 0o707, 0o1777]) func aDirectoryThatOthersMayWriteToIsRefused(mode: Int) throws {
        let opened = try open()
        try setMode(mode, of: directory)
        #expect(failure { () throws(BLEError) in _ = try BondStore(directory: directory) }?.code == .notPermitted)
        #expect(failure { () throws(BLEError) in _ = try opened.load() }?.code == .notPermitted)
        #expect(
            failure { () throws(BLEError) in _ = try opened.save(first, isForStorage: true) }?.code == .bondNotStored)
        try setMode(0o755, of: directory)
        _ = try opened.save(first, isForStorage: true)
    }

    @Test(.enabled(if: geteuid() == 0)) func whatBelongsToAnotherUserIsRefused() throws {
        let opened = try open()
        _ = try opened.save(first, isForStorage: true)
        for changed in [path, directory] {
            try FileManager.default.setAttributes([.ownerAccountID: 65_534], ofItemAtPath: changed)
            let error = failure { () throws(BLEError) in _ = try opened.load() }
            #expect(error?.code == .notPermitted)
            #expect(error?.reason == "it belongs to another user")
            try FileManager.default.setAttributes([.ownerAccountID: 0], ofItemAtPath: changed)
        }
        #expect(try opened.load().records.count == 1)
    }

    @Test func noLinkIsFollowed() throws {
        let elsewhere = parent.path + "/elsewhere"
        try Data(BondFile(records: [first]).bytes).write(to: URL(filePath: elsewhere))
        try setMode(0o600, of: elsewhere)
        let opened = try open()
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: elsewhere)
        #expect(failure { () throws(BLEError) in _ = try opened.load() }?.code == .notPermitted)
        #expect(
            failure { () throws(BLEError) in _ = try opened.save(second, isForStorage: true) }?.code
                == .bondNotStored)
        #expect(try [UInt8](Data(contentsOf: URL(filePath: elsewhere))) == BondFile(records: [first]).bytes)
        // The lock of another adapter.
        try FileManager.default.createSymbolicLink(
            atPath: directory + "/00AA01000043.lock", withDestinationPath: parent.path + "/nowhere")
        #expect(
            failure { () throws(BLEError) in _ = try store.open(adapter: BluetoothAddress("00:AA:01:00:00:43")!) }?.code
                == .notPermitted)
        #expect(!parent.names.contains("nowhere"))
    }

    @Test func aDirectoryNeedsAPlace() throws {
        #expect(
            failure { () throws(BLEError) in _ = try BondStore(directory: directory + "/none/bonds") }?.code == .system)
        try write([1])
        #expect(failure { () throws(BLEError) in _ = try BondStore(directory: path) }?.code == .system)
    }

    // MARK: Many bonds

    @Test func aThousandBondsAreStoredAndLoaded() throws {
        let records = (0..<BondFile.recordLimit).map { RecordedBonds.numbered($0) }
        try write(BondFile(generation: 1_024, records: records).bytes)
        let opened = try open()
        #expect(try opened.load().records == records)
        #expect(
            failure { () throws(BLEError) in _ = try opened.save(first, isForStorage: true) }?.code == .bondNotStored)
        #expect(try opened.forget(records[512].identity))
        let stored = try opened.save(first, isForStorage: true)
        let read = try opened.load().records
        #expect(read == records.prefix(512) + records.suffix(511) + [stored])
        let lists = BondRules.keyLists(of: read)
        #expect(lists.longTermKeys.keys.count == 1_024 && lists.identities.keys.count == 1_024)
        #expect(lists.omissions.isEmpty)
    }
}
