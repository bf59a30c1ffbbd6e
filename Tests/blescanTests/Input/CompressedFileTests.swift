import BLECore
import Foundation
import Glibc
import Testing

@testable import blescan

/// Files that gzip has compressed, wherever a recording is read.
@Suite(.timeLimit(.minutes(5))) struct CompressedFileTests {
    private let folder: TestFolder
    private let packed: String

    init() async throws {
        folder = try TestFolder()
        packed = folder["air.btsnoop.gz"]
        try await shell("gzip -c \"$0\" > \"$1\"", Fixtures.threeDevices, packed)
    }

    @discardableResult
    private func shell(_ script: String, _ words: String...) async throws -> Outcome {
        let outcome = try await RunningProgram(["-c", script] + words, of: URL(filePath: "/bin/bash")).outcome()
        try #require(outcome.status == 0, "\(outcome.errors)")
        return outcome
    }

    @Test(arguments: [["--as-scan", "--utc"], ["--json"], ["--check"], ["--only", "adv"]])
    func theyAreReadAsTheyWereBefore(_ options: [String]) async throws {
        let plain = try await BuiltProgram.run(["replay", Fixtures.threeDevices] + options)
        let named = try await BuiltProgram.run(["replay", packed] + options)
        #expect(named.status == plain.status && named.output == plain.output && !plain.output.isEmpty)
        let piped = try await shell("cat \"$0\" | \"$@\"", packed, BuiltProgram.url.path, "replay", "-", "--as-scan")
        let redirected = try await shell("\"$@\" < \"$0\"", packed, BuiltProgram.url.path, "replay", "--as-scan")
        #expect(piped.output == redirected.output && !piped.output.isEmpty && piped.errors.isEmpty)
    }

    @Test func linesToDecodeMayBeCompressed() async throws {
        let outcome = try await shell("echo 02010603030d18 | gzip | \"$0\" decode", BuiltProgram.url.path)
        #expect(outcome.output.contains("Heart Rate"))
    }

    @Test func aCutFileIsShownAsFarAsItGoes() async throws {
        let whole = try Data(contentsOf: URL(filePath: packed))
        try whole.dropLast(12).write(to: URL(filePath: folder["cut.gz"]))
        let outcome = try await BuiltProgram.run(["replay", folder["cut.gz"], "--as-scan"])
        #expect(outcome.status == 65 && outcome.output.contains("Virtual HRM"))
        #expect(
            outcome.errors
                == "blescan: \(folder["cut.gz"]) cannot be decompressed to its end: gzip: unexpected end of file\n"
                + "hint: What came before is shown.\n")
    }

    @Test func aDamagedFileIsReported() async throws {
        var bytes = try Data(contentsOf: URL(filePath: packed))
        // The checksum of the contents: RFC 1952, 2.3.1.
        bytes[bytes.count - 8] ^= 0xFF
        try bytes.write(to: URL(filePath: folder["damaged.gz"]))
        let outcome = try await BuiltProgram.run(["replay", folder["damaged.gz"], "--as-scan"])
        #expect(outcome.status == 65 && outcome.errors.contains("gzip: invalid compressed data--crc error"))
        let decoded = try await BuiltProgram.run(["decode", folder["damaged.gz"]])
        #expect(decoded.status == 65 && decoded.errors.contains("gzip: invalid compressed data--crc error"))
    }

    /// A recording that the user seeks back in is read again.
    @Test func aWarningIsPrintedOnce() async throws {
        try await shell("{ cat \"$0\"; echo what follows; } > \"$1\"", packed, folder["longer.gz"])
        let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            [path = folder["longer.gz"] as String] in
            for _ in 0..<2 {
                var file = try InputFile(path, advice: "", unpacks: true)
                while try !file.next().isEmpty {}
            }
        }
        let errors = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
        #expect(errors.components(separatedBy: "trailing garbage").count == 2, "\(errors)")
    }

    @Test func withoutGzipTheFileIsNamed() async throws {
        let outcome = try await BuiltProgram.run(["replay", packed], environment: ["PATH": "/nowhere"])
        #expect(outcome.status == 65 && outcome.output.isEmpty)
        #expect(
            outcome.errors
                == "blescan: \(packed) is compressed, and there is no gzip in PATH\n"
                + "hint: Install gzip, or decompress the file first.\n")
    }

    @Test func onceIsEnough() async throws {
        try await shell("gzip -c \"$0\" > \"$1\"", packed, folder["twice.gz"])
        let outcome = try await BuiltProgram.run(["replay", folder["twice.gz"]])
        #expect(outcome.status == 65 && outcome.errors.contains("is compressed twice"))
        // One line, which is too long.
        try await shell(
            "{ printf '\\037\\213'; head -c 70000 /dev/zero | tr '\\0' A; } | gzip > \"$0\"", folder["long.gz"])
        let decoded = try await BuiltProgram.run(["decode", folder["long.gz"]])
        #expect(decoded.status == 65 && decoded.errors.contains("\(folder["long.gz"]) is compressed twice\n"))
    }

    /// Compressed bytes are no lines.
    @Test func linesToDecodeAreCompressedOnce() async throws {
        try await shell("echo 02010603030d18 | gzip | gzip > \"$0\"", folder["lines.gz"])
        let outcome = try await BuiltProgram.run(["decode", folder["lines.gz"]])
        #expect(outcome.status == 65 && outcome.output.isEmpty)
        #expect(
            outcome.errors
                == "blescan: \(folder["lines.gz"]) is compressed twice\n"
                + "hint: Decompress it once first: `gunzip`.\n")
    }

    /// The name of the file is no word of a command, and no option.
    @Test func aFileNameIsNeitherACommandNorAnOption() async throws {
        let name = folder["-; touch made.gz"]
        try FileManager.default.copyItem(atPath: packed, toPath: name)
        #expect(try await BuiltProgram.run(["replay", name, "--as-scan"]).status == 0)
    }

    /// Half a gigabyte of zeros, in a few hundred kilobytes, and no more memory for the program than 256 MB.
    @Test func aBombFillsNothing() async throws {
        try await shell("head -c 536870912 /dev/zero | gzip -1 > \"$0\"", folder["bomb.gz"])
        let outcome = try await shell(
            "ulimit -v 1048576; ulimit -d 262144; \"$1\" replay \"$0\" 2>&1; echo $?", folder["bomb.gz"],
            BuiltProgram.url.path)
        #expect(outcome.output.contains("not a capture file") && outcome.output.hasSuffix("65\n"))
    }

    /// The rest of the file never comes: the process that decompresses it must not be waited for.
    @Test func aDecompressorWhoseOutputIsNotReadIsNotWaitedFor() async throws {
        let (fifo, terminal) = (folder["fifo"], try PseudoTerminal())
        _ = unsafe mkfifo(fifo, 0o600)
        // gzip gathers 256 KB before it begins: noise of a fixed generator does not become shorter.
        var (air, number) = (AirCapture(), UInt64(1))
        for _ in 0..<12_000 {
            let words = (0..<3).map { _ in
                number = number &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return Hex.encode((0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) })
            }
            air.add("1bff5900" + words.joined(), from: "C0:00:00:00:00:01", isRandom: true)
        }
        try air.write(to: folder["air"])
        try await shell("gzip -c \"$0\" > \"$1\"", folder["air"], folder["air.gz"])
        #expect(try Data(contentsOf: URL(filePath: folder["air.gz"])).count > 300_000)
        let writer = try RunningProgram(
            ["-c", "exec cat \"$0\" - > \"$1\"", folder["air.gz"], fifo], of: URL(filePath: "/bin/bash"),
            keyboard: terminal)
        let outcome = try await BuiltProgram.run(["replay", fifo, "--as-scan", "-n", "1"])
        #expect(outcome.status == 0 && outcome.output.split(separator: "\n").count == 1, "\(outcome.errors)")
        writer.signal(SIGKILL)
        _ = try await writer.outcome()
    }
}
