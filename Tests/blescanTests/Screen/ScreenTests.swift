import Foundation
import Testing

/// Every screen against the virtual devices, as files that people can read.
@Suite struct ScreenTests {
    private static let uart = (
        receive: "6e400002-b5a3-f393-e0a9-e50e24dcca9e", send: "6e400003-b5a3-f393-e0a9-e50e24dcca9e"
    )

    @Test func exploringPrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["explore", "demo:heart-rate"],
            ["explore", "demo:battery"],
            ["explore", "demo:uart"],
            ["explore", "demo:long-value"],
            ["explore", "demo:heart-rate", "--no-read"],
            ["explore", "demo:heart-rate", "--mtu", "23"],
        ])
        try Golden.expect(session, matches: "explore.txt")
    }

    @Test func exploringAsJSONPrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["explore", "demo:heart-rate", "--json"],
            ["explore", "demo:battery", "--json"],
            ["explore", "demo:uart", "--json"],
            ["explore", "demo:long-value", "--json"],
            ["explore", "demo:battery", "--no-read", "--json"],
        ])
        try Golden.expect(session, matches: "explore-json.txt")
    }

    @Test func aTracePrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["explore", "demo:battery", "--trace", "--no-read"],
            ["read", "demo:battery", "2a19", "--trace"],
            ["write", "demo:uart", Self.uart.receive, "--text", "hello", "--without-response", "--trace"],
        ])
        try Golden.expect(session, matches: "trace.txt")
    }

    /// The output of --trace is a dialogue: replaying it shows the same packets.
    @Test func aTraceCanBeReplayed() async throws {
        let trace = try await BuiltProgram.run(["explore", "demo:uart", "--trace"]).errors
        let file = FileManager.default.temporaryDirectory.appending(path: "trace-\(UUID().uuidString).dialogue")
        defer { try? FileManager.default.removeItem(at: file) }
        try trace.write(to: file, atomically: true, encoding: .utf8)
        let replayed = try await BuiltProgram.run(["replay", file.path])
        #expect(replayed.status == 0)
        let packets = trace.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(packets.count == 24)
        #expect(replayed.output.split(separator: "\n").filter { $0.hasPrefix("#") }.count == packets.count)
        for packet in packets {
            let comment = packet.split(separator: "# ").last ?? ""
            let (time, meaning) = (comment.prefix(12), comment.dropFirst(14))
            #expect(time.contains(/^\d\d:\d\d:\d\d\.\d{3}$/), "\(packet)")
            #expect(replayed.output.contains(" \(meaning)"))
            #expect(replayed.output.contains("        # \(time)\n"), "the name is not repeated")
        }
    }

    @Test func readingPrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["read", "demo:battery", "2a19"],
            ["read", "demo:battery", "battery-level"],
            ["read", "demo:battery", "0x0008"],
            ["read", "demo:battery", "00002A19-0000-1000-8000-00805F9B34FB"],
            ["read", "demo:battery", "2a19", "--hex-only"],
            ["read", "demo:battery", "2a19", "--json"],
            ["read", "demo:battery", "0x0008", "--json"],
            ["read", "demo:heart-rate", "device-name"],
            ["read", "demo:heart-rate", "device-name", "--json"],
            ["read", "demo:heart-rate", "body-sensor-location"],
            ["read", "demo:heart-rate", "appearance", "--json"],
            ["read", "demo:heart-rate", "device-name", "2a19", "0x0005"],
            ["read", "demo:heart-rate", "device-name", "2a19", "--json"],
            ["read", "demo:heart-rate", "device-name", "2a19", "--hex-only"],
            ["read", "demo:long-value", "fff1"],
            ["read", "demo:long-value", "fff1", "--mtu", "23", "--json"],
        ])
        try Golden.expect(session, matches: "read.txt")
    }

    @Test func writingPrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["write", "demo:heart-rate", "2a39", "--u8", "1"],
            ["write", "demo:heart-rate", "heart-rate-control-point", "--hex", "01", "--json"],
            ["write", "demo:uart", Self.uart.receive, "--text", "hello"],
            ["write", "demo:uart", Self.uart.receive, "--text", "hello", "--without-response"],
            ["write", "demo:uart", "0x0008", "--hex", "05:a0", "--without-response", "--json"],
            ["write", "demo:long-value", "fff1", "--u16", "500"],
            ["write", "demo:long-value", "fff1", "--i32", "-2"],
            ["write", "demo:long-value", "fff1", "--hex", String(repeating: "ab", count: 512), "--mtu", "23"],
        ])
        try Golden.expect(session, matches: "write.txt")
    }

    @Test func notificationsPrintAsRecorded() async throws {
        let session = try await Golden.session([
            ["notify", "demo:heart-rate", "2a37", "--count", "2"],
            ["notify", "demo:heart-rate", "0x0010", "--count", "1", "--json"],
            ["notify", "demo:heart-rate", "heart-rate-measurement", "--count", "1", "--mtu", "23"],
            ["notify", "demo:heart-rate", "2a37", "battery-level", "0x0010", "--count", "2"],
            ["notify", "demo:heart-rate", "battery-level", "2a37", "--count", "1", "--json"],
            ["notify", "demo:heart-rate", "2a37", "fff9"],
            ["notify", "demo:battery", "2a19", "--for", "300ms"],
            ["notify", "demo:battery", "2a19", "--for", "300ms", "--count", "3"],
        ])
        try Golden.expect(session, matches: "notify.txt")
    }
}
