import BLECore
import Foundation
import Testing

@testable import blescan

/// What `blescan serve` prints of the requests of centrals.
@Suite(.timeLimit(.minutes(5))) struct ServedRequestTests {
    /// The packets of a link: `>` of the central, `<` to it.
    private static func requests(_ packets: String) throws -> [ServedRequest] {
        var reader = ServedRequestReader()
        var found: [ServedRequest] = []
        for packet in packets.split(separator: "\n") {
            let pdu = try Hex.decode(packet.dropFirst().filter { $0 != " " })
            if packet.hasPrefix(">") { reader.received(pdu) } else { found += reader.sent(pdu) }
        }
        return found
    }

    private static func read(_ handle: AttributeHandle, _ value: [UInt8]?, from offset: Int = 0) -> ServedRequest {
        ServedRequest(handle: handle, outcome: .read(value, offset: offset))
    }

    @Test(
        arguments: [
            ("> 0a 0300 \n< 0b 57", [read(3, [0x57])]),
            ("> 0c 0300 1600\n< 0d 0102", [read(3, [1, 2], from: 22)]),
            ("> 08 0100 ffff 192a\n< 09 03 0300 57", [read(3, [0x57])]),
            ("> 0e 0300 0500\n< 0f 5758", [read(3, nil), read(5, nil)]),
            ("> 20 0300 0500\n< 21 0100 57 0200 5859", [read(3, [0x57]), read(5, [0x58, 0x59])]),
            (
                "> 0a 0300\n< 01 0a 0300 05",
                [ServedRequest(handle: 3, outcome: .readRefused(.insufficientAuthentication))]
            ),
            ("> 12 0300 0102\n< 13", [ServedRequest(handle: 3, outcome: .written([1, 2]))]),
            (
                "> 12 0300 0102\n< 01 12 0300 03",
                [ServedRequest(handle: 3, outcome: .writeRefused(.writeNotPermitted))]
            ),
            (
                "> 16 0300 0000 0102\n< 17 0300 0000 0102\n> 16 0300 0200 03\n< 17 0300 0200 03\n> 18 01\n< 19",
                [ServedRequest(handle: 3, outcome: .written([1, 2, 3]))]
            ),
            (
                "> 16 0300 0000 0102\n< 17 0300 0000 0102\n> 18 01\n< 01 18 0300 0d\n> 18 01\n< 19",
                [ServedRequest(handle: 3, outcome: .writeRefused(.invalidAttributeValueLength))]
            ),
            // Cancelled.
            ("> 16 0300 0000 0102\n< 17 0300 0000 0102\n> 18 00\n< 19\n> 18 01\n< 19", []),
            // Discovery, its end, the end of a search, and commands.
            ("> 10 0100 ffff 0028\n< 11 06 0100 0500 0018", []), ("> 08 0100 ffff 0328\n< 09 07 0200 02 0300 002a", []),
            ("> 08 0100 ffff 0328\n< 01 08 0100 0a", []), ("> 08 0100 ffff 192a\n< 01 08 0100 0a", []),
            ("> 52 0300 01", []),
            // The other direction: requests of this side, and their responses.
            ("< 0a 0300\n> 0b 57", []),
            // A notification and a response to a request of this side come between.
            ("> 0a 0300\n< 1b 0500 01\n< 0a 0700\n> 0b 01\n< 0b 57", [read(3, [0x57])]),
        ] as [(String, [ServedRequest])])
    func theResponseCompletesARequest(_ packets: String, _ requests: [ServedRequest]) throws {
        #expect(try Self.requests(packets) == requests)
    }

    // MARK: The program

    private static let declaration = """
        service fff0
          characteristic fff1 read,write = 00 01
          characteristic fff2 read,encrypted = 07
        """

    /// Serves a device, has a central perform operations, and returns what was printed.
    private func printed(
        serving device: String, _ options: [String] = [], _ operations: [String], status: Int32
    ) async throws -> Outcome {
        let folder = try TestFolder()
        let (path, file) = (folder["socket"], folder["device.txt"])
        try Data(device.utf8).write(to: URL(filePath: file))
        let server = try RunningProgram(
            ["serve", device.hasPrefix("demo:") ? device : file, "--socket", path] + options)
        defer { server.signal(SIGKILL) }
        try await waited(for: "it serves") { FileManager.default.fileExists(atPath: path) }
        let client = try await BuiltProgram.run(["talk", "unix:\(path)"] + operations)
        #expect(client.status == status, "\(client.errors)")
        try await server.printed("disconnected")
        server.signal(SIGINT)
        return try await server.outcome()
    }

    @Test func eachRequestIsAnObject() async throws {
        let outcome = try await printed(
            serving: Self.declaration, ["--json"], ["read fff1", "write fff1 0203", "read fff1", "read fff2"],
            status: 76)
        let objects = try outcome.objects().filter { ["fff1", "fff2"].contains($0["uuid"] as? String) }
        #expect(
            objects.filter { $0["event"] as? String == "read" }.map { $0["hex"] as? String } == ["0001", "0203"])
        #expect(
            objects.filter { $0["event"] as? String == "written" }.map { $0["hex"] as? String } == ["0203"], "once")
        let refused = try #require(objects.first { $0["event"] as? String == "readRefused" })
        #expect(refused["uuid"] as? String == "fff2" && refused["attError"] as? Int == 5)
        #expect(refused["reason"] as? String == "insufficient authentication" && refused["hex"] == nil)
        #expect(objects.count == 4 && objects.allSatisfy { $0["name"] == nil }, "not those of companies")
    }

    /// The control point of the heart rate has a rule of its own, so that the database keeps nothing of it.
    @Test func eachRequestIsALine() async throws {
        let outcome = try await printed(
            serving: "demo:heart-rate", [], ["read 2a38", "write 2a39 01", "notify 2a37", "write 2a39 02"], status: 76)
        func hasLine(_ event: String, _ rest: String) -> Bool {
            outcome.output.split(separator: "\n").contains {
                $0.contains("  \(event)  0x") && $0.hasSuffix(rest)
            }
        }
        #expect(hasLine("read", "2a38  Body Sensor Location  01"), "\(outcome.output)")
        #expect(hasLine("written", "2a39  Heart Rate Control Point  01"), "\(outcome.output)")
        #expect(hasLine("subscribed", "2a37  Heart Rate Measurement"), "\(outcome.output)")
        #expect(outcome.output.contains("write refused"), "\(outcome.output)")
    }
}
