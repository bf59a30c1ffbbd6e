package import Foundation

/// The programs of the package, in the build's folder.
package enum BuiltPrograms {
    /// Returns the place of a program, next to the test bundle.
    package static func url(_ name: String) -> URL {
        let places = CommandLine.arguments.filter { $0.hasSuffix(".xctest") } + CommandLine.arguments.prefix(1)
        let candidates = places.map { URL(filePath: $0).deletingLastPathComponent().appending(path: name) }
        return candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) } ?? URL(filePath: name)
    }
}
