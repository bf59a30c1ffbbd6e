import Foundation

/// Other projects' programs that read captures: their reading of this library's files is the second source.
enum Referee {
    /// Wireshark's printer.
    static let tshark = find("tshark", named: "BAREBLE_TSHARK")
    /// BlueZ's monitor.
    static let btmon = find("btmon", named: "BAREBLE_BTMON")

    /// Whether the program is installed; prints which suite is skipped if it is not.
    static func available(_ program: URL?, _ name: String, for suite: String) -> Bool {
        if program != nil { return true }
        print("SKIPPED: \(suite): \(name) is not installed")
        return false
    }

    /// Returns the columns that tshark prints for the packets with that protocol.
    static func fields(of capture: String, _ layer: String, _ fields: [String]) async throws -> [[String]] {
        guard let tshark else { throw CocoaError(.fileNoSuchFile) }
        let arguments = ["-r", capture, "-Y", layer, "-T", "fields"] + fields.flatMap { ["-e", $0] }
        let outcome = try await RunningProgram(arguments, of: tshark).outcome()
        return outcome.output.split(separator: "\n").map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// The output of `btmon -r`.
    static func monitored(_ capture: String) async throws -> Outcome {
        guard let btmon else { throw CocoaError(.fileNoSuchFile) }
        return try await RunningProgram(["-r", capture], of: btmon).outcome()
    }

    private static func find(_ name: String, named variable: String) -> URL? {
        let named = ProcessInfo.processInfo.environment[variable].flatMap { $0.isEmpty ? nil : $0 }
        return ([named].compactMap(\.self) + ["/usr/bin/\(name)"]).first {
            FileManager.default.isExecutableFile(atPath: $0)
        }.map { URL(filePath: $0) }
    }
}

/// A folder for the files of one test, which is deleted with its owner.
final class TestFolder: Sendable {
    let path = FileManager.default.temporaryDirectory.appending(path: "blescan-\(UUID().uuidString)").path

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    subscript(name: String) -> String { path + "/" + name }
}
