package import Foundation

/// Files of this repository that tests read and, when asked, write.
package enum RepositoryFiles {
    package static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    package static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Every source file of some targets, with its path.
    package static func sources(of targets: [String]) throws -> [(path: String, text: String)] {
        try targets.flatMap { target in
            try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: "Sources/\(target)").path)
                .filter { $0.hasSuffix(".swift") || $0.hasSuffix(".c") || $0.hasSuffix(".h") }
                .map { ("\(target)/\($0)", try text("Sources/\(target)/\($0)")) }
        }
    }
}
