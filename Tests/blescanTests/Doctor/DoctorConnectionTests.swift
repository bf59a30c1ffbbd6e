import Foundation
import Testing

@testable import blescan

/// `--connect`: the fifteenth check.
@Suite struct DoctorConnectionTests {
    @Test(arguments: [("demo:heart-rate", 32), ("demo:battery", 0)])
    func aConnectionIsTimed(_ peer: String, _ attributes: Int) async throws {
        let machine = try FakeMachine()
        let outcome = try await machine.doctor(["--connect", peer])
        #expect(outcome.status == 0)
        let line = try #require(outcome.output.split(separator: "\n").first { $0.contains(peer) })
        #expect(line.hasPrefix("ok    \(peer): connected in "))
        #expect(line.contains("MTU 517"))
        if attributes > 0 { #expect(line.contains("\(attributes) attributes")) }
        #expect(line.contains("a Database Hash"))
    }

    @Test func aConnectionIsRecorded() async throws {
        let machine = try FakeMachine()
        let file = machine.root.appending(path: "session.btsnoop").path
        let outcome = try await machine.doctor(["--connect", "demo:battery", "--record", file])
        #expect(outcome.status == 0)
        let packets = try await BuiltProgram.run(["replay", file, "--only", "att"])
        #expect(packets.status == 0 && packets.output.contains("Read By Group Type Request"))
    }

    /// A device is connected to with its bond, or not at all: nobody knows whether it has one in this directory.
    @Test func bondsThatCannotBeReadPreventAConnection() async throws {
        let machine = try FakeMachine()
        let directory = machine.root.appending(path: "bonds")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try machine.setMode("bonds", 0o777)
        let outcome = try await machine.doctor([
            "--connect", "C6:55:44:33:22:11/random", "--bonds", directory.path, "--no-scan", "--json",
        ])
        #expect(outcome.status == 77, "\(outcome.errors)")
        let finding = try #require(try outcome.objects().first { $0["id"] as? String == "connect-failed" })
        #expect((finding["text"] as? String)?.contains(directory.path) == true, "\(finding)")
    }

    @Test func anEncryptedLinkIsNamed() {
        var facts = SystemFacts()
        facts.connection = ConnectionFacts(peer: "demo:lock")
        #expect(Check.connection(facts).first?.text.contains("encrypted") == false)
        facts.connection?.isEncrypted = true
        #expect(Check.connection(facts).first?.text.contains(", encrypted with the key of its bond, MTU ") == true)
    }

    @Test func aPeerThatIsNotThereIsAFailure() async throws {
        let machine = try FakeMachine()
        let outcome = try await machine.doctor(["--connect", "unix:/nowhere/peer.sock", "--json"])
        #expect(outcome.status == 64)
        let finding = try #require(try outcome.objects().first { $0["id"] as? String == "connect-failed" })
        #expect((finding["text"] as? String)?.contains("there is no such socket") == true)
        #expect(
            (finding["remedy"] as? String)?.hasSuffix("then: blescan explore unix:/nowhere/peer.sock --trace") == true)
    }

    /// A socket and a virtual device take no rights.
    @Test(arguments: [
        ("C6:55:44:33:22:11/random", "sudo blescan explore C6:55:44:33:22:11/random --trace"),
        ("demo:lock", "blescan explore demo:lock --trace"),
    ])
    func theAdviceTakesRightsForARadioAlone(_ peer: String, _ command: String) {
        var facts = SystemFacts()
        facts.connection = ConnectionFacts(peer: peer)
        facts.connection?.failure = "it failed"
        #expect(Check.connection(facts).first?.remedy == "see the lines above; then: \(command)")
    }

    /// The worst failure decides the exit status.
    @Test func theWorstFailureIsTheStatus() {
        func diagnosis(_ statuses: [blescan.ExitStatus]) -> blescan.ExitStatus {
            Diagnosis(
                lines: statuses.map {
                    Diagnosis.Line(check: .connection, finding: .fail("x", "x", remedy: "x", status: $0))
                }
            ).status
        }
        #expect(diagnosis([]) == .done)
        #expect(diagnosis([.timedOut]) == .timedOut)
        #expect(diagnosis([.timedOut, .notPermitted]) == .notPermitted)
        #expect(diagnosis([.notPermitted, .timedOut, .noAdapter]) == .noAdapter)
    }
}
