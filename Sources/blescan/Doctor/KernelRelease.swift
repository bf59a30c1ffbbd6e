/// The numbers of a kernel's release, such as 6, 12, 57 of `6.12.57+deb13-amd64`.
struct KernelRelease: Hashable, Sendable {
    /// At most four: those of Debian's older releases, `6.1.0-55-amd64`, end with the number of the build.
    let numbers: [Int]

    /// `nil` for a text that does not begin with two numbers.
    init?(_ release: String) {
        numbers = release.split { !$0.isNumber }.prefix(4).compactMap { Int($0) }
        guard numbers.count >= 2 else { return nil }
    }

    /// Returns whether it is this release, or a later one of any series.
    func isAtLeast(_ wanted: Int...) -> Bool { !numbers.lexicographicallyPrecedes(wanted) }

    /// Returns whether it belongs to a series such as 6.18.
    func isOfSeries(_ major: Int, _ minor: Int) -> Bool { numbers.starts(with: [major, minor]) }
}
