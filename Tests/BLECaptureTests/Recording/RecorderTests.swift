import BLECore
import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

@Suite("Recorder", .timeLimit(.minutes(10)))
struct RecorderTests {
    @Test("Each link gets its events and packets in the capture, and a dialogue of its own")
    func eachLinkGetsADialogueOfItsOwn() async throws {
        let folder = try Folder()
        let recorder = try Recorder(btsnoop: folder["visit.btsnoop"], dialogue: folder["visit.dialogue"])
        var configuration = Configuration()
        let traced = Count()
        configuration.trace = { _ in traced.add() }
        recorder.attach(to: &configuration)
        let central = Central(configuration)
        let batteries = [VirtualPeripheral(.battery), VirtualPeripheral(.battery)]
        let first = try await central.attach(descriptor: batteries[0].connect(), name: "first")
        let second = try await central.attach(descriptor: batteries[1].connect(), name: "se\ncond")
        #expect(try await first.read(.battery) == [64])
        #expect(try await second.read(.battery) == [64])
        await first.disconnect()
        await batteries[1].disconnect()
        _ = await second.disconnected()
        try await recorder.finish()
        #expect(recorder.linkCount == 2 && recorder.failure == nil)
        #expect(recorder.packetCount == traced.value)

        let links = try RecordedLink.links(in: folder["visit.btsnoop"])
        #expect(links.map { $0.peer?.description } == ["C0:DE:00:00:00:01/random", "C0:DE:00:00:00:02/random"])
        #expect(links.map { $0.dialogue.steps.last?.event == .linkLost } == [false, true])
        for (link, (battery, name)) in zip(links, zip(batteries, ["visit.dialogue", "visit-2.dialogue"])) {
            // What the peer saw is the second source.
            let packets = await battery.transcript.packets
            #expect(link.dialogue.packets == packets)
            let text = try String(contentsOfFile: folder[name], encoding: .utf8)
            #expect(try Dialogue(text).packets == packets)
            #expect(text.contains("# "))
        }
        // Only the owner may read what may be secret.
        let attributes = try FileManager.default.attributesOfItem(atPath: folder["visit-2.dialogue"])
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test("What the controller would have said is in the layout of the specification")
    func recordedEventsHaveTheLayoutOfTheSpecification() async throws {
        let folder = try Folder()
        let recorder = try Recorder(btsnoop: folder["one.btsnoop"])
        var configuration = Configuration()
        recorder.attach(to: &configuration)
        let battery = VirtualPeripheral(.battery)
        let options = ConnectOptions(mtu: 23)
        let link = try await Central(configuration).attach(descriptor: battery.connect(), options)
        _ = try? await link.read(.handle(0x0003))
        await link.disconnect()
        try await recorder.finish()
        var reader = CaptureReader()
        reader.append([UInt8](try Data(contentsOf: URL(filePath: folder["one.btsnoop"]))))
        var packets: [CapturedPacket] = []
        while let packet = try reader.next() { packets.append(packet) }
        try reader.finish()
        // By hand, from Core Vol 4 Part E, 7.7.65.1, 5.4.2 and 7.7.5.
        #expect(
            packets.first?.bytes == [
                0x3E, 19, 0x01, 0x00, 0x41, 0x00, 0x00, 0x01, 0x01, 0, 0, 0, 0xDE, 0xC0, 40, 0, 0, 0, 0xF4, 0x01, 0,
            ])
        #expect(packets.dropFirst().first?.bytes == [0x41, 0x00, 7, 0, 3, 0, 4, 0, 0x0A, 3, 0])
        #expect(packets.dropFirst(2).first?.bytes.starts(with: [0x41, 0x20, 20, 0]) == true)
        #expect(packets.last?.bytes == [0x05, 4, 0x00, 0x41, 0x00, 0x16])
        // All of it happened in this minute.
        let now = Duration.seconds(Int64(Date().timeIntervalSince1970))
        #expect(packets.allSatisfy { $0.timestamp > now - .seconds(120) && $0.timestamp < now + .seconds(120) })
    }

    @Test("A full disk ends the recording and not the session")
    func fullDisk() async throws {
        let told = Count()
        let recorder = try Recorder(capture: nil, dialogue: "/dev/full") { _ in told.add() }
        var configuration = Configuration()
        recorder.attach(to: &configuration)
        let battery = VirtualPeripheral(.battery)
        let link = try await Central(configuration).attach(descriptor: battery.connect())
        #expect(try await link.read(.battery) == [64])
        await #expect(throws: RecorderError.cannotWrite(path: "/dev/full", errno: ENOSPC)) {
            try await recorder.finish()
        }
        #expect(recorder.failure == .cannotWrite(path: "/dev/full", errno: ENOSPC))
        #expect(try await link.read(.battery) == [64])
        #expect(told.value == 1)
        await link.disconnect()
    }

    @Test("What waits for the disk is bounded, and more ends the recording")
    func whatWaitsForTheDiskIsBounded() async throws {
        let folder = try Folder()
        let recorder = try Recorder(capture: .file(folder["a"]), dialogue: nil, capacity: 60)
        var configuration = Configuration()
        recorder.attach(to: &configuration)
        let battery = VirtualPeripheral(.battery)
        let link = try await Central(configuration).attach(descriptor: battery.connect())
        // The event of a connection is longer than that: record header 24, type 1, event 21, and the dialogue's header.
        guard case .tooSlow(let waiting) = recorder.failure else { throw CancellationError() }
        #expect(waiting > 60)
        #expect(try await link.read(.battery) == [64])
        await #expect(throws: RecorderError.tooSlow(waitingBytes: waiting)) { try await recorder.finish() }
        await link.disconnect()
    }

    @Test("A pipe is no file: its reader could end the program")
    func aPipeIsRefused() throws {
        let folder = try Folder()
        #expect(unsafe mkfifo(folder["pipe"], 0o600) == 0)
        #expect(throws: RecorderError.cannotCreate(path: folder["pipe"], errno: ENXIO)) {
            _ = try Recorder(btsnoop: folder["pipe"])
        }
        let reader = unsafe open(folder["pipe"], O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        #expect(throws: RecorderError.cannotCreate(path: folder["pipe"], errno: EINVAL)) {
            _ = try Recorder(btsnoop: folder["pipe"])
        }
    }

    @Test("A file that cannot be created is reported at once")
    func noFile() throws {
        #expect(throws: RecorderError.cannotWrite(path: "/dev/full", errno: ENOSPC)) {
            _ = try Recorder(btsnoop: "/dev/full")
        }
        #expect(throws: RecorderError.cannotCreate(path: "/nowhere/at.all", errno: ENOENT)) {
            _ = try Recorder(btsnoop: "/nowhere/at.all")
        }
    }
}

extension CharacteristicReference {
    fileprivate static let battery = CharacteristicReference.uuid(0x2A19)
}

extension Dialogue {
    /// Its packets, without pauses and ends.
    var packets: [Event] {
        steps.map(\.event).filter { event in
            switch event {
            case .sent, .received: true
            case .wait, .linkLost: false
            }
        }
    }
}

/// A number that closures of any thread add to.
final class Count: Sendable {
    private let lock = NSLock()
    private nonisolated(unsafe) var number = 0

    func add() { lock.withLock { unsafe number += 1 } }

    var value: Int { lock.withLock { unsafe number } }
}
