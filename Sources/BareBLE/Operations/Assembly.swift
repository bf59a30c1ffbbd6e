/// How long the values of an answer that comes in several pieces are together.
public struct Assembly: Sendable {
    enum Measure: Sendable {
        case length(Int)
        case until(limit: Int, @Sendable ([UInt8]) -> Bool)
    }

    let measure: Measure

    /// So many bytes. More than that are an error, because then something else was meant.
    public static func length(_ count: Int) -> Assembly {
        Assembly(measure: .length(count))
    }

    /// Until `isComplete` says so of all that has come so far. It is asked behind every value that is not
    /// empty, on the library's thread: what it costs, the peer may cost once for each byte.
    ///
    /// - Parameters:
    ///   - limit: how many bytes are too many.
    ///   - isComplete: whether this is all; the bytes are those of all values, in their order.
    public static func until(
        limit: Int = 64 * 1024, _ isComplete: @escaping @Sendable (_ bytes: [UInt8]) -> Bool
    ) -> Assembly {
        Assembly(measure: .until(limit: limit, isComplete))
    }

    var mostBytes: Int {
        switch measure {
        case .length(let length): length
        case .until(let limit, _): limit
        }
    }
}
