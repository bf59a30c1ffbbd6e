/// When a reply that comes in several values is complete.
public struct ReplyFraming: Sendable {
    package enum Measure: Sendable {
        case length(Int)
        case until(limit: Int, @Sendable ([UInt8]) -> Bool)
    }

    package let measure: Measure

    /// After this many bytes. More than that are an error, because then the reply is not the expected one.
    public static func length(_ count: Int) -> ReplyFraming {
        ReplyFraming(measure: .length(count))
    }

    /// Until `isComplete` says so of all that has come so far. It is asked after every value that is not
    /// empty, on the library's thread: what it costs, the peer may cost once for each byte.
    ///
    /// - Parameters:
    ///   - limit: how many bytes are too many.
    ///   - isComplete: whether this is all; the bytes are those of all values, in their order.
    public static func until(
        limit: Int = 64 * 1024, _ isComplete: @escaping @Sendable (_ bytes: [UInt8]) -> Bool
    ) -> ReplyFraming {
        ReplyFraming(measure: .until(limit: limit, isComplete))
    }

    /// The most bytes that the reply may have.
    package var mostBytes: Int {
        switch measure {
        case .length(let length): length
        case .until(let limit, _): limit
        }
    }
}

/// The former name of `ReplyFraming`.
@available(*, deprecated, renamed: "ReplyFraming")
public typealias Assembly = ReplyFraming

/// How many values a peer sends in response to one request.
public struct ResponseCount: Sendable {
    package enum Measure: Sendable {
        case exactly(Int)
        case until(limit: Int, @Sendable ([UInt8]) -> Bool)
    }

    package let measure: Measure

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
