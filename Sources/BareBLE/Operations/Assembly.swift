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

/// How many values a peer sends in response to one request.
public struct ResponseCount: Sendable {
    enum Measure: Sendable {
        case exactly(Int)
        case until(limit: Int, @Sendable ([UInt8]) -> Bool)
    }

    let measure: Measure

    /// So many values; what comes after them is not looked at.
    public static func exactly(_ count: Int) -> ResponseCount {
        ResponseCount(measure: .exactly(count))
    }

    /// Until `isLast` says so of a value, which is collected too. It is asked on the library's thread.
    ///
    /// - Parameters:
    ///   - limit: how many values there may be, the last one included.
    ///   - isLast: whether this value is the last one.
    public static func until(
        limit: Int = 1024, _ isLast: @escaping @Sendable (_ value: [UInt8]) -> Bool
    ) -> ResponseCount {
        ResponseCount(measure: .until(limit: limit, isLast))
    }
}
