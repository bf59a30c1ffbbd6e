package import Testing

/// A trait that names the rows of `Tests/Catalogue/rows.txt` that a test or a suite shows, and reports them with a
/// failure.
///
/// `Tests/Tools/list-reliability` reads it from the sources, so the names are literals.
package struct RowTrait: TestTrait, SuiteTrait {
    package let rows: [String]

    package var comments: [Comment] { ["Fault catalogue: \(rows.joined(separator: ", "))"] }
}

extension Trait where Self == RowTrait {
    /// Returns a trait for these rows of the fault catalogue.
    package static func row(_ rows: String...) -> RowTrait { RowTrait(rows: rows) }
}

extension Test {
    /// The rows of the fault catalogue that this test names, in order.
    package var rows: [String] { traits.compactMap { $0 as? RowTrait }.flatMap(\.rows) }
}
