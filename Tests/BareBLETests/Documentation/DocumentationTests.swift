import Foundation
import TestSupport
import Testing

/// The Swift in the documentation compiles, and does what the text says: whatever stands between `// in: FILE` and
/// `// out` in a test of this folder must stand in FILE in the same words; `, ` separates several files.
@Suite struct DocumentationTests {
    private static let folder = RepositoryFiles.root.appending(path: "Tests/BareBLETests/Documentation")
    private static let root = folder.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    struct Sample: CustomTestStringConvertible, Sendable {
        let file: String
        var lines: [String] = []

        var testDescription: String { "\(file): \(lines.first ?? "")" }

        /// The lines without the indentation that they have in the test.
        var text: String {
            let indentation = lines.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
            return lines.map { String($0.dropFirst(indentation)) }.joined(separator: "\n") + "\n"
        }
    }

    static let samples: [Sample] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.sorted().filter { $0 != "DocumentationTests.swift" }.flatMap {
            samples(in: folder.appending(path: $0))
        }
    }()

    private static func samples(in file: URL) -> [Sample] {
        var samples: [Sample] = []
        var open: [Sample] = []
        let source = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        for line in source.split(separator: "\n", omittingEmptySubsequences: false) {
            let words = line.drop { $0 == " " }
            if words.hasPrefix("// in: ") {
                open = words.dropFirst(7).split(separator: ", ").map { Sample(file: String($0)) }
            } else if words == "// out" {
                samples += open
                open = []
            } else {
                for index in open.indices { open[index].lines.append(String(line)) }
            }
        }
        return samples
    }

    @Test(arguments: samples) func standsInTheText(_ sample: Sample) throws {
        let text = try String(contentsOf: Self.root.appending(path: sample.file), encoding: .utf8)
        #expect(text.contains(sample.text), "\(sample.file) lacks:\n\(sample.text)")
    }

    @Test func scanIsSixLinesAndReadIsFour() {
        let first = Self.samples.filter { $0.file == "README.md" }.map(\.lines.count)
        // The import and an empty line stand above the scan.
        #expect(first.prefix(2) == [4, 4])
    }
}
