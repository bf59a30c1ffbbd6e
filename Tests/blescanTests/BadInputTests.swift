import Testing

/// What people get wrong on the command line, and what they are told: one paragraph and the status of the contract.
@Suite struct BadInputTests {
    /// No connection is made for these.
    @Test func wrongUsage() async throws {
        let session = try await Golden.session([
            ["frobnicate"],
            ["scan", "--count", "0"],
            ["scan", "--for", "soon"],
            ["scan", "--min-rssi", "-200"],
            ["scan", "--service", "tea-making"],
            ["scan", "--address", "AA:BB"],
            ["scan", "--company", "Apple"],
            ["scan", "--each", "second"],
            ["scan", "--passive", "--long-range"],
            ["replay"],
            ["replay", "/nowhere/capture.btsnoop"],
            ["replay", "/etc/hostname"],
            ["replay", "--hex", "0g"],
            ["decode", "--hex", "020"],
            ["decode", "/nowhere/lines.txt"],
            ["explore"],
            ["explore", "kitchen lamp"],
            ["explore", "AA:BB:CC:DD:EE"],
            ["explore", "AA:BB:CC:DD:EE:FF/static"],
            ["explore", "unix:"],
            ["explore", "demo:toaster"],
            ["explore", "demo:battery", "--timeout", "soon"],
            ["explore", "demo:battery", "--timeout", "0s"],
            ["explore", "demo:battery", "--mtu", "22"],
            ["explore", "demo:battery", "--adapter", "usb1"],
            ["read", "demo:battery"],
            ["read", "demo:battery", "battery-levle"],
            ["read", "demo:battery", "0x0000"],
            ["read", "demo:battery", "0x10000"],
            ["write", "demo:uart", "0x0008"],
            ["write", "demo:uart", "0x0008", "--hex", "01", "--u8", "1"],
            ["write", "demo:uart", "0x0008", "--hex", "012"],
            ["write", "demo:uart", "0x0008", "--hex", "0g"],
            ["write", "demo:uart", "0x0008", "--u8", "256"],
            ["write", "demo:uart", "0x0008", "--i8", "x"],
            ["write", "demo:uart", "0x0008", "--file", "/nowhere/value.bin"],
            ["write", "demo:uart", "0x0008", "--file", "/"],
            ["write", "demo:uart", "0x0008", "--file", "/dev/zero"],
            ["write", "demo:uart", "0x0008", "--hex", String(repeating: "00", count: 513)],
            ["notify", "demo:heart-rate", "2a37", "--count", "0"],
            ["notify", "demo:heart-rate", "2a37", "--for", "-1s"],
        ])
        try Golden.expect(session, matches: "wrong-usage.txt")
    }

    /// The connection is fine, but not what was asked for.
    @Test func unknownOrRefused() async throws {
        let session = try await Golden.session([
            ["read", "demo:battery", "2a6e"],
            ["read", "demo:battery", "0x0099"],
            ["read", "demo:long-value", "fff2"],
            ["read", "demo:long-value", "fff3"],
            ["read", "demo:heart-rate", "2a37"],
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
            ["notify", "demo:battery", "2a6e"],
            ["notify", "demo:battery", "0x0099"],
            ["notify", "demo:battery", "2a00"],
            ["notify", "demo:battery", "2a00", "--indications"],
        ])
        try Golden.expect(session, matches: "refused.txt")
    }

    @Test func missingSocket() async throws {
        let session = try await Golden.session([
            ["explore", "unix:/nowhere/peer.sock"],
            ["explore", "unix:/etc/hostname"],
            ["explore", "unix:/" + String(repeating: "long", count: 40)],
        ])
        try Golden.expect(session, matches: "missing-socket.txt")
    }
}
