import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// The recorded visits to virtual devices, played back to the client that made them: it must ask the same again,
/// request for request.
@Suite("Explored dialogues", .timeLimit(.minutes(10)))
struct ExploredDialogueTests {
    private static let fixtures = RepositoryFiles.root.appending(path: "Fixtures/att")

    @Test("The client asks what it asked when it was recorded", arguments: ["heart-rate", "uart"])
    func asksTheSame(_ name: String) async throws {
        let file = Self.fixtures.appending(path: "virtual-\(name)-explored.dialogue")
        let dialogue = try Dialogue(try String(contentsOf: file, encoding: .utf8))
        let peer = ScriptedPeripheral(dialogue)
        let device = try await Central().attach(
            descriptor: try await peer.connect(), name: name, ConnectOptions(observesServiceChanges: false))
        _ = try await device.discover(level: .full)
        for step in dialogue.steps {
            guard case .sent(let pdu) = step.event, let request = try? ATTReadRequest(pdu) else { continue }
            _ = try await device.read(.handle(request.handle))
        }
        let report = await peer.finish()
        #expect(report.isComplete, "\(report)")
        await device.disconnect()
    }
}
