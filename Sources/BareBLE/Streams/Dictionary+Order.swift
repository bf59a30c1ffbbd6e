// What is told to several, or done for several, is done in the order in which they came: the order of a hash is another one in each
// process, and would make what happens next another one as well.

extension Dictionary where Key: Comparable {
    /// The values in the order of their keys.
    var inOrder: [Value] {
        count < 2 ? Array(values) : sorted { $0.key < $1.key }.map(\.value)
    }
}
