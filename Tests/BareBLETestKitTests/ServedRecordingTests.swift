import BLECore
import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// Recordings of served links, played to a server as a central.
@Suite(.timeLimit(.minutes(5))) struct ServedRecordingTests {
    private static func service(_ value: [UInt8]) -> LocalService {
        LocalService(
            0xFFF0,
            [
                LocalCharacteristic(0xFFF1, [.read, .write], value: .stored(value)),
                LocalCharacteristic(0xFFF2, [.read, .indicate], value: .stored([])),
            ])
    }

    /// Serves a central on a virtual radio, or over a descriptor, and records that.
    private func record(to folder: Folder, onRadio: Bool) async throws -> [UInt8]? {
        try await VirtualTime.run { time in
            let recorder = try Recorder(btsnoop: folder["visit.btsnoop"], dialogue: folder["visit.dialogue"])
            var configuration = Configuration()
            recorder.attach(to: &configuration)
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(configuration, radio: radio))
            try await local.publish(Self.service([1]))
            let advertising = try await local.advertise([.localName("A")])
            let phone = onRadio ? await radio.addCentral() : VirtualCentral(time: time)
            if onRadio { try await phone.connect() } else { try await local.attach(descriptor: phone.open()) }
            try await phone.exchangeMTU(64)
            try await phone.write([7, 7], to: 0xFFF1)
            try await phone.subscribe(to: 0xFFF2, isIndicated: true)
            try await local.update([5], of: 0xFFF2)
            let value = try await phone.read(0xFFF1)
            await phone.disconnect()
            await advertising.stop()
            await local.stop()
            try await time.hold { try await recorder.finish() }
            let transcript = await phone.transcript
            let links = try RecordedLink.servedLinks(in: folder["visit.btsnoop"])
            #expect(links.count == 1)
            let events = transcript.steps.map(\.event)
            // The central's own transcript is the second source.
            #expect(links.first?.dialogue.steps.map(\.event).filter(\.isPacket) == events.filter(\.isPacket))
            return value
        }
    }

    /// Plays a recording to a server whose value is `value` at first.
    private func replay(_ path: String, value: [UInt8]) async throws {
        let links = try RecordedLink.servedLinks(in: path)
        #expect(links.count == 1 && links.first?.isServed == true)
        try await VirtualTime.run { time in
            let local = LocalPeripheral(on: Central(time: time))
            try await local.publish(Self.service(value))
            let replay = Replay(links, time: time)
            var events = local.events.makeAsyncIterator()
            try await local.attach(descriptor: try await replay.connect())
            // The application sends its value when it did so before.
            while let event = try await events.next() {
                if case .subscribed = event { try await local.update([5], of: 0xFFF2) }
                if case .disconnected = event { break }
            }
            await local.stop()
            try await replay.finish()
        }
    }

    @Test(arguments: [true, false])
    func aServedLinkIsPlayedToAServer(onRadio: Bool) async throws {
        let folder = try Folder()
        #expect(try await record(to: folder, onRadio: onRadio) == [7, 7])
        try await replay(folder["visit.btsnoop"], value: [1])
        try await replay(folder["visit.dialogue"], value: [1])
        // Links that this program has not initiated are none of a client's.
        #expect(try RecordedLink.links(in: folder["visit.btsnoop"]).isEmpty)
    }

    @Test func aServerThatDiffersIsReported() async throws {
        let dialogue = try Dialogue("role: peripheral\n> 0a 0c00\n< 0b 09\n")
        let link = RecordedLink(dialogue, source: "visit")
        try await VirtualTime.run { time in
            let local = LocalPeripheral(on: Central(time: time))
            try await local.publish(Self.service([1]))
            let replay = Replay([link], time: time)
            try await local.attach(descriptor: try await replay.connect())
            let error = await #expect(throws: ReplayError.self) { try await replay.finish() }
            #expect(error?.description.contains("but the server sent") == true)
            await local.stop()
        }
    }
}

extension Dialogue.Event {
    var isPacket: Bool {
        switch self {
        case .sent, .received: true
        case .wait, .linkLost: false
        }
    }
}
