import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

@Suite struct StateStoreTests {
    private let folder: Folder
    private let store: StateStore
    private let state = RestorationState(
        adapter: BluetoothAddress("00:AA:01:00:00:42"),
        peers: [
            RestorationState.Peer(
                PeerID(address: BluetoothAddress(rawValue: 0xC011_2233_4455), type: .random),
                subscriptions: [RestorationState.Subscription(0x2A37, service: 0x180D)])
        ])

    init() throws {
        folder = try Folder()
        store = StateStore(directory: folder.path, identifier: "hub")
    }

    private func write(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(filePath: store.path))
    }

    @Test func keepsAState() throws {
        let open = try store.open()
        let nothing = try open.load()
        #expect(nothing.state == RestorationState())
        #expect(nothing.damage == nil)
        try open.save(state)
        #expect(try open.load().state == state)
        var other = state
        other.peers = []
        try open.save(other)
        #expect(try open.load().state == other)
        #expect(folder.names == ["hub.lock", "hub.state"], "nothing temporary is left")
        for path in [store.path, store.lockPath] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test(.row("O08", "O28")) func oneProcessHasItAtATime() throws {
        var first: OpenStateStore? = try store.open()
        do throws(BLEError) {
            _ = try store.open()
            Issue.record("opened twice")
        } catch {
            #expect(error.code == .busy)
            #expect(error.reason == "this process has it")
        }
        // Another daemon has a store of its own.
        _ = try StateStore(directory: folder.path, identifier: "other").open()
        try first?.save(state)
        first = nil
        #expect(try store.open().load().state == state)
    }

    /// The number in the file names the holder; an invalid number names none.
    @Test(arguments: [("123\n", "process 123 has it"), ("", "another process has it"), ("x", "another process has it")])
    func theHolderIsNamed(text: String, reason: String) throws {
        let held = try store.open()
        try Data(text.utf8).write(to: URL(filePath: store.lockPath), options: [])
        do throws(BLEError) {
            _ = try store.open()
            Issue.record("opened twice")
        } catch {
            #expect(error.reason == reason)
        }
        _ = held
    }

    @Test(.row("O25")) func aDamagedFileIsMovedAsideAndReportedOnce() throws {
        let open = try store.open()
        let bytes = state.bytes
        for count in 0..<bytes.count {
            try write(Array(bytes.prefix(count)))
            let contents = try open.load()
            #expect(contents.state == RestorationState())
            #expect(contents.damage?.code == .unusableState)
            #expect(contents.movedTo == store.pathOfDamaged)
            let again = try open.load()
            #expect(again.damage == nil)
        }
        #expect(folder.names == ["hub.lock", "hub.state.damaged"])
        try open.save(state)
        #expect(try open.load().state == state)
    }

    @Test(.row("O25")) func aNewerVersionIsKeptAside() throws {
        var bytes = state.bytes
        bytes[4] = 9
        // The checksum of the changed bytes, by zlib's algorithm.
        var remainder = UInt32.max
        for byte in bytes.dropLast(4) {
            remainder ^= UInt32(byte)
            for _ in 0..<8 { remainder = remainder & 1 == 0 ? remainder >> 1 : remainder >> 1 ^ 0xEDB8_8320 }
        }
        let checksum = ~remainder
        bytes.replaceSubrange(
            (bytes.count - 4)..., with: (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * UInt32($0))) })
        try write(bytes)
        let contents = try store.open().load()
        #expect(contents.state == RestorationState())
        #expect(contents.movedTo == store.pathOfOtherVersion)
        #expect(try Data(contentsOf: URL(filePath: store.pathOfOtherVersion)) == Data(bytes))
    }

    @Test(.row("O25")) func whatIsTooLargeOrNoFileIsMovedAside() throws {
        let open = try store.open()
        try write([UInt8](repeating: 0, count: RestorationState.byteLimit + 1))
        #expect(try open.load().damage?.code == .unusableState)
        try FileManager.default.removeItem(atPath: store.pathOfDamaged)
        try FileManager.default.createDirectory(atPath: store.path, withIntermediateDirectories: true)
        #expect(code { () throws(BLEError) in try open.save(state) } != nil)
        #expect(try open.load().damage?.code == .unusableState)
        try open.save(state)
        #expect(try open.load().state == state)
    }

    @Test func whatCannotBeIsATypedError() throws {
        for name in ["", ".", "..", ".hub", "a/b", "a b", String(repeating: "x", count: 65), "ü"] {
            let store = StateStore(directory: folder.path, identifier: name)
            #expect(code { () throws(BLEError) in _ = try store.open() } == .invalidArgument, "\(name)")
        }
        let nowhere = StateStore(directory: folder.path + "/none", identifier: "hub")
        #expect(code { () throws(BLEError) in _ = try nowhere.open() } == .system)
        try FileManager.default.createSymbolicLink(
            atPath: store.lockPath, withDestinationPath: folder.path + "/elsewhere")
        #expect(code { () throws(BLEError) in _ = try store.open() } == .notPermitted)
        #expect(!folder.names.contains("elsewhere"))
    }

    @Test func aStateIsBounded() throws {
        let open = try store.open()
        try open.save(state)
        var large = state
        large.peers = (0..<200).map { number in
            let peer = PeerID(address: BluetoothAddress(rawValue: UInt64(number)), type: .public)
            let subscriptions = (0..<1_000).map { RestorationState.Subscription(0x2A37, index: $0) }
            return RestorationState.Peer(peer, subscriptions: subscriptions)
        }
        #expect(code { () throws(BLEError) in try open.save(large) } == .tooLong)
        #expect(try open.load().state == state)
    }

    /// What is cut would be missing after the restart, without a notice.
    @Test func aStateIsStoredWholeOrNotAtAll() throws {
        let open = try store.open()
        var full = state
        full.peers = Self.peers(RestorationState.limit)
        try open.save(full)
        #expect(try open.load().state == full)
        var more = state
        more.peers = Self.peers(RestorationState.limit + 1)
        #expect(code { () throws(BLEError) in try open.save(more) } == .tooLong)
        #expect(try open.load().state == full)
    }

    private static func peers(_ count: Int) -> [RestorationState.Peer] {
        (0..<count).map {
            RestorationState.Peer(PeerID(address: BluetoothAddress(rawValue: UInt64($0)), type: .public))
        }
    }

    /// A full disk: `/dev/full` cannot stand in for a directory, but a limit to the size of files does the same to the
    /// temporary one.
    @Test(.row("O24")) func theOldStateSurvivesAFailedSave() throws {
        let open = try store.open()
        try open.save(state)
        // Nobody can make files in a directory that is not there any more under its name.
        let moved = folder.path + "-moved"
        try FileManager.default.moveItem(atPath: folder.path, toPath: moved)
        var other = state
        other.adapter = nil
        #expect(code { () throws(BLEError) in try open.save(other) } == .system)
        try FileManager.default.moveItem(atPath: moved, toPath: folder.path)
        #expect(try open.load().state == state)
    }
}
