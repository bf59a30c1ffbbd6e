/// The rule by which a reply in several values is complete.
public struct ReplyFraming: Sendable {
    package enum Measure: Sendable {
        case length(Int)
        case until(limit: Int, @Sendable ([UInt8]) -> Bool)
    }

    package let measure: Measure

    /// Completes the reply after this many bytes. More bytes are an error, because the reply is not the expected one.
    public static func length(_ count: Int) -> ReplyFraming {
        ReplyFraming(measure: .length(count))
    }

    /// Completes the reply when `isComplete` returns `true` for all bytes so far. It is called after every nonempty
    /// value, on the library's thread: the peer can cause one call for each byte.
    ///
    /// - Parameters:
    ///   - limit: The number of bytes that is too many.
    ///   - isComplete: Returns whether the reply is complete, from the bytes of all values, in their order.
    public static func until(
        limit: Int = 64 * 1024, _ isComplete: @escaping @Sendable (_ bytes: [UInt8]) -> Bool
    ) -> ReplyFraming {
        ReplyFraming(measure: .until(limit: limit, isComplete))
    }

    /// The maximum number of bytes of the reply.
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

/// The number of values that a peer sends in response to one request.
public struct ResponseCount: Sendable {
    package enum Measure: Sendable {
        case exactly(Int)
        case until(limit: Int, @Sendable ([UInt8]) -> Bool)
    }

    package let measure: Measure

    /// Collects this number of values; later ones are ignored.
    public static func exactly(_ count: Int) -> ResponseCount {
        ResponseCount(measure: .exactly(count))
    }

    /// Collects values until `isLast` returns `true`; that value is collected too. It is called on the library's
    /// thread.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of values, including the last one.
    ///   - isLast: Returns whether this value is the last one.
    public static func until(
        limit: Int = 1024, _ isLast: @escaping @Sendable (_ value: [UInt8]) -> Bool
    ) -> ResponseCount {
        ResponseCount(measure: .until(limit: limit, isLast))
    }
}
