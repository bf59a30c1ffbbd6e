import BLECore
import Foundation
import Glibc
import Testing

@testable import blescan

/// `--keys`: what it decrypts, which files it refuses, and that no output has a key.
@Suite(.timeLimit(.minutes(10))) struct SensorKeyTests {
    /// The example of bthome.io, and CGG1 of xiaomi-ble's tests, see AdvertisementKeyTests.
    private static let key = "231d39c1d7cc1ab1aee224cd096db932"
    private static let address = "54:48:E6:8F:80:A5"
    private static let payload = "1216d2fc41a47266c95f730011223378237214"
    private static let other = "1a1695fe5858480b685f12342d585a0b1841e2aa000e00a4964fb5"
    private static let otherAddress = "5A:58:2D:34:12:5F"
    private static let otherKey = "814aac74c4f17b6c1581e1ab87816b99"
    private static let wrong = "00112233445566778899aabbccddeeff"

    private let folder: TestFolder
    private let capture: String

    init() throws {
        folder = try TestFolder()
        capture = folder["air.btsnoop"]
        var air = AirCapture()
        air.add(Self.payload, from: Self.address)
        air.add(Self.other, from: Self.otherAddress)
        try air.write(to: capture)
    }

    private func file(_ text: String, mode: mode_t = 0o600) throws -> String {
        let path = folder["keys-\(text.hashValue)-\(mode)"]
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        _ = unsafe chmod(path, mode)
        return path
    }

    private func lines(_ arguments: [String]) async throws -> [String] {
        let outcome = try await BuiltProgram.run(["replay", capture, "--as-scan", "--utc"] + arguments)
        #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome)")
        return outcome.output.split(separator: "\n").map(String.init)
    }

    @Test func eachDeviceIsDecryptedWithItsKey() async throws {
        let keys = try file(
            "# sensors\n\(Self.address) \(Self.key)  # hall\n\n\t\(Self.otherAddress.lowercased())\t\(Self.otherKey)\r\n"
        )
        let plain = try await lines(["--keys", keys])
        #expect(plain.count == 2)
        #expect(plain[0].contains("  BTHome: temperature 25.06 °C, humidity 50.55 %  "))
        #expect(plain[1].contains("  Xiaomi CGG1: humidity 59.6 %, counter 104  "))
        let table = try await lines(["--keys", keys, "--format", "csv", "--fields", "address,temperature,humidity"])
        #expect(table == ["address,temperature,humidity", "\(Self.address),25.06,50.55", "\(Self.otherAddress),,59.6"])
        let objects = try await BuiltProgram.run(["replay", capture, "--as-scan", "--json", "--keys", keys]).objects()
        let decoded = objects.compactMap { ($0["decoded"] as? [[String: Any]])?.first }
        #expect(decoded.map { $0["decrypted"] as? Bool } == [true, true])
        #expect(decoded.allSatisfy { $0["encrypted"] == nil && $0["wrongKey"] == nil })
    }

    @Test func otherDevicesStayEncryptedAndAWrongKeyIsReported() async throws {
        let keys = try file("\(Self.address) \(Self.wrong)\n")
        let plain = try await lines(["--keys", keys])
        #expect(plain[0].contains("  BTHome: wrong key  "))
        #expect(plain[1].contains("  Xiaomi CGG1: counter 104, the rest is encrypted  "))
        let without = try await lines([])
        #expect(without[0].contains("  BTHome: encrypted  "))
        let objects = try await BuiltProgram.run(["replay", capture, "--as-scan", "--json", "--keys", keys]).objects()
        let decoded = objects.compactMap { ($0["decoded"] as? [[String: Any]])?.first }
        #expect(decoded.map { $0["wrongKey"] as? Bool } == [true, nil])
        #expect(decoded.map { $0["encrypted"] as? Bool } == [true, true])
    }

    @Test func packetsAndHexadecimalTextAreDecryptedToo() async throws {
        let keys = try file("\(Self.address) \(Self.key)\n")
        let packets = try await BuiltProgram.run(["replay", capture, "--keys", keys])
        #expect(packets.output.contains("BTHome: temperature 25.06 °C, humidity 50.55 %"))
        let objects = try await BuiltProgram.run(["replay", capture, "--only", "adv", "--json", "--keys", keys])
        #expect(objects.output.contains(#""decrypted":true"#))
        for arguments in [["decode"], ["replay"]] {
            let outcome = try await BuiltProgram.run(arguments + ["--hex", Self.payload, "--keys", keys])
            #expect(outcome.status == 0 && outcome.output.contains("temperature 25.06 °C"), "\(outcome)")
        }
    }

    @Test(arguments: [
        ("frobnicate", "does not begin with an address"),
        ("\(address)", "has 1 words, not an address and a key"),
        ("\(address) \(key) \(key)", "has 3 words, not an address and a key"),
        ("\(address) 00112233", "the key of \(address) has 4 bytes, not 16"),
        ("\(address) \(key.dropLast())g", "the key of \(address) is not hexadecimal"),
        ("\(key) \(address)", "does not begin with an address"),
        ("\(address) \(key)\n# again\n\(address) \(key)", "there is a key for \(address) already"),
    ])
    func malformedLinesAreNamed(_ text: String, _ message: String) async throws {
        let keys = try file(text)
        let outcome = try await BuiltProgram.run(["decode", "--hex", Self.payload, "--keys", keys])
        #expect(outcome.status == 65 && outcome.output.isEmpty)
        let line = text.split(separator: "\n").count
        #expect(outcome.errors.hasPrefix("blescan: \(keys), line \(line)"), "\(outcome.errors)")
        #expect(outcome.errors.contains(message), "\(outcome.errors)")
    }

    /// The file of secrets is one that only its owner can read or exchange.
    @Test(arguments: [0o604, 0o640, 0o620, 0o602, 0o601] as [mode_t])
    func filesThatOthersMayUseAreRefused(_ mode: mode_t) async throws {
        let keys = try file("\(Self.address) \(Self.key)\n", mode: mode)
        let outcome = try await BuiltProgram.run(["replay", capture, "--as-scan", "--keys", keys])
        #expect(outcome.status == 77 && outcome.output.isEmpty)
        #expect(
            outcome.errors
                == "blescan: others may read or write the keys in \(keys) (mode \(String(mode, radix: 8)))\n"
                + "hint: `chmod 600 \(keys)`.\n")
        _ = unsafe chmod(keys, 0o400)
        #expect(try await BuiltProgram.run(["replay", capture, "--as-scan", "--keys", keys]).status == 0)
    }

    /// It is pasted into a shell.
    @Test func theCommandThatHelpsHasThePathInQuotes() async throws {
        let folder = try TestFolder()
        let keys = folder["my keys"]
        try "\(Self.address) \(Self.key)\n".write(toFile: keys, atomically: true, encoding: .utf8)
        #expect(unsafe chmod(keys, 0o644) == 0)
        let outcome = try await BuiltProgram.run(["decode", "--hex", Self.payload, "--keys", keys])
        #expect(outcome.status == 77)
        #expect(outcome.errors.hasSuffix("hint: `chmod 600 '\(keys)'`.\n"), "\(outcome.errors)")
    }

    @Test(.enabled(if: geteuid() == 0)) func filesOfOthersAreRefused() async throws {
        let keys = try file("\(Self.address) \(Self.key)\n")
        _ = unsafe chown(keys, 1, 1)
        let outcome = try await BuiltProgram.run(["decode", "--hex", Self.payload, "--keys", keys])
        #expect(outcome.status == 77)
        #expect(outcome.errors.contains("belongs to another user"))
    }

    @Test func whatIsNoPlainFileIsRefused() async throws {
        let pipe = folder["pipe"]
        _ = unsafe mkfifo(pipe, 0o600)
        for path in [pipe, folder.path, "/dev/null"] {
            let outcome = try await BuiltProgram.run(["decode", "--hex", Self.payload, "--keys", path])
            #expect(outcome.status == 64)
            #expect(outcome.errors.contains("\(path) is not a plain file"), "\(outcome.errors)")
        }
        let missing = try await BuiltProgram.run(["decode", "--hex", Self.payload, "--keys", folder["none"]])
        #expect(missing.status == 64 && missing.errors.contains("cannot open \(folder["none"])"))
        let empty = try await BuiltProgram.run(["decode", "--hex", Self.payload, "--keys", ""])
        #expect(empty.status == 64)
    }

    @Test(arguments: [
        ["--as-scan", "--redact"], ["--as-scan", "--format", "theengs"], ["--check"], ["--as-fixture", "visit"],
    ])
    func optionsThatMakeKeysUselessAreNamed(_ options: [String]) async throws {
        let keys = try file("\(Self.address) \(Self.key)\n")
        let outcome = try await BuiltProgram.run(["replay", capture, "--keys", keys] + options)
        #expect(outcome.status == 64 && outcome.errors.contains("--keys"), "\(outcome.errors)")
    }

    /// Right, wrong, malformed and refused: no output has a key, in any case of its digits.
    @Test func noOutputHasAKey() async throws {
        let texts = [
            "\(Self.address) \(Self.key)", "\(Self.address) \(Self.wrong)", "\(Self.address)\(Self.key)",
            "\(Self.key) \(Self.address)", "\(Self.address) \(Self.key)00", "\(Self.key)",
            "\(Self.address) x\(Self.key)",
        ]
        for text in texts {
            for mode in [0o600, 0o644] as [mode_t] {
                let keys = try file(text, mode: mode)
                for command in [
                    ["replay", capture], ["replay", capture, "--as-scan", "--json"], ["decode", "--hex", Self.payload],
                ] {
                    let outcome = try await BuiltProgram.run(command + ["--keys", keys])
                    let all = (outcome.output + outcome.errors).lowercased()
                    #expect(!all.contains(Self.key) && !all.contains(Self.wrong), "\(command) \(text)")
                    #expect(!all.contains(Self.key.dropFirst(2).prefix(12)))
                }
            }
        }
    }
}
