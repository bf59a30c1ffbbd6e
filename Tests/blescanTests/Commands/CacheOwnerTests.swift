import BLECore
import BareBLE
import BareBLETestKit
import Foundation
import Testing

@testable import blescan

/// The validity of the file of `--cache`: only for its own peer, and only while that has not changed.
@Suite struct CacheOwnerTests {
    /// The paths of the cache and of its peer: one peer after the other listens there.
    private let file = "/tmp/blescan-cache-\(UUID().uuidString.prefix(8))"
    private var socket: String { file + ".sock" }

    private static let hashed = VirtualDevice(
        name: "Lamp", services: [.battery(level: 7), .genericAttribute(databaseHash: hash)])

    /// The hash that the specification defines: AES-CMAC by OpenSSL, over the attributes as assembled here.
    private static let hash: [UInt8] = [
        0xAF, 0xF5, 0x3C, 0xEF, 0x4A, 0x82, 0x80, 0xB8,
        0xFB, 0x65, 0x78, 0xF6, 0x16, 0xB3, 0xBF, 0xE6,
    ]

    /// Runs one command against a device at the one path; returns its output, and the packets that the device received.
    private func run(
        _ command: [String], _ device: VirtualDevice
    ) async throws -> (outcome: Outcome, packets: [[UInt8]]) {
        let peer = try await SocketPeer(device, at: socket)
        let arguments = command.map { $0 == "PEER" ? "unix:\(peer.path)" : $0 } + ["--cache", file]
        let outcome = try await BuiltProgram.run(arguments)
        return (outcome, peer.packets)
    }

    private func removeFile() { try? FileManager.default.removeItem(atPath: file) }

    /// The peer has no hash, so only a handle that no longer exists shows the change.
    @Test func aPeerThatChangedIsExploredAgain() async throws {
        defer { removeFile() }
        _ = try await run(["explore", "PEER"], .heartRate)
        let changed = try await run(["explore", "PEER"], .battery).outcome
        #expect(changed.status == 0)
        #expect(changed.errors == "blescan: the peer has changed since the cache was saved; exploring it again\n")
        #expect(changed.output.contains("discovered 9 attributes in "))
        #expect(changed.output.contains("\"Virtual battery\"") && changed.output.contains("64 %  40"))
        #expect(!changed.output.contains("Heart Rate"))
        let again = try await run(["explore", "PEER"], .battery).outcome
        #expect(again.errors.isEmpty)
        #expect(again.output.contains("9 attributes known from the cache, unchecked, 1 request\n"))
    }

    /// The refused handle has the same type in both; the others are wrong.
    @Test func aChangeElsewhereIsSeenToo() async throws {
        defer { removeFile() }
        func device(_ onRead: ReadAction?, _ second: VirtualCharacteristic) -> VirtualDevice {
            let service = VirtualService(
                0xFFF0, [VirtualCharacteristic(0xFFF1, .read, value: [1], onRead: onRead), second])
            return VirtualDevice(name: "Lamp", services: [service])
        }
        _ = try await run(["explore", "PEER"], device(nil, VirtualCharacteristic(0xFFF2, .read, value: [2])))
        let changed = try await run(
            ["explore", "PEER"],
            device(.refuse(.invalidHandle), VirtualCharacteristic(0xFFF3, .read, value: [3]))
        ).outcome
        #expect(changed.status == 0)
        #expect(changed.output.contains("fff3") && !changed.output.contains("fff2"))
        #expect(changed.output.contains("1 value read, 1 refused"))
    }

    /// The MTU, the hash, and nothing else.
    @Test func theDemoIsKnownInOneRequest() async throws {
        defer { removeFile() }
        _ = try await BuiltProgram.run(["explore", "demo:heart-rate", "--no-read", "--cache", file])
        let again = try await BuiltProgram.run(["explore", "demo:heart-rate", "--no-read", "--cache", file])
        #expect(again.output.contains("32 attributes known from the cache, 1 request\n"))
        #expect(again.output.contains("2 requests used"))
    }

    /// The hash of the demo is the one that the specification defines: AES-CMAC by OpenSSL, with a key of zeroes, over
    /// the octets that it requires, as assembled here.
    @Test func theHashOfTheDemoIsRight() async throws {
        let device = try #require(VirtualDevice.presets.first { $0.name == "heart-rate" }?.device)
        let peripheral = try await Central().attach(descriptor: VirtualPeripheral(device).connect())
        let message = try #require(DatabaseHashMessage(try await peripheral.discover(level: .full)))
        #expect(
            Hex.encode(message.bytes)
                == "01000028001802000328020300002a04000328020500012a"
                + "06000028011807000328200800052a090002290a0003280a0b00292b0c000328020d002a2b"
                + "0e0000280d180f000328101000372a1100022912000328021300382a14000328081500392a"
                + "160000280f1817000328121800192a190002291a0000280a181b000328021c00292a1d000328021e00242a1f000328022000262a"
        )
        #expect(Hex.encode(try await peripheral.read(0x2B2A)) == "c3e9147e8951a3e0fba3fa99e8f62f7c")
        await peripheral.disconnect()
    }

    /// A peer without a hash is discovered again, to a lower level; that does not show whether it has changed since.
    @Test(arguments: [
        ["notify", "PEER", "2a19", "--count", "1", "--for", "50ms"], ["write", "PEER", "2a19", "--u8", "1"],
    ])
    func whatGoesLessDeepReplacesNothing(_ command: [String]) async throws {
        defer { removeFile() }
        _ = try await run(["explore", "PEER"], .battery)
        let saved = try Data(contentsOf: URL(filePath: file))
        let shallow = try await run(command, .battery)
        #expect(shallow.outcome.status == (command.first == "notify" ? 75 : 76))
        #expect(try Data(contentsOf: URL(filePath: file)) == saved)
        let again = try await run(["explore", "PEER"], .battery).outcome
        #expect(again.output.contains("9 attributes known from the cache, unchecked, 1 request\n"))
    }

    /// A smaller result that contradicts the cache is what the peer has now.
    @Test func whatContradictsReplacesMore() async throws {
        defer { removeFile() }
        _ = try await run(["explore", "PEER"], .heartRate)
        _ = try await run(["notify", "PEER", "2a19", "--for", "50ms"], .battery)
        let again = try await run(["explore", "PEER", "--no-read"], .battery).outcome
        #expect(again.output.contains(" 9 attributes"))
    }

    /// A read of a type needs no database, and so neither uses nor writes the file; a mistake in its name is reported.
    @Test func aReadThatNeedsNoCacheReportsAnUnusableOne() async throws {
        defer { removeFile() }
        let read = ["read", "demo:battery", "2a19", "--cache"]
        let unneeded = try await BuiltProgram.run(read + [file])
        #expect(unneeded.status == 0 && unneeded.errors.isEmpty, "\(unneeded.errors)")
        #expect(!FileManager.default.fileExists(atPath: file))
        let nowhere = try await BuiltProgram.run(read + ["/nowhere/cache"])
        #expect(nowhere.status == 0 && nowhere.output == unneeded.output)
        #expect(
            nowhere.errors
                == "blescan: could not load the cache (/nowhere/cache): its directory does not exist; the command goes "
                + "on without it\nhint: Create the directory first.\n")
        try Data("a diary".utf8).write(to: URL(filePath: file))
        let diary = try await BuiltProgram.run(read + [file])
        #expect(diary.status == 0 && diary.output == unneeded.output)
        #expect(
            diary.errors
                == "blescan: could not load the cache (\(file)): it is not a cache; the command goes on without it\n"
                + "hint: Name another file, or remove this one.\n")
        #expect(try Data(contentsOf: URL(filePath: file)) == Data("a diary".utf8))
    }

    @Test func theFileOfAnotherPeerIsLeftAlone() async throws {
        defer { removeFile() }
        let first = try await BuiltProgram.run(["explore", "demo:battery", "--no-read", "--cache", file])
        #expect(first.errors.isEmpty)
        let saved = try Data(contentsOf: URL(filePath: file))
        #expect(saved.starts(with: Data("BareBLE cache of demo:battery\n".utf8)))
        for command in [["explore", "demo:uart"], ["notify", "demo:heart-rate", "2a37", "--count", "1"]] {
            let other = try await BuiltProgram.run(command + ["--cache", file])
            #expect(other.status == 0)
            #expect(
                other.errors.hasPrefix(
                    "blescan: could not load the cache (\(file)): it is the cache of another peer, demo:battery; the "
                        + "command goes on without it\nhint: Name another file, or remove this one.\n"))
            #expect(other.errors.split(separator: "\n").count == (command.first == "notify" ? 4 : 2), "said once")
            #expect(try Data(contentsOf: URL(filePath: file)) == saved)
        }
        let object = try await BuiltProgram.run(["explore", "demo:uart", "--cache", file, "--json"])
        #expect(object.errors.hasPrefix(#"{"v":1,"warning":"could not load the cache ("#))
        #expect(object.errors.split(separator: "\n").count == 1)
    }

    /// With the type or without, in either case.
    @Test func onePeerHasOneName() throws {
        let ways = ["AA:BB:CC:DD:EE:FF", "aa:bb:cc:dd:ee:ff/random", "AA:BB:CC:DD:EE:FF/public"]
        #expect(Set(try ways.map { try PeerArgument(argument: $0).identity }) == ["AA:BB:CC:DD:EE:FF"])
        #expect(try PeerArgument(argument: "unix:/a").identity == "unix:/a")
    }

    /// One request after the MTU exchange, as without a cache, and no file that contains no part of the database.
    @Test(arguments: [
        ["read", "PEER", "2a19"], ["read", "PEER", "0x0003"], ["write", "PEER", "0x0003", "--u8", "1"],
    ])
    func whatFindsNothingOutSavesNothing(_ command: [String]) async throws {
        let device = VirtualDevice(
            name: "Lamp",
            services: [VirtualService(0x180F, [VirtualCharacteristic(0x2A19, [.read, .write], value: [7])])])
        let (outcome, packets) = try await run(command, device)
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        // A handle's type is asked for, to show what its value means.
        #expect(packets.count == (command[0] == "read" && command[2] == "0x0003" ? 3 : 2))
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func aReadLooksUpWhatAHandleIs() async throws {
        defer { removeFile() }
        _ = try await run(["explore", "PEER", "--no-read"], Self.hashed)
        let byHandle = try await run(["read", "PEER", "0x0003"], Self.hashed)
        #expect(byHandle.outcome.output == "07  7 %\n")
        #expect(byHandle.packets.count == 3, "the MTU, the hash, the value")
        let byType = try await run(["read", "PEER", "2a19"], Self.hashed)
        #expect(byType.outcome.output == "07  7 %\n")
        #expect(byType.packets.count == 2, "the MTU, the value")
    }
}
