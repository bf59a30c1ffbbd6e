import Foundation
import Testing

/// `--cache` against a GATT server of another project; it counts the requests.
@Suite(.serialized, .enabled(if: BumblePeer.available(for: "CacheTests"))) struct CacheTests {
    /// Generic Attribute with the Database Hash of this peer's database, as OpenSSL's AES-CMAC computes it (Core Vol 3
    /// Part G, 7.3).
    private static let hash = """
        {"uuid": "1801", "characteristics": [{"uuid": "2B2A", "properties": ["read"],
          "value": "e371f5d3ec3efa9fa58edc28e4267629"}]},
        """

    /// Returns the paths of the cache and of its peer: one peer after the other listens there.
    private static func temporaryPaths() -> (file: String, socket: String) {
        let path = FileManager.default.temporaryDirectory.appending(path: "cache-\(UUID().uuidString.prefix(8))").path
        return (path, path + ".sock")
    }

    private static func remove(_ paths: String...) {
        for path in paths { try? FileManager.default.removeItem(atPath: path) }
    }

    /// The MTU exchange is not counted among the requests of the discovery, and is the only other request.
    @Test func exploringAgainTakesOneRequest() async throws {
        let (file, socket) = Self.temporaryPaths()
        defer { Self.remove(file, socket) }
        let first = try await BumblePeer(with: Self.hash, at: socket)
        let before = try await BuiltProgram.run(["explore", "unix:\(first.path)", "--no-read", "--cache", file])
        #expect(before.status == 0)
        #expect(before.errors.isEmpty)
        #expect(before.output.contains("discovered 32 attributes in "))
        let second = try await BumblePeer(with: Self.hash, at: socket)
        let after = try await BuiltProgram.run(["explore", "unix:\(second.path)", "--no-read", "--cache", file])
        #expect(after.status == 0)
        #expect(after.output.contains("32 attributes known from the cache, 1 request\n"))
        #expect(
            after.output.split(separator: "\n").dropFirst().dropLast()
                == before.output.split(separator: "\n").dropFirst().dropLast())
        let conversation = try await second.conversation()
        #expect(conversation.requests == 2)
        #expect(conversation.received == ["020502", "080100ffff2a2b"])
    }

    /// For a peer without a hash the command checks whether it has one now, and trusts it otherwise.
    @Test func theCacheOfAPeerWithoutHashIsTrusted() async throws {
        let (file, socket) = Self.temporaryPaths()
        defer { Self.remove(file, socket) }
        let first = try await BumblePeer(at: socket)
        _ = try await BuiltProgram.run(["explore", "unix:\(first.path)", "--no-read", "--cache", file])
        let second = try await BumblePeer(at: socket)
        let after = try await BuiltProgram.run(
            ["explore", "unix:\(second.path)", "--no-read", "--cache", file, "--json"])
        let object = try #require(try after.objects().first)
        #expect(object["cached"] as? Bool == true)
        #expect(object["discoveryRequests"] as? Int == 1)
        #expect(try await second.conversation().requests == 2)
        // The same file for a peer that has a hash: a different peer, which is discovered.
        let third = try await BumblePeer(with: Self.hash, at: socket)
        let other = try await BuiltProgram.run(["explore", "unix:\(third.path)", "--no-read", "--cache", file])
        #expect(other.output.contains("discovered 32 attributes in "))
    }

    @Test func otherCommandsUseIt() async throws {
        let (file, socket) = Self.temporaryPaths()
        defer { Self.remove(file, socket) }
        let first = try await BumblePeer(with: Self.hash, at: socket)
        _ = try await BuiltProgram.run(["explore", "unix:\(first.path)", "--no-read", "--cache", file])
        let second = try await BumblePeer(with: Self.hash, at: socket)
        let outcome = try await BuiltProgram.run(["write", "unix:\(second.path)", "2a39", "--u8", "1", "--cache", file])
        #expect(outcome.status == 0)
        #expect(try await second.conversation().requests == 3, "the MTU, the hash, the write")
        let third = try await BumblePeer(with: Self.hash, at: socket)
        let values = try await BuiltProgram.run(
            ["notify", "unix:\(third.path)", "2a37", "--count", "3", "--cache", file])
        #expect(values.status == 0)
        #expect(try await third.conversation().requests == 4, "the MTU, the hash, on and off")
    }

    /// It is reported once; the command continues without a cache.
    @Test(arguments: ["garbage", "text", "directory", "nowhere"])
    func anUnusableCacheFileIsReportedOnce(kind: String) async throws {
        let (path, socket) = Self.temporaryPaths()
        defer { Self.remove(path, socket) }
        switch kind {
        case "garbage": try Data("BareBLE cache of unix:\(socket)\ngarbage".utf8).write(to: URL(filePath: path))
        case "text": try Data("hello".utf8).write(to: URL(filePath: path))
        case "directory": try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        default: break
        }
        let file = kind == "nowhere" ? path + "/none/file" : path
        let peer = try await BumblePeer(with: Self.hash, at: socket)
        let outcome = try await BuiltProgram.run(["explore", "unix:\(peer.path)", "--no-read", "--cache", file])
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("discovered 32 attributes in "))
        let messages = outcome.errors.split(separator: "\n")
        #expect(messages.count == 2, "\(messages)")
        #expect(messages.first?.hasPrefix("blescan: could not ") == true && messages.first?.contains(path) == true)
        #expect(messages.last?.hasPrefix("hint: ") == true)
        if kind == "text" { #expect(try Data(contentsOf: URL(filePath: path)) == Data("hello".utf8)) }
        guard kind == "garbage" else { return }
        // It is written again.
        let again = try await BumblePeer(with: Self.hash, at: socket)
        let after = try await BuiltProgram.run(["explore", "unix:\(again.path)", "--no-read", "--cache", file])
        #expect(after.errors.isEmpty)
        #expect(after.output.contains("known from the cache, 1 request\n"))
    }
}
