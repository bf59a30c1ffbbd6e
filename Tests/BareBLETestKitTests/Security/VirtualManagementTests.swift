import BLECore
import BLELinux
import BareBLE
import Glibc
import Testing

@testable import BareBLETestKit

/// Settings, lists and rights of the virtual kernel, by raw packets: what kernels 6.1 and 6.12 were seen to do.
@Suite("Virtual management", .timeLimit(.minutes(5)))
struct VirtualManagementTests {
    private static let peer = KernelSecurityBench.peer
    private static let key = "1122334455c6 02 03 00 10 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e"

    @Test("An adapter that was powered on without management has no Security Manager; a power cycle makes one")
    func anAdapterWithoutManagementHasNoSecurityManagerUntilAPowerCycle() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            let other = try await bench.anotherSocket(isTrusted: false)
            try await bench.initiate()
            try bench.attach()
            #expect(throws: SystemCallError(call: "BT_SECURITY", errno: EINVAL)) {
                try bench.radio.system.setSecurity(bench.descriptor, .medium)
            }
            // Powered and LE.
            let information = try await bench.exchange("04000000 0000")
            #expect(information.count == 1)
            #expect(information[0].hasPrefix(packet("01000000 1b01 0400 00 420000 01aa00 0b ffff")))
            #expect(information[0].dropFirst(2 * (9 + 13)).hasPrefix("01020000"))
            // Power on changes nothing while it is on.
            #expect(try await bench.exchange("05000000 0100 01") == [packet("01000000 0700 0500 00 01020000")])
            #expect(await !bench.radio.hasSecurityManager())
            #expect(other.received().isEmpty)
            #expect(
                try await bench.exchange("05000000 0100 00") == [
                    // The link ends with the power.
                    packet("0c000000 0800 \(Self.peer) 02"), packet("01000000 0700 0500 00 00020000"),
                ])
            #expect(other.received() == [packet("06000000 0400 00020000")])
            #expect(try await bench.exchange("0d000000 0100 01") == [packet("01000000 0700 0d00 00 00020000")])
            #expect(try await bench.exchange("2d000000 0100 01") == [packet("01000000 0700 2d00 00 000a0000")])
            #expect(try await bench.exchange("09000000 0100 00") == [packet("01000000 0700 0900 00 000a0000")])
            #expect(try await bench.exchange("18000000 0100 03") == [packet("01000000 0300 1800 00")])
            #expect(try await bench.exchange("30000000 0200 0000") == [packet("01000000 0300 3000 00")])
            #expect(try await bench.exchange("13000000 0200 0000") == [packet("01000000 0300 1300 00")])
            // BR/EDR, which an LE-only adapter does not have.
            #expect(try await bench.exchange("0b000000 0100 01") == [packet("02000000 0300 0b00 0c")])
            #expect(try await bench.exchange("2a000000 0100 00") == [packet("02000000 0300 2a00 0c")])
            #expect(try await bench.exchange("05000000 0100 01") == [packet("01000000 0700 0500 00 010a0000")])
            #expect(await bench.radio.hasSecurityManager())
            #expect(other.received() == [packet("06000000 0400 000a0000"), packet("06000000 0400 010a0000")])
            // Now refused: private addresses of its own.
            let privacy = "2f000000 1100 01 000102030405060708090a0b0c0d0e0f"
            #expect(try await bench.exchange(privacy) == [packet("02000000 0300 2f00 0b")])
            bench.link = nil
            try await bench.initiate()
            try bench.attach()
            try bench.radio.system.setSecurity(bench.descriptor, .medium)
        }
    }

    @Test("HCIDEVDOWN and HCIDEVUP are enough after one command, and keep keys and settings; unplugging loses all")
    func powerCycles() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            _ = try await bench.exchange("04000000 0000")
            _ = try await bench.exchange("2d000000 0100 01")
            _ = try await bench.exchange(packet("13000000 2600 0100", Self.key))
            await bench.radio.powerOff()
            await bench.pass(.zero)
            #expect(bench.management.received() == [packet("06000000 0400 000a0000")])
            #expect(await !bench.radio.hasSecurityManager())
            try bench.radio.system.powerUp(0)
            await bench.pass(.zero)
            #expect(bench.management.received() == [packet("06000000 0400 010a0000")])
            #expect(await bench.radio.hasSecurityManager())
            #expect(await bench.radio.longTermKeys().count == 1)
            await bench.radio.unplug()
            await bench.radio.plugIn()
            await bench.pass(.zero)
            #expect(bench.management.received() == [packet("05000000 0000"), packet("04000000 0000")])
            #expect(await bench.radio.longTermKeys().isEmpty)
            try bench.radio.system.powerUp(0)
            await bench.pass(.zero)
            // Not under management: nothing is reported, and there is no Security Manager.
            #expect(bench.management.received().isEmpty)
            #expect(await !bench.radio.hasSecurityManager())
        }
    }

    @Test("An adapter that was plugged in is on for two seconds though it seems to be off: HCIDEVUP leaves it so")
    func anAdapterThatWasPluggedInIsOnForTwoSeconds() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            for isLate in [false, true] {
                await bench.radio.unplug()
                await bench.radio.plugIn()
                let information = try await bench.exchange("04000000 0000")
                // Low Energy alone.
                #expect(information.last?.dropFirst(2 * (9 + 13)).hasPrefix("00020000") == true)
                if isLate { await bench.pass(.seconds(2)) }
                try bench.radio.system.powerUp(0)
                await bench.pass(.zero)
                #expect(await bench.radio.hasSecurityManager() == isLate)
                // It is on, so nothing is set up.
                #expect(try await bench.exchange("05000000 0100 01").last == packet("01000000 0700 0500 00 01020000"))
                #expect(await bench.radio.hasSecurityManager() == isLate)
            }
            await bench.radio.unplug()
            await bench.radio.plugIn()
            _ = try await bench.exchange("05000000 0100 01")
            #expect(await bench.radio.hasSecurityManager())
        }
    }

    @Test("Pair Device without a link waits for one until it is cancelled, or the power is switched off")
    func aPairingWithoutALinkWaitsForOneUntilItIsCancelled() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.manage()
            #expect(try await bench.exchange("19000000 0800 \(Self.peer) 03", for: .seconds(100)).isEmpty)
            #expect(
                try await bench.exchange("19000000 0800 \(Self.peer) 03")
                    == [packet("01000000 0a00 1900 0a \(Self.peer)")])
            #expect(
                try await bench.exchange("1a000000 0700 \(Self.peer)") == [
                    packet("01000000 0a00 1900 10 \(Self.peer)"), packet("01000000 0a00 1a00 00 \(Self.peer)"),
                ])
            #expect(try await bench.exchange("19000000 0800 \(Self.peer) 03").isEmpty)
            #expect(
                try await bench.exchange("05000000 0100 00").first == packet("01000000 0a00 1900 0f \(Self.peer)"))
            _ = try await bench.exchange("05000000 0100 01")
            // A link that comes up is paired.
            #expect(try await bench.exchange("19000000 0800 \(Self.peer) 03").isEmpty)
            try await bench.initiate()
            #expect(bench.management.received().contains { $0.hasPrefix(packet("0f000000 0c00 \(Self.peer)")) })
        }
    }

    @Test("Unpair Device removes the key of private addresses also without another key, and says that there was none")
    func unpairsIdentities() async throws {
        try await VirtualTime.run { time in
            let identity = VirtualIdentity(KernelSecurityBench.id, key: [UInt8](0..<16))
            var security = VirtualSecurity()
            security.identity = identity
            let onAir = try #require(PeerID("62:CC:28:F3:EE:75/random"))
            let bench = try await KernelSecurityBench(time, security, at: onAir)
            try await bench.manage()
            _ = try await bench.exchange(packet("30000000 1900 0100 \(Self.peer) 000102030405060708090a0b0c0d0e0f"))
            for isKnown in [true, false] {
                try await bench.initiate(onAir)
                let name = isKnown ? Self.peer : "75eef328cc6202"
                #expect(bench.management.received().contains { $0.hasPrefix("0b") && $0.dropFirst(12).hasPrefix(name) })
                try await bench.disconnect()
                #expect(
                    try await bench.exchange("1b000000 0800 \(Self.peer) 00")
                        == [packet("01000000 0a00 1b00 06 \(Self.peer)")])
            }
        }
    }

    static let refusals: [(String, String)] = [
        // Unknown, wrong adapter, wrong length.
        ("ff000000 0000", "02000000 0300 ff00 01"),
        ("04000700 0000", "02000700 0300 0400 11"),
        ("0400ffff 0000", "0200ffff 0300 0400 11"),
        ("01000000 0000", "02000000 0300 0100 11"),
        ("19000000 0700 \(peer)", "02000000 0300 1900 0d"),
        ("05000000 0100 02", "02000000 0300 0500 0d"),
        ("18000000 0100 05", "02000000 0300 1800 0d"),
        ("0d000000 0100 00", "02000000 0300 0d00 0b"),
        // Peers: BR/EDR, not connected, not paired, no pairing, no such capability.
        ("19000000 0800 1122334455c600 03", "01000000 0a00 1900 0d 1122334455c600"),
        ("19000000 0800 \(peer) 05", "01000000 0a00 1900 0d \(peer)"),
        ("1a000000 0700 \(peer)", "02000000 0300 1a00 0d"),
        ("1b000000 0800 \(peer) 01", "01000000 0a00 1b00 06 \(peer)"),
        ("1b000000 0800 \(peer) 02", "01000000 0a00 1b00 0d \(peer)"),
        ("1c000000 0700 \(peer)", "01000000 0a00 1c00 02 \(peer)"),
        ("1e000000 0b00 \(peer) 40e20100", "01000000 0a00 1e00 02 \(peer)"),
        ("14000000 0700 \(peer)", "01000000 0a00 1400 02 \(peer)"),
        // Out of band: the short form, and values of P-192.
        ("21000000 2700 \(peer) \(String(repeating: "01", count: 32))", "01000000 0a00 2100 0d \(peer)"),
        ("21000000 4700 \(peer) \(String(repeating: "01", count: 64))", "01000000 0a00 2100 0d \(peer)"),
        ("3b000000 0100 06", "01000000 0600 3b00 0c 06 0000"),
    ]

    @Test("A refused command has the status of its reason", arguments: refusals)
    func aRefusedCommandHasTheStatusOfItsReason(_ command: String, _ response: String) async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            #expect(try await bench.exchange(command) == [packet(response)])
        }
    }

    @Test("The library's socket and commands are understood")
    func librarySocket() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var socket = try radio.managementSocket()
            #expect(socket.send(ManagementReadVersion(), adapter: nil) == .sent)
            #expect(socket.send(ManagementSetSecureConnections(true), adapter: 0) == .sent)
            await time.settle()
            guard case .event(let version) = socket.receive(), case .event(let settings) = socket.receive() else {
                Issue.record("no responses")
                return
            }
            let read = try version.response(to: ManagementReadVersion.self, of: nil)?.get()
            #expect(read?.version == 1 && read?.revision == 22)
            #expect(
                settings.response(to: ManagementSetSecureConnections.self, of: 0)
                    == .success([.powered, .lowEnergy, .secureConnections]))
            // Rights are those of the moment in which it was opened.
            await radio.setPermissions([])
            var other = try radio.managementSocket()
            #expect(socket.send(ManagementSetBondable(true), adapter: 0) == .sent)
            await time.settle()
            #expect(other.send(ManagementSetBondable(true), adapter: 0) == .sent)
            await time.settle()
            guard case .event(let taken) = socket.receive() else {
                Issue.record("no response")
                return
            }
            #expect((try? taken.response(to: ManagementSetBondable.self, of: 0)?.get())?.contains(.bondable) == true)
            // What the first one changed is reported.
            guard case .event(let news) = other.receive(), case .newSettings = news.content,
                case .event(let refused) = other.receive()
            else {
                Issue.record("no response")
                return
            }
            #expect(
                refused.response(to: ManagementSetBondable.self, of: 0) == .failure(.status(.permissionDenied)))
        }
    }

    @Test("Without CAP_NET_ADMIN a socket may read and hears of settings, and nothing else")
    func aSocketWithoutRightsMayReadOnly() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            let nobody = try await bench.anotherSocket(isTrusted: false)
            func exchange(_ hex: String) async throws -> [String] {
                try nobody.send(hex)
                await bench.pass(.zero)
                return nobody.received()
            }
            #expect(try await exchange("0100ffff 0000") == [packet("0100ffff 0600 0100 00 01 1600")])
            #expect(try await exchange("0300ffff 0000") == [packet("0100ffff 0700 0300 00 0100 0000")])
            // As kernel 6.12 responded.
            #expect(
                try await exchange("48000000 0000") == [
                    packet("01000000 1000 4800 00 0b00 02 01 0a 03 03 1000 03 04 0000")
                ])
            #expect(try await exchange("04000000 0000").count == 1)
            for command in ["15000000 0000", "13000000 0200 0000", "05000000 0100 01", "1c000000 0700 \(Self.peer)"] {
                let code = command.prefix(2)
                #expect(try await exchange(command) == [packet("02000000 0300 \(code)00 14")])
            }
            try await bench.linked()
            #expect(nobody.received().allSatisfy { $0.hasPrefix("06") })
            try await bench.pair()
            try await bench.disconnect()
            #expect(nobody.received().isEmpty)
        }
    }

    @Test("A list replaces the former one; a bad key is skipped with success, one bad identity refuses all")
    func aListReplacesTheFormerOne() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            let fine = packet("01000000 0300 1300 00")
            #expect(try await bench.exchange(packet("13000000 2600 0100", Self.key)) == [fine])
            let known = await bench.radio.longTermKeys()
            #expect(known.count == 1 && known.first?.peer.id == KernelSecurityBench.id)
            // A count that the bytes do not have.
            for count in ["0000", "0200", "ffff"] {
                #expect(
                    try await bench.exchange(packet("13000000 2600 \(count)", Self.key))
                        == [packet("02000000 0300 1300 0d")])
            }
            #expect(await bench.radio.longTermKeys().count == 1)
            // A private address, kinds 4 and 5, size 17, BR/EDR, central 2: each beside a good one.
            let bad = [
                "112233445546 02 03 00 10", "1122334455c6 02 04 00 10", "1122334455c6 02 05 00 10",
                "1122334455c6 02 03 00 11", "1122334455c6 00 03 00 10", "1122334455c6 02 03 02 10",
            ]
            for entry in bad {
                let rest = String(repeating: "00", count: 10) + String(repeating: "11", count: 16)
                #expect(
                    try await bench.exchange(packet("13000000 4a00 0200", entry, rest, Self.key)) == [fine], "\(entry)")
                #expect(await bench.radio.longTermKeys() == known)
            }
            let irk = "000102030405060708090a0b0c0d0e0f"
            #expect(
                try await bench.exchange(packet("30000000 1900 0100", Self.peer, irk))
                    == [packet("01000000 0300 3000 00")])
            for entry in ["11223344554602", "1122334455c600"] {
                #expect(
                    try await bench.exchange(packet("30000000 3000 0200", Self.peer, irk, entry, irk))
                        == [packet("02000000 0300 3000 0d")])
            }
            // A blocked key is skipped; the list of blocked keys is replaced as well.
            let blocked = "01 ef8c26c1e45e8cbe9d7e39d53905d68e"
            #expect(
                try await bench.exchange(packet("46000000 1300 0100", blocked)) == [packet("01000000 0300 4600 00")])
            _ = try await bench.exchange(packet("13000000 2600 0100", Self.key))
            #expect(await bench.radio.longTermKeys().isEmpty)
            _ = try await bench.exchange("46000000 0200 0000")
            // 1,024 keys in one packet.
            let many = String(repeating: packet(Self.key), count: 1_024)
            #expect(try await bench.exchange(packet("13000000 0290 0004", many)) == [fine])
            #expect(await bench.radio.longTermKeys().count == 1_024)
        }
    }

    @Test("Connections are listed, and disconnected on request")
    func connectionsAreListedAndDisconnectedOnRequest() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.manage()
            #expect(try await bench.exchange("15000000 0000") == [packet("01000000 0500 1500 00 0000")])
            let other = try await bench.anotherSocket()
            try await bench.initiate()
            #expect(other.received() == [packet("0b000000 0d00 \(Self.peer) 00000000 0000")])
            _ = bench.management.received()
            #expect(try await bench.exchange("15000000 0000") == [packet("01000000 0c00 1500 00 0100 \(Self.peer)")])
            #expect(
                try await bench.exchange("14000000 0700 \(Self.peer)")
                    == [packet("01000000 0a00 1400 00 \(Self.peer)")])
            #expect(other.received() == [packet("0c000000 0800 \(Self.peer) 02")])
            #expect(bench.commands.received() == ["04050400400016"])
            // Ends by the peer, and out of range.
            try await bench.initiate()
            try bench.attach()
            await bench.radio.disconnect(bench.device)
            await bench.pass(.zero)
            #expect(other.received().last == packet("0c000000 0800 \(Self.peer) 03"))
            try await bench.initiate()
            try bench.attach()
            await bench.radio.move(bench.device, to: .outOfRange)
            await bench.pass(.seconds(21))
            #expect(other.received().last == packet("0c000000 0800 \(Self.peer) 01"))
        }
    }
}
