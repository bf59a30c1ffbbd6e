package import Foundation

/// The folder of recorded vectors beside the checkout. It is not part of the project: tests that need it say so and are
/// skipped without it.
package enum SharedVectors {
    package static let root = folder("vectors")

    /// A folder of what lies beside the checkout, or where `BAREBLE_SHARED` says.
    package static func folder(_ name: String) -> URL? {
        let named = ProcessInfo.processInfo.environment["BAREBLE_SHARED"]
        let shared = named.map { URL(filePath: $0) } ?? RepositoryFiles.root.appending(path: "../shared").standardized
        let folder = shared.appending(path: name)
        return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
    }

    /// Whether the vectors are here; prints which suite goes without them when they are not.
    package static func available(for suite: String) -> Bool {
        if root != nil { return true }
        print("SKIPPED: \(suite): ../shared is missing")
        return false
    }

    package static func data(_ path: String) throws -> Data {
        guard let root else { throw CocoaError(.fileNoSuchFile) }
        return try Data(contentsOf: root.appending(path: path))
    }

    /// The objects of a file that holds one JSON object a line.
    package static func lines<T: Decodable>(
        _ path: String, as type: T.Type, keys: JSONDecoder.KeyDecodingStrategy = .useDefaultKeys
    ) throws -> [T] {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = keys
        return try data(path).split(separator: 0x0A).map { try decoder.decode(type, from: Data($0)) }
    }
}
