import Foundation

/// A folder that goes away with its last reference.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("cb-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    /// A copy of the files of another folder, as they are now.
    init(copyOf other: TemporaryFolder) throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("cb-\(UUID().uuidString)").path
        try FileManager.default.copyItem(atPath: other.path, toPath: path)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var files: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] }
}
