// Several observers are notified, or served, in the order in which they came. The iteration order of a hash table
// differs in each process, and would make what follows differ as well.

extension Dictionary where Key: Comparable {
    /// The values, ordered by their keys.
    var inOrder: [Value] {
        count < 2 ? Array(values) : sorted { $0.key < $1.key }.map(\.value)
    }
}
