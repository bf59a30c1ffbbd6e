import Foundation
import TestSupport

/// The GATT server of `../shared/peers`: Google's Bumble on a Unix socket, with a log of every packet.
///
/// It requires `../shared` and a Python with Bumble, which `make test` names in `BAREBLE_PYTHON`.
final class BumblePeer: Sendable {
    private static let python = ProcessInfo.processInfo.environment["BAREBLE_PYTHON"].flatMap { $0.isEmpty ? nil : $0 }
    private static let peers = SharedVectors.folder("peers")

    /// Returns the description of the peer's services.
    static func description() throws -> Data {
        guard let peers else { throw CocoaError(.fileNoSuchFile) }
        return try Data(contentsOf: peers.appending(path: "heart-rate.json"))
    }

    /// Whether it can be started; prints which suite is skipped if it cannot.
    static func available(for suite: String) -> Bool {
        if peers != nil, python != nil { return true }
        print("SKIPPED: \(suite): \(peers == nil ? "../shared is missing" : "no Python with Bumble (BAREBLE_PYTHON)")")
        return false
    }

    /// Returns the Python that has Bumble.
    static func interpreter() throws -> URL {
        guard let python else { throw CocoaError(.fileNoSuchFile) }
        return URL(filePath: python)
    }

    let path: String
    private let log: URL
    private let program: RunningProgram

    /// Starts a peer that serves `services` before those of the description; each is an entry of its JSON. It replaces
    /// another one at `path`.
    init(with services: String = "", at path: String? = nil) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "bumble-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        self.path = path ?? folder.appending(path: "peer.sock").path
        log = folder.appending(path: "log")
        guard let python = Self.python, let peers = Self.peers else { throw CocoaError(.fileNoSuchFile) }
        var database = String(decoding: try Self.description(), as: UTF8.self)
        if let list = database.range(of: #"{"services": ["#) {
            database.insert(contentsOf: services, at: list.upperBound)
        }
        let served = folder.appending(path: "served.json")
        try database.write(to: served, atomically: true, encoding: .utf8)
        program = try RunningProgram(
            [peers.appending(path: "gatt_peer.py").path, self.path, served.path, "--log", log.path],
            of: URL(filePath: python))
        try await program.printed("ready")
    }

    deinit {
        program.signal(SIGKILL)
        try? FileManager.default.removeItem(at: log.deletingLastPathComponent())
    }

    /// Returns the log of the peer after the client has left: the packets that it received, and the number of requests
    /// among them.
    func conversation() async throws -> (received: [String], requests: Int) {
        func lines() -> [Substring] { ((try? String(contentsOf: log, encoding: .utf8)) ?? "").split(separator: "\n") }
        try await waited(for: "the peer's log ends") { lines().last?.hasPrefix("requests ") ?? false }
        let (packets, last) = (lines().dropLast(), lines().last ?? "")
        return (
            packets.filter { $0.hasPrefix("> ") }.map { String($0.dropFirst(2)) }, Int(last.dropFirst(9)) ?? -1
        )
    }
}
