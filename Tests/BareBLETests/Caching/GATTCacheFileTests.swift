import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

@Suite struct GATTCacheFileTests {
    private let folder: Folder
    private let cache = GATTCache(
        database: GATTDatabase(services: [GATTService(handles: 1...5, uuid: 0x180F)]), coverage: .whole(.full),
        databaseHash: [UInt8](0..<16))

    init() throws {
        folder = try Folder()
    }

    @Test func keepsACache() throws {
        let file = GATTCacheFile(folder.path + "/one.gatt")
        #expect(try file.load() == nil)
        try file.save(cache)
        #expect(try file.load() == cache)
        var other = cache
        other.databaseHash = nil
        try file.save(other)
        #expect(try file.load() == other)
        #expect(folder.names == ["one.gatt"], "nothing temporary is left")
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        try file.remove()
        try file.remove()
        #expect(try file.load() == nil)
    }

    @Test(.row("O25"), arguments: ["", "garbage", "BLEC", String(repeating: "x", count: 400_000)])
    func refusesGarbage(text: String) throws {
        let file = GATTCacheFile(folder.path + "/bad.gatt")
        try Data(text.utf8).write(to: URL(filePath: file.path))
        #expect(code { () throws(BLEError) in _ = try file.load() } == .unusableCache)
        try file.save(cache)
        #expect(try file.load() == cache)
    }

    /// A file of another kind is distinguished from a damaged cache.
    @Test func knowsWhatMayBeReplaced() throws {
        let file = GATTCacheFile(folder.path + "/one.gatt")
        #expect(file.mayBeReplaced)
        for (text, mayBeReplaced) in [("", true), ("BLEC garbage", true), ("hello", false)] {
            try Data(text.utf8).write(to: URL(filePath: file.path))
            #expect(file.mayBeReplaced == mayBeReplaced, "\(text)")
        }
        try file.save(cache)
        #expect(file.mayBeReplaced)
        #expect(!GATTCacheFile(folder.path).mayBeReplaced)
    }

    /// The heading is text, so that `head -1` shows whose file it is; with equal databases the caches of two peers
    /// differ in nothing else.
    @Test func belongsToOnePeer() throws {
        let path = folder.path + "/one.gatt"
        let file = GATTCacheFile(path, of: "AA:BB:CC:DD:EE:01")
        try file.save(cache)
        #expect(try file.load() == cache)
        #expect(
            try Data(contentsOf: URL(filePath: path)).starts(with: Data("BareBLE cache of AA:BB:CC:DD:EE:01\n".utf8)))
        let other = GATTCacheFile(path, of: "AA:BB:CC:DD:EE:0")
        #expect(code { () throws(BLEError) in _ = try other.load() } == .unusableCache)
        #expect(file.mayBeReplaced && !other.mayBeReplaced)
        // A cache that names no peer, and one that was truncated.
        try GATTCacheFile(path).save(cache)
        #expect(code { () throws(BLEError) in _ = try file.load() } == .unusableCache)
        #expect(!file.mayBeReplaced)
        try Data("BareBLE cache of AA:BB:CC:DD:EE:01\nBLEC".utf8).write(to: URL(filePath: path))
        #expect(code { () throws(BLEError) in _ = try file.load() } == .unusableCache)
        #expect(file.mayBeReplaced)
    }

    /// What follows a damaged end of the line is binary, and no name.
    @Test(arguments: [0x00, 0x4A, 0xFF] as [UInt8]) func aDamagedHeadingNamesNobody(_ end: UInt8) throws {
        let path = folder.path + "/one.gatt"
        let file = GATTCacheFile(path, of: "AA:BB:CC:DD:EE:01")
        try file.save(cache)
        var bytes = try Data(contentsOf: URL(filePath: path))
        let place = try #require(bytes.firstIndex(of: 0x0A))
        bytes[place] = end
        try bytes.write(to: URL(filePath: path))
        let error = try #require(throws: BLEError.self) { try file.load() }
        #expect(error.code == .unusableCache && error.reason == "its first line, which names the peer, is damaged")
        #expect(!file.mayBeReplaced)
    }

    /// The link stays, and its target is changed.
    @Test func followsALink() throws {
        let target = folder.path + "/target"
        try Data("old".utf8).write(to: URL(filePath: target))
        let link = folder.path + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "target")
        try GATTCacheFile(link).save(cache)
        #expect(try GATTCacheFile(target).load() == cache)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "target")
        try FileManager.default.removeItem(atPath: target)
        #expect(code { () throws(BLEError) in try GATTCacheFile(link).save(cache) } == .unusableCache)
        #expect(folder.names == ["link"])
    }

    /// Whether the link at `path` is another user's now; only root can give it away.
    private func giveAway(_ path: String) -> Bool { unsafe lchown(path, 65_534, 65_534) == 0 }

    /// Between the check and the write another user puts a link there, to a file that only we may write.
    @Test(.row("O33"), .enabled(if: getuid() == 0)) func aLinkOfAnotherUserIsRefused() throws {
        let precious = folder.path + "/precious"
        try Data("old".utf8).write(to: URL(filePath: precious))
        let file = GATTCacheFile(folder.path + "/link", of: "AA:BB:CC:DD:EE:01")
        #expect(file.mayBeReplaced)
        try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: precious)
        #expect(giveAway(file.path))
        let error = #expect(throws: BLEError.self) { try file.save(cache) }
        #expect(error?.code == .notPermitted)
        #expect(error?.hint?.contains("no other user writes") == true)
        #expect(try Data(contentsOf: URL(filePath: precious)) == Data("old".utf8))
        #expect(folder.names == ["link", "precious"])
        // One on the way to the file is as bad.
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/ours", withDestinationPath: folder.path + "/link")
        #expect(code { () throws(BLEError) in try GATTCacheFile(folder.path + "/ours").save(cache) } == .notPermitted)
        #expect(try Data(contentsOf: URL(filePath: precious)) == Data("old".utf8))
    }

    /// Links of one's own may lead from directory to directory, and in a ring.
    @Test func followsLinksFromWhereTheyAre() throws {
        let manager = FileManager.default
        try manager.createDirectory(atPath: folder.path + "/a/b", withIntermediateDirectories: true)
        try manager.createSymbolicLink(atPath: folder.path + "/one", withDestinationPath: "a/two")
        try manager.createSymbolicLink(atPath: folder.path + "/a/two", withDestinationPath: "b/three")
        try Data("BLEC".utf8).write(to: URL(filePath: folder.path + "/a/b/three"))
        try GATTCacheFile(folder.path + "/one").save(cache)
        #expect(try GATTCacheFile(folder.path + "/a/b/three").load() == cache)
        try manager.createSymbolicLink(atPath: folder.path + "/ring", withDestinationPath: "ring")
        #expect(code { () throws(BLEError) in try GATTCacheFile(folder.path + "/ring").save(cache) } == .notPermitted)
    }

    /// A leftover with the name of a temporary file is removed only if it is a plain file of this user.
    @Test(.enabled(if: getuid() == 0)) func leavesTemporaryFilesOfOthers() throws {
        let names = ["one.gatt.1.1.tmp", "one.gatt.1.2.tmp", "one.gatt.1.3.tmp"].map { folder.path + "/" + $0 }
        try Data("theirs".utf8).write(to: URL(filePath: names[0]))
        #expect(giveAway(names[0]))
        #expect(unsafe mkfifo(names[1], 0o600) == 0)
        try Data("ours".utf8).write(to: URL(filePath: names[2]))
        try GATTCacheFile(folder.path + "/one.gatt").save(cache)
        #expect(folder.names == ["one.gatt", "one.gatt.1.1.tmp", "one.gatt.1.2.tmp"])
        try GATTCacheDirectory(folder.path).save(cache, for: try #require(PeerID("AA:BB:CC:DD:EE:0F/public")))
        #expect(folder.names.contains("one.gatt.1.1.tmp"))
    }

    /// Nobody who may write in the directory has us write elsewhere.
    @Test func ofADirectoryDoesNotFollowALink() throws {
        let peer = try #require(PeerID("C0:00:00:00:00:07/random"))
        let directory = GATTCacheDirectory(folder.path + "/caches")
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: false)
        let precious = folder.path + "/precious"
        try Data("old".utf8).write(to: URL(filePath: precious))
        let path = try #require(directory.file(for: peer)).path
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: precious)
        try directory.save(cache, for: peer)
        #expect(try Data(contentsOf: URL(filePath: precious)) == Data("old".utf8))
        #expect(try directory.file(for: peer)?.load() == cache)
    }

    /// Temporary files of others are not taken for ours; those of our killed writers are removed.
    @Test func leavesOtherTemporaryFiles() throws {
        let names = ["one.gatt.1.tmp", "one.gatt.1.x.tmp", "one.gatt.tmp", "two.gatt.1.1.tmp"]
        let remains = (1...2_000).map { "one.gatt.\(getpid()).\($0).tmp" }
        for name in names + remains { try Data("mine".utf8).write(to: URL(filePath: folder.path + "/" + name)) }
        try GATTCacheFile(folder.path + "/one.gatt").save(cache)
        #expect(folder.names == (names + ["one.gatt"]).sorted())
        let sizes = try names.map { try Data(contentsOf: URL(filePath: folder.path + "/" + $0)).count }
        #expect(sizes.allSatisfy { $0 == 4 })
    }

    /// Neither hangs on a pipe nor harms it or a directory.
    @Test func refusesWhatIsNoFile() throws {
        #expect(code { () throws(BLEError) in _ = try GATTCacheFile(folder.path).load() } == .unusableCache)
        #expect(code { () throws(BLEError) in try GATTCacheFile(folder.path).save(cache) } == .unusableCache)
        let pipe = folder.path + "/pipe"
        #expect(unsafe mkfifo(pipe, 0o600) == 0)
        #expect(code { () throws(BLEError) in _ = try GATTCacheFile(pipe).load() } == .unusableCache)
        #expect(code { () throws(BLEError) in try GATTCacheFile(pipe).save(cache) } == .unusableCache)
        #expect(folder.names == ["pipe"])
        let nowhere = GATTCacheFile(folder.path + "/none/one.gatt")
        #expect(code { () throws(BLEError) in try nowhere.save(cache) } == .system)
        #expect(try nowhere.load() == nil)
    }

    @Test(.row("G22")) func namesFilesByStableAddresses() throws {
        let directory = GATTCacheDirectory("/caches")
        func path(_ peer: String) -> String? { PeerID(peer).flatMap { directory.file(for: $0)?.path } }
        #expect(path("AA:BB:CC:DD:EE:0F/public") == "/caches/AABBCCDDEE0F-public.gatt")
        #expect(path("CA:BB:CC:DD:EE:0F/random") == "/caches/CABBCCDDEE0F-random.gatt")
        #expect(path("4A:BB:CC:DD:EE:0F/random") == nil, "resolvable private")
        #expect(path("0A:BB:CC:DD:EE:0F/random") == nil, "non-resolvable private")
    }

    @Test func aDirectoryIsBounded() throws {
        let directory = GATTCacheDirectory(folder.path)
        for number in 0..<(GATTCacheDirectory.capacity + 10) {
            let name = folder.path + "/\(number).gatt"
            try Data().write(to: URL(filePath: name))
            let age = Date(timeIntervalSinceNow: Double(number - 5_000))
            try FileManager.default.setAttributes([.modificationDate: age], ofItemAtPath: name)
        }
        let peer = try #require(PeerID("AA:BB:CC:DD:EE:0F/public"))
        try directory.save(cache, for: peer)
        #expect(folder.names.count == GATTCacheDirectory.capacity)
        #expect(!folder.names.contains("0.gatt"))
        #expect(folder.names.contains("11.gatt"))
        #expect(try directory.file(for: peer)?.load() == cache)
    }

    /// Addresses that come once do not push out a peer that comes again, however long its file was left alone.
    @Test(.row("O34")) func aFloodOfAddressesTakesNoCacheThatIsInUse() throws {
        let directory = GATTCacheDirectory(folder.path)
        let stable = try #require(PeerID("AA:BB:CC:DD:EE:01/public"))
        try directory.save(cache, for: stable)
        #expect(try directory.load(for: stable) == cache)
        for number in 0..<GATTCacheDirectory.capacity {
            let name = folder.path + "/\(number).gatt"
            try Data().write(to: URL(filePath: name))
            let age = Date(timeIntervalSinceNow: Double(5_000 + number))
            try FileManager.default.setAttributes([.modificationDate: age], ofItemAtPath: name)
        }
        try directory.save(cache, for: try #require(PeerID("AA:BB:CC:DD:EE:02/public")))
        #expect(folder.names.count == GATTCacheDirectory.capacity)
        #expect(folder.names.contains("AABBCCDDEE01-public.gatt"))
        #expect(!folder.names.contains("0.gatt") && !folder.names.contains("1.gatt") && folder.names.contains("2.gatt"))
        // Also when it is written again.
        try directory.save(cache, for: stable)
        try Data().write(to: URL(filePath: folder.path + "/more.gatt"))
        try directory.save(cache, for: try #require(PeerID("AA:BB:CC:DD:EE:03/public")))
        #expect(folder.names.contains("AABBCCDDEE01-public.gatt"))
    }

    /// New peers have room where all others are in use: the one goes that was used longest ago.
    @Test(.row("O34")) func newPeersHaveRoom() throws {
        let directory = GATTCacheDirectory(folder.path)
        for number in 0..<GATTCacheDirectory.capacity {
            let name = folder.path + "/\(number).gatt"
            try Data().write(to: URL(filePath: name))
            #expect(unsafe chmod(name, 0o1600) == 0)
            let age = Date(timeIntervalSinceNow: Double(number - 5_000))
            try FileManager.default.setAttributes([.modificationDate: age], ofItemAtPath: name)
        }
        let peer = try #require(PeerID("AA:BB:CC:DD:EE:02/public"))
        try directory.save(cache, for: peer)
        #expect(folder.names.count == GATTCacheDirectory.capacity)
        #expect(!folder.names.contains("0.gatt") && folder.names.contains("1.gatt"))
        #expect(try directory.load(for: peer) == cache)
    }
}
