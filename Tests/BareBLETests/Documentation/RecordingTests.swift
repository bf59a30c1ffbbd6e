import BareBLE
import BareBLETestKit
import Foundation
import Testing

/// The samples of RecordingAndReplaying.md, as one session.
@Suite(.timeLimit(.minutes(10))) struct RecordingTests {
    @Test func aRecordedVisitIsATest() async throws {
        let folder = NSTemporaryDirectory() + "bareble-recording-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // in: Sources/BareBLETestKit/BareBLETestKit.docc/RecordingAndReplaying.md
        let recorder = try Recorder(btsnoop: "\(folder)/visit.btsnoop", dialogue: "\(folder)/visit.dialogue")
        var configuration = Configuration()
        recorder.attach(to: &configuration)
        let central = Central(configuration)
        // out
        let battery = VirtualPeripheral(.battery)
        let recorded = try await central.attach(descriptor: battery.connect())
        #expect(try await recorded.read(0x2A19) == [64])
        await recorded.disconnect()
        // in: Sources/BareBLETestKit/BareBLETestKit.docc/RecordingAndReplaying.md
        try await recorder.finish()
        // out
        // in: Sources/BareBLETestKit/BareBLETestKit.docc/RecordingAndReplaying.md
        let replay = try Replay("\(folder)/visit.btsnoop")
        let device = try await Central().attach(descriptor: replay.connect(), name: "replay")
        #expect(try await device.read(0x2A19) == [64])
        await device.disconnect()
        try await replay.finish()
        // out
        try await playsTheDialogue(folder)
    }

    private func playsTheDialogue(_ folder: String) async throws {
        // in: Sources/BareBLETestKit/BareBLETestKit.docc/RecordingAndReplaying.md
        let text = try String(contentsOfFile: "\(folder)/visit.dialogue", encoding: .utf8)
        let peer = ScriptedPeripheral(try Dialogue(text))
        let device = try await Central().attach(descriptor: peer.connect(), name: "visit")
        #expect(try await device.read(0x2A19) == [64])
        await device.disconnect()
        #expect(await peer.finish().isComplete)
        // out
    }
}
