import Foundation
import Glibc
import TestSupport

/// Google's Bumble as a GATT server on a Unix socket, behind `gatt_peer.py` of the shared peers.
///
/// Both are outside the project: the script beside the checkout, Bumble in the environment that the kernel tests make.
final class BumbleServer {
    private static let shared = SharedVectors.folder("peers")

    private static let python: URL? = {
        let named = ProcessInfo.processInfo.environment["BAREBLE_PYTHON"].map { URL(filePath: $0) }
        let program = named ?? RepositoryFiles.root.appending(path: ".build/vm/python/bin/python")
        return FileManager.default.isExecutableFile(atPath: program.path) ? program : nil
    }()

    /// Whether it can be started; prints which suite goes without it when it cannot.
    static func available(for suite: String) -> Bool {
        if shared != nil, python != nil { return true }
        print("SKIPPED: \(suite): \(shared == nil ? "../shared is missing" : "no Python with Bumble (BAREBLE_PYTHON)")")
        return false
    }

    let path: String
    let log: URL
    private let process = Process()
    private let output = Pipe()
    private let folder: URL

    /// Serves a database, given as the JSON that the script reads. Returns when it listens.
    init(database: Data) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "bumble-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.appending(path: "att").path
        log = folder.appending(path: "log")
        let file = folder.appending(path: "database.json")
        try database.write(to: file)
        guard let python = Self.python, let shared = Self.shared else { throw CocoaError(.fileNoSuchFile) }
        process.executableURL = python
        process.arguments = [shared.appending(path: "gatt_peer.py").path, path, file.path, "--log", log.path]
        process.standardOutput = output
        try process.run()
        var text = Data()
        while !text.contains(0x0A) {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { throw CocoaError(.fileReadUnknown) }
            text += more
        }
    }

    /// The number of requests on the server's last connection, once the client has disconnected.
    func requestCount() throws -> Int? {
        let lines = try String(contentsOf: log, encoding: .utf8).split(separator: "\n")
        return lines.last { $0.hasPrefix("requests ") }.flatMap { Int($0.dropFirst("requests ".count)) }
    }

    deinit {
        // Waiting for the exit needs a run loop on this thread, which the tests' threads do not have.
        kill(process.processIdentifier, SIGKILL)
        try? output.fileHandleForReading.close()
        try? FileManager.default.removeItem(at: folder)
    }
}
