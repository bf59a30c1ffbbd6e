import BLECore
import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// Recordings of a whole radio: what the controller says, and what links carry, in one file.
@Suite("Recorder on a radio", .timeLimit(.minutes(10)))
struct RecorderRadioTests {
    /// Scans, connects, reads and loses a link or ends it; returns the packets of the recording.
    private func session(
        _ permissions: VirtualPermissions = [.commands, .administration], isLost: Bool = false,
        extended: Bool = true
    ) async throws -> (packets: [CapturedPacket], links: [RecordedLink], id: PeerID) {
        let folder = try Folder()
        let recorder = try Recorder(btsnoop: folder["radio.btsnoop"])
        let id = try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var configuration = Configuration()
            configuration.adapter = .named(await radio.addAdapter(isExtended: extended))
            let belt = await radio.add(.heartRate)
            recorder.attach(to: &configuration)
            let central = Central(configuration, radio: radio)
            let known = try #require(await radio.id(of: belt))
            await radio.setPermissions(permissions)
            // Nobody may scan without the permission, and a known peer needs no scan.
            let id = permissions.isEmpty ? known : try #require(try await central.first(.services(0x180D)).peer)
            #expect(id == known)
            let device = try await central.connect(id)
            #expect(try await device.read(0x2A38) == [1])
            if isLost {
                await radio.move(belt, to: .outOfRange)
                _ = await device.disconnected()
            } else {
                await device.disconnect()
            }
            // What the controller says of the end comes after it.
            try await time.clock.sleep(for: .seconds(10))
            return id
        }
        try await recorder.finish()
        var reader = CaptureReader()
        reader.append([UInt8](try Data(contentsOf: URL(filePath: folder["radio.btsnoop"]))))
        var packets: [CapturedPacket] = []
        while let packet = try reader.next() { packets.append(packet) }
        try reader.finish()
        return (packets, try RecordedLink.links(in: folder["radio.btsnoop"]), id)
    }

    @Test("The key of a command that encrypts a link is in no recording", .row("S21"))
    func keysAreInNoRecording() async throws {
        let folder = try Folder()
        let recorder = try Recorder(btsnoop: folder["keys.btsnoop"])
        let key = try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var lock = VirtualDevice(
                name: "Lock",
                services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .read, value: [7])])])
            lock.security = VirtualSecurity(hasSecureConnections: false)
            let id = try #require(await radio.id(of: await radio.add(lock)))
            let bonds = BondStore.inMemory
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: bonds)
            let pairing = try await Central(configuration, radio: radio).connect(id)
            let bond = try await pairing.pair()
            await pairing.disconnect()
            await radio.setPermissions(.commands)
            recorder.attach(to: &configuration)
            let device = try await Central(configuration, radio: radio).connect(id)
            #expect(await device.security.isEncrypted)
            #expect(try await device.read(0xFFF1) == [7])
            await device.disconnect()
            let stored = try bonds.open(adapter: bond.adapter).load().records.first
            return try #require(stored?.centralKey)
        }
        try await recorder.finish()
        let file = [UInt8](try Data(contentsOf: URL(filePath: folder["keys.btsnoop"])))
        let secret = key.key.withBytes { bytes in Hex.encode((0..<16).map { bytes[$0] }) }
        #expect(!Hex.encode(file).contains(secret))
        let blanked = LEEnableEncryption(handle: 0x40, rand: key.rand, ediv: key.ediv, key: .zero)
        #expect(Hex.encode(file).contains(Hex.encode(blanked.parameters)))
    }

    @Test("Commands, reports and one link, whose packets name the controller's handle", arguments: [true, false])
    func packetsNameTheControllersHandle(extended: Bool) async throws {
        let (packets, links, id) = try await session(extended: extended)
        let events = packets.filter { $0.kind == .event }.compactMap { try? HCIEvent($0.bytes.span) }
        var handles: [ConnectionHandle] = []
        var ends: [ConnectionHandle] = []
        var reports = 0
        for event in events {
            if case .connectionComplete(let complete) = event, complete.status.isSuccess {
                handles.append(complete.handle)
            }
            if case .disconnectionComplete(let end) = event { ends.append(end.handle) }
            if case .advertisingReports(let batch) = event { reports += batch.reports.count }
        }
        #expect(reports > 0)
        #expect(handles.count == 1 && ends == handles)
        let data = packets.filter { $0.kind == .asynchronousData }
        #expect(data.count >= 2)
        #expect(data.allSatisfy { UInt16($0.bytes[0]) | UInt16($0.bytes[1] & 0x0F) << 8 == handles.first })
        // LE (Extended) Create Connection, Core Vol 4 Part E, 7.8.12 and 7.8.66.
        let called: [UInt8] = extended ? [0x43, 0x20] : [0x0D, 0x20]
        #expect(packets.contains { $0.kind == .command && $0.bytes.starts(with: called) })
        #expect(links.map(\.peer) == [id])
        #expect(links.first?.dialogue.packets.count == data.count)
        let times = packets.map(\.timestamp)
        #expect(times == times.sorted())
    }

    @Test("A link that the controller has not reported is synthesized, once", arguments: [true, false])
    func madeUp(isLost: Bool) async throws {
        let (packets, links, id) = try await session([], isLost: isLost)
        let events = packets.filter { $0.kind == .event }.compactMap { try? HCIEvent($0.bytes.span) }
        let beginnings = events.filter { event in
            if case .connectionComplete(let complete) = event { complete.status.isSuccess } else { false }
        }
        let ends = events.filter { event in
            if case .disconnectionComplete = event { true } else { false }
        }
        #expect(beginnings.count == 1 && ends.count == 1)
        #expect(links.map(\.peer) == [id])
        #expect((links.first?.dialogue.steps.last?.event == .linkLost) == isLost)
    }

    @Test("A lost link ends once, with the controller's reason")
    func aLostLinkEndsOnceWithTheControllersReason() async throws {
        let (packets, links, _) = try await session(isLost: true)
        let reasons = packets.compactMap { packet -> HCIStatus? in
            guard packet.kind == .event, case .disconnectionComplete(let end) = try? HCIEvent(packet.bytes.span) else {
                return nil
            }
            return end.reason
        }
        #expect(reasons == [.connectionTimeout])
        #expect(links.first?.dialogue.steps.last?.event == .linkLost)
    }
}
