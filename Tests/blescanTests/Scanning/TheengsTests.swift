import Foundation
import Testing

/// The decoder of Theengs in the Python of the tests.
///
/// It is under the GPL, and runs as a process of its own.
enum TheengsDecoder {
    static let python = ProcessInfo.processInfo.environment["BAREBLE_PYTHON"].flatMap { $0.isEmpty ? nil : $0 }

    /// Whether the Python of the tests has it; prints that the suite is skipped if it does not.
    static var isAvailable: Bool {
        if let python {
            let library = URL(filePath: python).deletingLastPathComponent().deletingLastPathComponent().appending(
                path: "lib")
            let versions = (try? FileManager.default.contentsOfDirectory(atPath: library.path)) ?? []
            for version in versions {
                let package = library.appending(path: version + "/site-packages/TheengsDecoder")
                if FileManager.default.fileExists(atPath: package.path) { return true }
            }
        }
        print("SKIPPED: TheengsTests: no Python with TheengsDecoder (BAREBLE_PYTHON)")
        return false
    }
}

/// Lines for Theengs, decoded by TheengsDecoder itself: its values must equal those of this library's decoders.
@Suite(.enabled(if: TheengsDecoder.isAvailable), .timeLimit(.minutes(10))) struct TheengsTests {
    private static let script = """
        import sys
        from TheengsDecoder import decodeBLE
        for line in sys.stdin:
            print(decodeBLE(line) or "{}", flush=True)
        """

    private static let names = [
        "tempc": "temperature", "hum": "humidity", "batt": "battery", "volt": "voltage", "pres": "pressure",
    ]

    @Test func bothReadTheSame() async throws {
        let folder = try TestFolder()
        var capture = AirCapture()
        var count = 0
        for known in try Fixtures.meanings(by: "") where known.payload.count <= 62 {
            count += 1
            capture.add(known.payload, from: String(format: "A4:C1:38:00:%02X:%02X", count >> 8, count & 0xFF))
        }
        try capture.write(to: folder["air.btsnoop"])
        let replay = ["replay", folder["air.btsnoop"], "--as-scan"]
        let theirs = try await decoded(BuiltProgram.run(replay + ["--format", "theengs"]).output)
        var ours: [String: [String: Double]] = [:]
        for object in try await BuiltProgram.run(replay + ["--json"]).objects() {
            guard let address = object["address"] as? String else { continue }
            for meaning in object["decoded"] as? [[String: Any]] ?? [] {
                for case let (key, value as Double) in meaning["values"] as? [String: Any] ?? [:] {
                    ours[address, default: [:]][key] = value
                }
            }
        }
        var agreeing: [String: Int] = [:]
        for object in theirs {
            guard let model = object["model_id"] as? String, let address = object["id"] as? String else { continue }
            // It evaluates only the service data of a SwitchBot, and reads a meter's humidity as its temperature.
            if (object["manufacturerdata"] as? String)?.hasPrefix("6909") == true { continue }
            for (key, name) in Self.names {
                guard let their = object[key] as? Double, let our = ours[address]?[name] else { continue }
                // Below zero it takes the humidity of a Govee for decimals.
                #expect(abs(their - our) < (model == "H5072/75" ? 0.04 : 0.011), "\(model) \(name): \(their), \(our)")
                agreeing[model, default: 0] += 1
            }
        }
        // Service data, manufacturer data and both, so that no comparison is empty.
        for (model, least) in [
            ("LYWSD03MMC/MJWSD05MMC_ATC", 8), ("LYWSD03MMC/MJWSD05MMC_PVVX", 16), ("RuuviTag_RAWv2", 60),
            ("RuuviTag_RAWv1", 36), ("H5072/75", 30), ("LYWSDCGQ", 4),
        ] {
            #expect(agreeing[model, default: 0] >= least, "\(model): \(agreeing[model, default: 0])")
        }
    }

    private func decoded(_ lines: String) async throws -> [[String: Any]] {
        let python = try #require(TheengsDecoder.python)
        return try await RunningProgram(["-c", Self.script], of: URL(filePath: python), input: lines).outcome()
            .objects()
    }
}
