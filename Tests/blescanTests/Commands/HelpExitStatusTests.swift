import Foundation
import TestSupport
import Testing

@testable import blescan

/// `blescan --help` lists every exit code and no other. The manual page has the same list: `make man` takes it from the
/// help.
@Suite struct HelpExitStatusTests {
    private static let root = RepositoryFiles.root

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
    }

    /// Returns the lines below EXIT STATUS in the text of the help.
    private func listOfTheHelp() throws -> [String] {
        let lines = try text("Sources/blescan/Blescan.swift").split(separator: "\n", omittingEmptySubsequences: false)
        let title = try #require(lines.first { $0.hasSuffix(" EXIT STATUS") })
        let indentation = title.prefix { $0 == " " }.count
        let list = lines.drop { $0 != title }.dropFirst().prefix { !$0.hasSuffix("\"\"\",") }
        return list.map { String($0.dropFirst(indentation)) }
    }

    @Test func helpListsEveryStatusAndNoOther() throws {
        let listed = try listOfTheHelp().flatMap { $0.split(separator: " ").compactMap { Int32($0) } }
        let known = (0...255 as ClosedRange<Int32>).filter { blescan.ExitStatus(rawValue: $0) != nil }
        #expect(listed.sorted() == known)
    }
}
