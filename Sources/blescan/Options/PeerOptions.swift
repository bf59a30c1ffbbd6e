import ArgumentParser

/// The peer, for every command that performs operations on it.
struct PeerOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(PeerOptions.help),
        completion: Completions.peer,
        transform: PeerDesignation.init(argument:))
    var peer: PeerDesignation

    /// What a peer on the command line may be.
    static let help =
        "The peer: AA:BB:CC:DD:EE:FF[/random|/public], name:NAME or service:UUID for a device that advertises it, "
        + "unix:PATH or demo:NAME."
}

/// The attributes to read, for `read`.
struct ReadOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "What to read: UUIDs, names such as battery-level, handles such as 0x0022, or services, for all that can be "
                + "read of them."),
        completion: Completions.attribute,
        transform: ReadArgument.init(argument:))
    var attribute: [ReadArgument]

    /// Whether one value alone is requested, which needs no label.
    var isAlone: Bool { attribute.count == 1 && attribute.allSatisfy(\.isAttribute) }

    var cacheUse: Connection.CacheUse { attribute.cacheUse }
}

extension [ReadArgument] {
    /// The use of the cache: it has the type of a handle, and the characteristics of a service.
    var cacheUse: Connection.CacheUse {
        let isUseful = contains { argument in
            switch argument {
            case .attribute(let attribute): attribute.isHandle
            case .service: true
            }
        }
        return isUseful ? .consulted : .unneeded
    }
}

/// The end of values that come again and again, for `notify` and `watch`.
struct LimitOptions: ParsableArguments {
    @Option(
        name: [.long, .customShort("n")], parsing: .unconditional,
        help: ArgumentHelp("Stop after this number of values, of all attributes together.", valueName: "n"),
        transform: NumberArgument.count)
    var count: Int?

    @Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp("Stop after this time: 10s, 500ms, 1m30s; a bare number is seconds.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var duration: DurationArgument?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count takes a number from 1.") }
    }

    /// Ends a command that has fewer values than requested, or none in its time.
    ///
    /// A number that is not reached is a time-out: the time was over first. A time alone is how long to look, and then
    /// nothing was found, as by a scan.
    ///
    /// - Parameters:
    ///   - verb: What could not be done: "came", "could be read".
    ///   - advice: The hint where there is no value at all.
    /// - Throws: `CancellationError` after ^C, if a number was requested; else `Failure`.
    func expect(
        _ number: Int, isInterrupted: Bool, _ verb: String, advice: String = "Allow more time with --for."
    ) throws {
        let wanted = count ?? (duration == nil ? 0 : 1)
        guard number < wanted else { return }
        if isInterrupted {
            // Without a number the user decides when it is enough.
            if count == nil { return }
            throw CancellationError()
        }
        let status: ExitStatus = count == nil ? .notFound : .timedOut
        guard number > 0, let count else {
            let time = duration.map { " in \($0.words)" } ?? ""
            throw Failure(message: "no value \(verb)\(time)", hint: advice, status: status)
        }
        throw Failure(
            message: "only \(number) of \(count.counted("value")) \(verb)",
            hint: "Allow more time with --for, or ask for fewer.", status: status)
    }
}
