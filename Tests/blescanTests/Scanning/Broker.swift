import Foundation
import Glibc
import Testing

/// An MQTT broker for the test alone, on loopback: mosquitto as a child process, never the system's service.
final class Broker: Sendable {
    private static let programs = ["/usr/sbin/mosquitto", "/usr/bin/mosquitto_pub", "/usr/bin/mosquitto_sub"]

    /// Whether mosquitto and its clients are installed; prints which suite is skipped if they are not.
    static func available(for suite: String) -> Bool {
        guard let missing = programs.first(where: { !FileManager.default.isExecutableFile(atPath: $0) }) else {
            return true
        }
        print("SKIPPED: \(suite): \(missing) is not installed")
        return false
    }

    let port: UInt16
    private let folder: TestFolder
    private let program: RunningProgram

    init() async throws {
        folder = try TestFolder()
        port = try Self.freePort()
        let lines = [
            "listener \(port) 127.0.0.1", "allow_anonymous true", "persistence false", "max_queued_messages 0",
            "log_type none",
        ]
        try lines.joined(separator: "\n").write(toFile: folder["broker.conf"], atomically: true, encoding: .utf8)
        program = try RunningProgram(["-c", folder["broker.conf"]], of: URL(filePath: Self.programs[0]))
        let port = port
        try await waited(for: "the broker listens") { Self.listens(port) }
    }

    deinit { program.signal(SIGKILL) }

    /// Starts a client that prints each message of some topics as `TOPIC RETAINED PAYLOAD`; it is subscribed when this
    /// returns.
    ///
    /// Retained messages arrive with the subscription: one that always exists shows that the others are subscribed to.
    func subscriber(_ topics: String..., more: [String] = []) async throws -> RunningProgram {
        let retain = ["-h", "127.0.0.1", "-p", "\(port)", "-q", "1", "-r", "-t", "test/ready", "-m", "yes"]
        _ = try await RunningProgram(retain, of: URL(filePath: Self.programs[1])).outcome()
        let arguments = ["-h", "127.0.0.1", "-p", "\(port)", "-q", "1", "-F", "%t %r %p"] + more
        let program = try RunningProgram(
            arguments + (topics + ["test/ready"]).flatMap { ["-t", $0] }, of: URL(filePath: Self.programs[2]))
        try await program.printed("test/ready 1 yes")
        return program
    }

    /// Returns the messages that a subscriber has printed, without the one that it waited for.
    static func messages(_ output: String) -> [(topic: String, isRetained: Bool, payload: String)] {
        output.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ", maxSplits: 2)
            guard parts.count == 3, parts[0] != "test/ready" else { return nil }
            return (String(parts[0]), parts[1] == "1", String(parts[2]))
        }
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let failure = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(descriptor, pointer, length) != 0 || getsockname(descriptor, pointer, &length) != 0
            }
        }
        if failure { throw CocoaError(.featureUnsupported) }
        return UInt16(bigEndian: address.sin_port)
    }

    private static func listens(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = address(port)
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe connect(descriptor, pointer, length) == 0
            }
        }
    }
}
