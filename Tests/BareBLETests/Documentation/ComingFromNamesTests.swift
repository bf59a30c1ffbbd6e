import Foundation
import TestSupport
import Testing

/// Each name of ours in the tables of coming-from.md is there: code in the last column is a public declaration of the
/// products, by its last words, and its argument labels are labels.
@Suite struct ComingFromNamesTests {
    private static let root = RepositoryFiles.root

    /// Words of the language that stand in code too.
    private static let foreign: Set<String> = [
        "for", "try", "await", "break", "init", "nil", "async", "let", "Duration",
    ]

    static let spans: [String] = {
        let text = (try? String(contentsOf: root.appending(path: "Docs/users/coming-from.md"), encoding: .utf8)) ?? ""
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| ") }
        let cells = rows.compactMap { $0.dropLast().split(separator: " | ").last }
        return cells.flatMap { cell in
            cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
                .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
        }
    }()

    /// The names declared in the products' sources, and every label.
    private static let words: (declared: Set<String>, labels: Set<String>) = {
        var declared = foreign
        var labels: Set<String> = []
        let declaration = /public .*?\b(?:func|var|let|struct|enum|actor|class|protocol) `?(\w+)/
        let label = /(\w+)(?: \w+)?:/
        for folder in ["BareBLE", "BLECore", "BLEProfiles", "BLECapture", "BareBLETestKit", "BareBLECrypto"] {
            let files = FileManager.default.enumerator(atPath: root.appending(path: "Sources/\(folder)").path)
            while let name = files?.nextObject() as? String {
                guard name.hasSuffix(".swift"), !name.contains("Generated") else { continue }
                let file = root.appending(path: "Sources/\(folder)/\(name)")
                let source = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
                for line in source.split(separator: "\n") {
                    let code = line.drop { $0 == " " }
                    if code.hasPrefix("//") { continue }
                    if code.contains("public "), let match = code.firstMatch(of: declaration) {
                        declared.insert(String(match.1))
                    } else if code.hasPrefix("case "), let word = code.dropFirst(5).firstMatch(of: /^\w+/) {
                        declared.insert(String(word.0))
                    }
                    if code.contains(":") { labels.formUnion(code.matches(of: label).map { String($0.1) }) }
                }
            }
        }
        return (declared, labels)
    }()

    @Test(arguments: spans) func everyNameOnThePageIsPublic(_ span: String) {
        let open = span.firstIndex(of: "(") ?? span.endIndex
        let path = span[..<open].split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map(String.init)
        for word in path { #expect(Self.words.declared.contains(word), "\(span): nothing public is called \(word)") }
        for label in span[open...].matches(of: /(\w+):/).map({ String($0.1) }) where label != "_" {
            #expect(Self.words.labels.contains(label), "\(span): no label is \(label)")
        }
    }

    @Test func thePageHasNames() {
        #expect(Self.spans.count > 100)
    }
}
