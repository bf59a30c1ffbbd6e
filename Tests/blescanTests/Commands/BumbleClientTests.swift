import Foundation
import TestSupport
import Testing

/// `blescan serve` on a Unix socket, used by the GATT client of another project (Bumble, through
/// Tests/VM/guest/socket_client.py).
@Suite(.serialized, .enabled(if: BumblePeer.available(for: "BumbleClientTests"))) struct BumbleClientTests {
    private struct Service: Decodable {
        let uuid: String
        let handle: Int
        let end: Int
        let characteristics: [Characteristic]
    }

    private struct Characteristic: Decodable {
        let uuid: String
        let handle: Int
        let properties: Int
        let value: Value?
        let descriptors: [Descriptor]
    }

    private struct Descriptor: Decodable {
        let uuid: String
        let value: Value
    }

    /// A value in hexadecimal, or the code of an error.
    private enum Value: Decodable, Equatable {
        case bytes(String)
        case refused(Int)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            self =
                if let code = try? container.decode(Int.self) { .refused(code) } else {
                    .bytes(try container.decode(String.self))
                }
        }
    }

    /// Serves a device, and returns the lines that the client prints for its orders.
    private func lines(serving device: String, _ orders: [String]) async throws -> [Data] {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "served-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (path, file) = (folder.appending(path: "socket").path, folder.appending(path: "device.txt"))
        try Data(device.utf8).write(to: file)
        let isVirtual = device.hasPrefix("demo:")
        let server = try RunningProgram(["serve", isVirtual ? device : file.path, "--socket", path])
        defer { server.signal(SIGKILL) }
        try await waited(for: "it serves") { FileManager.default.fileExists(atPath: path) }
        let client = try RunningProgram(
            [RepositoryFiles.root.appending(path: "Tests/VM/guest/socket_client.py").path, path] + orders,
            of: try BumblePeer.interpreter(), environment: ["PYTHONDONTWRITEBYTECODE": "1"])
        let outcome = try await client.outcome()
        #expect(outcome.status == 0, "\(outcome.errors)")
        return outcome.output.split(separator: "\n").map { Data($0.utf8) }
    }

    @Test func everythingIsFoundAndRead() async throws {
        let device = """
            name Thermometer
            service 1809
              characteristic 2a1c indicate
              characteristic 2a1d read = 02
            service 12345678-1234-5678-1234-56789abcdef0
              characteristic 12345678-1234-5678-1234-56789abcdef1 read,write = 00 01
              characteristic fff1 read,write,encrypted = 07
            """
        let found = try await lines(serving: device, ["mtu 100", "explore"])
        #expect(found.first == Data("100".utf8))
        let services = try JSONDecoder().decode([Service].self, from: #require(found.last))
        #expect(
            services.map(\.uuid) == ["1800", "1801", "1809", "12345678-1234-5678-1234-56789abcdef0"])
        for (service, next) in zip(services, services.dropFirst()) { #expect(service.end < next.handle) }
        let characteristics = Dictionary(
            uniqueKeysWithValues: services.flatMap(\.characteristics).map { ($0.uuid, $0) })
        #expect(
            characteristics["2a00"]?.value
                == .bytes(Data("Thermometer".utf8).map { String(format: "%02x", $0) }.joined()))
        #expect(characteristics["2a1c"]?.properties == 0x20 && characteristics["2a1c"]?.value == nil)
        #expect(characteristics["2a1c"]?.descriptors.map(\.uuid) == ["2902"])
        #expect(characteristics["2a1c"]?.descriptors.first?.value == .bytes("0000"))
        #expect(characteristics["2a1d"]?.value == .bytes("02"))
        #expect(characteristics["12345678-1234-5678-1234-56789abcdef1"]?.value == .bytes("0001"))
        #expect(characteristics["fff1"]?.value == .refused(5), "Insufficient Authentication")
        guard case .bytes(let hash)? = characteristics["2b2a"]?.value else {
            Issue.record("no Database Hash")
            return
        }
        #expect(hash.count == 32)
    }

    @Test(arguments: [23, 517]) func longValuesAreWrittenAndReadWhole(mtu: Int) async throws {
        let value = (0..<512).map { String(format: "%02x", $0 * 7 & 255) }.joined()
        let found = try await lines(
            serving: "service fff0\n characteristic fff1 read,write = 00",
            ["mtu \(mtu)", "explore", "write fff1 \(value)"])
        #expect(found.last == Data("\"\(value)\"".utf8))
    }

    @Test func subscribersReceiveValues() async throws {
        let found = try await lines(serving: "demo:heart-rate", ["mtu 517", "explore", "listen 2a37 2"])
        let values = try JSONDecoder().decode([String].self, from: #require(found.last))
        #expect(values.count == 2 && values.allSatisfy { $0.count >= 4 })
    }
}
