import Foundation
import TestSupport
import Testing

/// Mistakes on the command line, and their messages: one paragraph and the documented status.
@Suite struct BadInputTests {
    /// No connection is made for these.
    @Test func wrongUsagePrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["frobnicate"],
            ["scn"],
            ["connect"],
            ["--json", "explore", "demo:battery"],
            ["--plain", "explore", "demo:battery"],
            ["read", "demo:battery", "2a19", "--watch", "1s"],
            ["notify", "demo:battery", "2a19", "-x", "2"],
            ["notify", "demo:battery", "2a19", "--raw"],
            ["write", "demo:uart", "0x0008", "--u64", "1"],
            ["scan", "--min-rssi", "70"],
            ["scan", "--company", "4c00"],
            ["scan", "--count", "0"],
            ["scan", "--count", "-1"],
            ["scan", "--for", "soon"],
            ["scan", "--for", "-1"],
            ["scan", "--min-rssi", "500"],
            ["scan", "--min-rssi", "-200"],
            ["scan", "--service", "tea-making"],
            ["scan", "--service", "hart-rate"],
            ["scan", "--service", "battery-level"],
            ["scan", "--address", "AA:BB"],
            ["scan", "--company", "tea"],
            ["scan", "AA:BB:CC:DD:EE:FF"],
            ["scan", "demo:battery", "--json"],
            ["scan", "--each", "second"],
            ["scan", "--passive", "--long-range"],
            ["replay"],
            ["replay", "/nowhere/capture.btsnoop"],
            ["replay", "/etc/hostname"],
            ["replay", "--hex", "0g"],
            ["replay", "/etc/hostname", "--check", "--only", "att"],
            ["replay", "--hex", "0201", "--check"],
            ["replay", "/etc/hostname", "--check", "--as-fixture", "visit"],
            ["replay", "/etc/hostname", "--as-fixture", ""],
            ["replay", "/etc/hostname", "--only", "wifi"],
            ["replay", "/etc/hostname", "--screen", "--speed", "-1"],
            ["replay", "/etc/hostname", "--screen", "--speed", "fast"],
            ["decode", "--hex", "020"],
            ["decode", "/nowhere/lines.txt"],
            ["decode", "/etc"],
            ["replay", "-", "--as-fixture", "visit"],
            ["help", "frobnicate"],
            ["explore"],
            ["explore", "kitchen lamp"],
            ["explore", "heart-rate"],
            ["explore", "AA:BB:CC:DD:EE"],
            ["explore", "AA:BB:CC:DD:EE:FF/static"],
            ["explore", "unix:"],
            ["explore", "demo:toaster"],
            ["explore", "demo:battery", "--timeout", "soon"],
            ["explore", "demo:battery", "--timeout", "0s"],
            ["explore", "demo:battery", "--timeout", "0"],
            ["explore", "demo:battery", "--timeout", "9000h"],
            ["explore", "demo:battery", "--mtu", "22"],
            ["explore", "demo:battery", "--mtu", "-5"],
            ["pair", "demo:lock", "--passkey", "-5"],
            ["explore", "demo:battery", "--adapter", "usb1"],
            ["explore", "demo:battery", "--adapter", "hci0"],
            ["read", "unix:/nowhere/peer.sock", "2a19", "--adapter", "hci0"],
            ["explore", "demo:battery", "--cache", ""],
            ["read", "demo:battery"],
            ["read", "demo:battery", "battery-levle"],
            ["read", "demo:battery", "alert"],
            ["read", "demo:battery", "measurement"],
            ["read", "demo:battery", "battery", "--raw"],
            ["write", "demo:battery", "battery", "--hex", "00"],
            ["notify", "demo:battery", "180f"],
            ["read", "demo:battery", "client-characteristic-configuration"],
            ["read", "demo:battery", "tea-making"],
            ["read", "demo:battery", "20"],
            ["read", "demo:battery", "65536"],
            ["read", "demo:battery", "0x0000"],
            ["read", "demo:battery", "0x10000"],
            ["write", "demo:uart", "0x0008"],
            ["write", "demo:uart", "0x0008", "05a0"],
            ["write", "demo:uart", "0x0008", "good morning"],
            ["write", "demo:uart", "0x0008", "--hex", "01", "--u8", "1"],
            ["write", "demo:uart", "0x0008", "--hex", "01", "extra"],
            ["write", "demo:uart", "0x0008", "--hex", "012"],
            ["write", "demo:uart", "0x0008", "--hex", "0g"],
            ["write", "demo:uart", "0x0008", "--u8", "256"],
            ["write", "demo:uart", "0x0008", "--u8", "-1"],
            ["write", "demo:uart", "0x0008", "--u16", "65536"],
            ["write", "demo:uart", "0x0008", "--i8", "x"],
            ["write", "demo:uart", "0x0008", "--file", "/nowhere/value.bin"],
            ["write", "demo:uart", "0x0008", "--file", "/"],
            ["write", "demo:uart", "0x0008", "--file", "/dev/zero"],
            ["write", "demo:uart", "0x0008", "--hex", String(repeating: "00", count: 513)],
            ["notify", "demo:heart-rate", "2a37", "--count", "0"],
            ["notify", "demo:heart-rate", "2a37", "--for", "-1s"],
            ["notify", "demo:heart-rate", "2a37", "--count", "-1"],
            ["doctor", "--root", "/nope"],
        ])
        try Golden.expect(session, matches: "wrong-usage.txt")
    }

    /// A newcomer's first word, and what is meant by it.
    @Test(arguments: [
        (["battery"], "Did you mean `blescan explore demo:battery`?"),
        (["DEMO:battery"], "Did you mean `blescan explore demo:battery`?"),
        (["demo:battery", "read", "2a19"], "Write `blescan read demo:battery 2a19`."),
        (["explore", "demo:heart-rat"], "Did you mean demo:heart-rate?"),
        (["serve", "demo:batery"], "Did you mean demo:battery?"),
        (["hci1"], "Did you mean `blescan scan --adapter hci1`?"),
        (["street evening.btsnoop"], "Did you mean `blescan replay 'street evening.btsnoop'`?"),
        (["gatttool"], "Did you mean talk?"), (["status"], "Did you mean doctor?"),
        (["version"], "Did you mean --version?"),
        (["talk", "demo:uart", "read", "2a00"], "Put each operation in quotes: `blescan talk … 'read 2a00'`."),
        (["talk", "demo:uart", "reed", "2a00"], "Did you mean read?"),
        // Only the second one is wrong, and both are in quotes.
        (
            ["talk", "demo:uart", "read 2a00", "2a01"],
            "The operations are read, write, notify, stop, wait, explore, help, quit."
        ),
        (["explore", "hci0"], "Write `--adapter hci0`."),
    ])
    func whatIsMeantIsSuggested(_ arguments: [String], _ hint: String) async throws {
        let outcome = try await BuiltProgram.run(arguments)
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(outcome.errors.hasSuffix("hint: \(hint)\n"), "\(outcome.errors)")
    }

    /// No adapter is used for these.
    @Test func impossibleAdvertisementsAreRefused() async throws {
        let identifier = "8b0ca750095477cb3e77/000000000007"
        let session = try await Golden.session([
            ["advertise"],
            ["advertise", "--measured-power", "-60"],
            ["advertise", "--eddystone-tlm", "2950/21.5", "--measured-power", "-60"],
            ["advertise", "--ibeacon", "1809/1/7"],
            ["advertise", "--ibeacon", "1b9d1c68-37c1-45f5-8c1f-46be7dd8f9c5/1/65536"],
            ["advertise", "--url", "ftp://example.org"],
            ["advertise", "--url", "https://a-much-longer.example.org/page"],
            ["advertise", "--eddystone-uid", "8b0ca750095477cb3e77"],
            ["advertise", "--eddystone-uid", "8b0ca750095477cb3e/000000000007"],
            ["advertise", "--eddystone-uid", "8b0ca750095477cb3e77/00000000000g"],
            ["advertise", "--eddystone-tlm", "2950"],
            ["advertise", "--eddystone-tlm", "65536/21.5"],
            ["advertise", "--eddystone-tlm", "-1/21.5"],
            ["advertise", "--eddystone-tlm", "2950/warm"],
            ["advertise", "--eddystone-tlm", "2950/128"],
            ["advertise", "--eddystone-tlm", "2950/nan"],
            ["advertise", "--eddystone-tlm", "2950/21.5/1"],
            ["advertise", "--eddystone-tlm", "2950/21.5/1/429496730"],
            ["advertise", "--url", "https://example.org", "--measured-power", "21"],
            ["advertise", "--url", "https://example.org", "--measured-power", "-101"],
            ["advertise", "--url", "https://example.org", "--measured-power", "strong"],
            ["advertise", "--url", "https://example.org", "--eddystone-uid", identifier],
            [
                "advertise", "--ibeacon", "1b9d1c68-37c1-45f5-8c1f-46be7dd8f9c5/1/7", "--eddystone-uid", identifier,
                "--measured-power", "-60",
            ],
        ])
        try Golden.expect(session, matches: "impossible-advertisements.txt")
    }

    /// The connection works, but the request fails.
    @Test func unknownOrRefusedAttributesPrintAsRecorded() async throws {
        let session = try await Golden.session([
            ["read", "demo:battery", "2a6e"],
            ["read", "demo:battery", "0x0099"],
            ["read", "demo:long-value", "fff2"],
            ["read", "demo:long-value", "fff3"],
            ["read", "demo:heart-rate", "2a37"],
            ["read", "demo:uart", "0x0008"],
            ["write", "demo:battery", "2a6e", "--u8", "1"],
            ["write", "demo:battery", "0x0099", "--u8", "1"],
            ["write", "demo:battery", "2a19", "--u8", "1"],
            ["write", "demo:battery", "0x0008", "--u8", "1"],
            ["write", "demo:heart-rate", "2a39", "--u8", "2"],
            ["write", "demo:heart-rate", "2a39", "--u8", "1", "--without-response"],
            [
                "write", "demo:uart", "0x0008", "--hex", String(repeating: "00", count: 21), "--without-response",
                "--mtu", "23",
            ],
            ["read", "demo:heart-rate", "2902"],
            ["write", "demo:heart-rate", "2902", "--hex", "0100"],
            ["notify", "demo:heart-rate", "2902"],
            ["read", "demo:battery", "0x2a19"],
            ["notify", "demo:battery", "0x2a19"],
            ["write", "demo:uart", "6E400002B5A3F393E0A9E50E24DCCA9E", "--u8", "7"],
            ["notify", "demo:battery", "2a6e"],
            ["notify", "demo:battery", "0x0099"],
            ["notify", "demo:battery", "0x0009"],
            ["notify", "demo:battery", "0x0007"],
            ["notify", "demo:uart", "0x000c"],
            ["notify", "demo:battery", "2a00"],
            ["notify", "demo:battery", "2a00", "--indications"],
        ])
        try Golden.expect(session, matches: "refused.txt")
    }

    /// A disk that fails in the middle is not the end of the file.
    @Test(arguments: ["decode", "replay"]) func whatCannotBeReadIsReported(command: String) async throws {
        let outcome = try await BuiltProgram.run([command, "/proc/self/mem"])
        #expect(outcome.status == 65)
        #expect(outcome.errors.contains("cannot read /proc/self/mem: Input/output error\n"))
    }

    /// One object on standard error; standard output has results only.
    @Test func failuresAsJSONPrintAsRecorded() async throws {
        let session = try await Golden.session([
            ["read", "demo:battery", "2a6e", "--json"],
            ["read", "demo:long-value", "fff2", "--json"],
            ["notify", "demo:battery", "0x0009", "--json"],
            ["notify", "demo:battery", "2a19", "--count", "1", "--for", "300ms", "--json"],
            ["read", "demo:battery", "battery-levle", "--json"],
            ["write", "demo:battery", "2a19", "--json"],
            ["explore", "demo:toaster", "--json"],
            ["explore", "unix:/nowhere/peer.sock", "--json"],
            ["replay", "/etc/hostname", "--json"],
            ["decode", "--json", "--hex", "0g"],
            ["frobnicate", "--json"],
            ["replay", "/nowhere/air.btsnoop", "--as-scan", "--format", "json"],
            ["replay", "/nowhere/air.btsnoop", "--as-scan", "--format=json"],
            ["scan", "--redact", "--record", "air.btsnoop", "--format", "json"],
        ])
        try Golden.expect(session, matches: "failures-json.txt")
        for line in session.split(separator: "\n") where line.hasPrefix("2> ") {
            let object = try JSONSerialization.jsonObject(with: Data(line.dropFirst(3).utf8)) as? [String: Any]
            #expect(object?["v"] as? Int == 1)
            #expect(object?["error"] is String && object?["status"] is Int)
        }
    }

    /// A script may pass on the name that a device reports.
    @Test(
        .row("O37"),
        arguments: [
            ["read", "demo:battery", "x\u{1b}]0;pwn\u{7}"], ["scan", "--\u{1b}]0;pwn\u{7}"],
            ["scan", "--for", "1\u{9b}31m"],
            ["explore", "demo:\u{202e}x"], ["replay", "\u{1b}c", "more\u{1b}[2J"],
        ])
    func noArgumentSteersTheTerminal(_ arguments: [String]) async throws {
        let outcome = try await BuiltProgram.run(arguments)
        #expect(outcome.status == 64, "\(outcome.errors)")
        #expect(outcome.errors.contains(#"\u{"#))
        for scalar in outcome.errors.unicodeScalars where scalar != "\n" {
            #expect(scalar.properties.generalCategory != .control && scalar.properties.generalCategory != .format)
        }
    }

    @Test func aMissingSocketPrintsAsRecorded() async throws {
        let session = try await Golden.session([
            ["explore", "unix:/nowhere/peer.sock"],
            ["explore", "unix:/etc/hostname"],
            ["read", "unix:/etc/hostname", "2a19"],
            ["explore", "unix:/" + String(repeating: "long", count: 40)],
        ])
        try Golden.expect(session, matches: "missing-socket.txt")
    }
}
