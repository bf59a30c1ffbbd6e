import Foundation

/// A directory of one test, which is removed together with it.
package final class Folder: Sendable {
    private static let memory = "/dev/shm"

    package let path: String

    /// Creates an empty directory.
    ///
    /// - Parameter inMemory: Pass true for a directory in memory where the system has a place for it, so that bringing
    ///   files to the disk costs nothing.
    package init(inMemory: Bool = false) throws {
        let isInMemory = inMemory && FileManager.default.isWritableFile(atPath: Self.memory)
        path = Self.newPath(in: isInMemory ? URL(filePath: Self.memory) : FileManager.default.temporaryDirectory)
        try make()
    }

    /// Creates a copy of another directory as it is now.
    package init(copyOf other: Folder) throws {
        path = Self.newPath(in: FileManager.default.temporaryDirectory)
        try FileManager.default.copyItem(atPath: other.path, toPath: path)
    }

    package func removeContents() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
            try? FileManager.default.removeItem(atPath: "\(path)/\(name)")
        }
    }

    private static func newPath(in parent: URL) -> String {
        parent.appending(path: "bareble-\(UUID().uuidString)").path
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Creates the directory again, after `remove`.
    package func make() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    package func remove() throws {
        try FileManager.default.removeItem(atPath: path)
    }

    /// Writes a text into a file, which keeps its mode if it exists.
    package func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path).appending(path: name))
    }

    /// The path of a file in the directory.
    package subscript(name: String) -> String { path + "/" + name }

    /// The names of the files, sorted.
    package var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}
