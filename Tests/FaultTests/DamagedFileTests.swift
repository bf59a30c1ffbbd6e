import BLELinux
import BareBLE
import Foundation
import TestSupport
import Testing

/// Files that are damaged, foreign, old, or in use by another process.
@Suite(.serialized) struct DamagedFileTests {
    private func code(_ body: () throws(BLEError) -> Void) -> BLEError.Code? {
        do throws(BLEError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    /// Loads `bytes`: a state, or a file of bonds, is moved aside and reported, a cache is refused.
    private func isRefused(_ thing: StoredThing, _ bytes: [UInt8], in folder: Folder) throws -> Bool {
        try thing.put(bytes, in: folder)
        // What was moved aside is read each time, so thousands of files would take minutes.
        defer { folder.removeContents() }
        do throws(BLEError) {
            return try thing.load(from: folder) == nil
        } catch {
            #expect(error.code == .unusableCache)
            #expect(error.hint != nil)
            return true
        }
    }

    @Test("empty, cut anywhere, each bit flipped", .row("O25"), arguments: StoredThing.all) func damagedFilesAreRefused(
        thing: StoredThing
    )
        throws
    {
        let folder = try Folder(inMemory: true)
        let bytes = thing.bytes(.old)
        for count in 0..<bytes.count { #expect(try isRefused(thing, Array(bytes.prefix(count)), in: folder)) }
        for index in bytes.indices {
            for bit in 0..<8 {
                var flipped = bytes
                flipped[index] ^= 1 << bit
                #expect(try isRefused(thing, flipped, in: folder), "byte \(index), bit \(bit)")
            }
        }
        #expect(try isRefused(thing, bytes + [0], in: folder))
        #expect(try !isRefused(thing, bytes, in: folder))
    }

    @Test("100 MB, of which little is read", .row("O25"), arguments: StoredThing.all) func ofAHugeFileLittleIsRead(
        thing: StoredThing
    )
        throws
    {
        let folder = try Folder(inMemory: true)
        let path = thing.path(in: folder)
        try thing.put(thing.bytes(.old), in: folder)
        let grown = unsafe truncate(path, 100_000_000)
        #expect(grown == 0)
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        switch thing.description {
        case "cache": #expect(code { () throws(BLEError) in _ = try thing.load(from: folder) } == .unusableCache)
        default: #expect(try thing.load(from: folder) == nil)
        }
        let read = plan.notes.filter { $0.call == .read && $0.result > 0 }.reduce(0) { $0 + Int($1.result) }
        #expect(read < 2_000_000)
        #expect(plan.openCount == 0)
        try thing.save(.new, in: folder)
        #expect(try thing.load(from: folder) == .new)
    }

    @Test("the same peer twice", .row("O25")) func aPeerMayBeListedTwice() throws {
        let folder = try Folder(inMemory: true)
        let peer = RestorationState.Peer(PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random))
        let store = try StateStore(directory: folder.path, identifier: "hub").open()
        try store.save(RestorationState(peers: [peer, peer]))
        let contents = try store.load()
        #expect(contents.damage == nil)
        #expect(contents.state.peers == [peer, peer])
    }

    @Test(
        "a file that cannot be moved aside is an error, not a loss", .row("O25"),
        arguments: [StoredThing.state, .bonds])
    func notMovable(thing: StoredThing) throws {
        let folder = try Folder(inMemory: true)
        try thing.put([1, 2, 3], in: folder)
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        plan.set(SystemCalls(.rename), .fail(EROFS))
        #expect(code { () throws(BLEError) in _ = try thing.load(from: folder) } == .notPermitted)
        #expect(try Data(contentsOf: URL(filePath: thing.path(in: folder))) == Data([1, 2, 3]))
        #expect(plan.openCount == 0)
    }

    @Test("reading fails at each call", .row("O25"), arguments: StoredThing.all, [EIO, EACCES, EMFILE, ENOMEM])
    func readingFailsAtEachCall(thing: StoredThing, errno: Int32) throws {
        let folder = try Folder(inMemory: true)
        try thing.save(.old, in: folder)
        let kinds = SystemCalls(.open, .read, .fstat, .flock)
        var index = 0
        while true {
            let plan = try FaultPlan()
            plan.take(path: folder.path)
            plan.set(kinds, .fail(errno), skip: index)
            do throws(BLEError) {
                #expect(try thing.load(from: folder) == .old)
            } catch {
                #expect(error.errorNumber == errno)
                #expect(error.hint != nil, "\(error)")
            }
            #expect(plan.openCount == 0)
            guard plan.hits == 1 else { break }
            plan.clear()
            #expect(try thing.load(from: folder) == .old, "nothing was lost")
            index += 1
        }
        #expect(index >= 3)
    }

    /// Bonds that others could read are refused: their keys may be known.
    @Test("what others could read is theirs no more", .row("O26"), arguments: [StoredThing.state, .cache])
    func whatOthersCouldReadIsMadePrivate(
        thing: StoredThing
    )
        throws
    {
        let folder = try Folder(inMemory: true)
        try thing.save(.old, in: folder)
        let opened = unsafe chmod(thing.path(in: folder), 0o644)
        #expect(opened == 0)
        try thing.save(.new, in: folder)
        let attributes = try FileManager.default.attributesOfItem(atPath: thing.path(in: folder))
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test("the mode of a new file is not the umask's", .row("O26"), arguments: StoredThing.all)
    func theModeOfANewFileIsNotTheUmasks(
        thing: StoredThing
    ) throws {
        let folder = try Folder(inMemory: true)
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        try thing.save(.new, in: folder)
        let calls = plan.notes.map(\.call)
        let mode = try #require(calls.lastIndex(of: .fchmod))
        let write = try #require(calls.lastIndex(of: .write))
        #expect(mode < write, "nobody may read it before it has bytes")
    }

    @Test("a lock that is a symbolic link is refused", .row("O26")) func aLockThatIsASymbolicLinkIsRefused() throws {
        let folder = try Folder(inMemory: true)
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/hub.lock", withDestinationPath: folder.path + "/elsewhere")
        do throws(BLEError) {
            _ = try StateStore(directory: folder.path, identifier: "hub").open()
            Issue.record("followed a link")
        } catch {
            #expect(error.code == .notPermitted)
            #expect(error.hint != nil)
        }
        #expect(folder.names == ["hub.lock"])
    }

    @Test("an older file that is sound is used", .row("O27"), arguments: StoredThing.all)
    func anOlderFileThatIsSoundIsUsed(thing: StoredThing)
        throws
    {
        let folder = try Folder(inMemory: true)
        try thing.save(.old, in: folder)
        let backup = try Data(contentsOf: URL(filePath: thing.path(in: folder)))
        try thing.save(.new, in: folder)
        try backup.write(to: URL(filePath: thing.path(in: folder)))
        #expect(try thing.load(from: folder) == .old)
    }

    @Test("the second writer fails, until the first has gone", .row("O28", "O08")) func twoWriters() throws {
        let folder = try Folder(inMemory: true)
        let store = StateStore(directory: folder.path, identifier: "hub")
        var first: OpenStateStore? = try store.open()
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        for _ in 0..<3 {
            do throws(BLEError) {
                _ = try store.open()
                Issue.record("opened twice")
            } catch {
                #expect(error.code == .busy)
                #expect(error.reason == "this process has it")
                #expect(error.hint != nil)
            }
        }
        #expect(plan.openCount == 0)
        #expect(plan.count(SystemCalls(.flock)) == 3, "nobody waits for it")
        try first?.save(RestorationState())
        first = nil
        _ = try store.open()
    }

    /// A process that is being started has a copy of each descriptor for a moment, and a lock would last as long as
    /// that.
    @Test("the store is free as soon as it is released", .row("O28", "O08")) func releasingTheStoreFreesIt() throws {
        let folder = try Folder(inMemory: true)
        let store = StateStore(directory: folder.path, identifier: "hub")
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        var first: OpenStateStore? = try store.open()
        let held = try #require(plan.notes.first { $0.call == .flock })
        let copy = dup(held.descriptor)
        #expect(copy >= 0)
        try first?.save(RestorationState())
        first = nil
        _ = try store.open()
        close(copy)
    }

    @Test("a file system without locks", .row("O28"), arguments: [ENOLCK, EOPNOTSUPP])
    func aFileSystemWithoutLocksIsRefused(errno: Int32) throws {
        let folder = try Folder(inMemory: true)
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        plan.set(SystemCalls(.flock), .fail(errno))
        do throws(BLEError) {
            _ = try StateStore(directory: folder.path, identifier: "hub").open()
            Issue.record("opened without a lock")
        } catch {
            #expect(error.code == .system)
            #expect(error.errorNumber == errno)
            #expect(error.hint != nil)
        }
        #expect(plan.openCount == 0)
    }
}
