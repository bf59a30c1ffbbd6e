public import BLECore
internal import BLELinux
internal import Logging

/// A subscription that is to be there on each link.
struct StandingSubscription {
    /// What it listens to.
    enum Source {
        case characteristic(CharacteristicReference)
        /// All that the peer sends, whoever has subscribed to it.
        case everything
    }

    let source: Source
    let options: SubscribeOptions
    let buffer: StreamBuffer<SessionValues<ReceivedValue>.Entry>
    let absence = Absence()
    /// Brings the values of the link of the moment.
    var pump: Task<Void, Never>?

    var reference: CharacteristicReference? {
        if case .characteristic(let reference) = source { reference } else { nil }
    }
}

/// A characteristic that was there, has gone with its service, and may come back.
package final class Absence: Sendable {
    /// How often in a row it is looked for in vain, at a new link or a change of services, before the subscription ends.
    package static let limit = 16

    private struct State {
        var hasBegun = false
        var attempts = 0
    }

    private let state = Lock(State())

    package init() {}

    var hasBegun: Bool { state.withLock { $0.hasBegun } }

    /// The subscription has begun.
    package func begin() { state.withLock { $0 = State(hasBegun: true) } }

    /// It was looked for in vain; `nil` when it is looked for no more, else whether that was the first time.
    package func missed() -> Bool? {
        state.withLock { state in
            guard state.hasBegun, state.attempts < Self.limit else { return nil }
            state.attempts += 1
            return state.attempts == 1
        }
    }
}

extension Session {
    /// Subscribes to a characteristic on this link, if there is one, and on each that follows.
    ///
    /// The sequence reports each time that the subscription begins or is interrupted; values that the peer sends in
    /// between are lost. It ends when the session does. A peer that refuses, or has no such characteristic, ends it
    /// with that error; temporary failures, such as another task's long exclusive access, are retried after a pause. A
    /// characteristic that was there and was removed with its service is looked up again at each change of services
    /// and on each link, 16 times in a row, which is logged at `notice`.
    ///
    /// - Parameters:
    ///   - characteristic: The characteristic. One from a database, `.characteristic`, ends the sequence when the peer
    ///     changes it.
    ///   - options: Options of the subscription, and the number of values that may wait.
    public func values(
        of characteristic: CharacteristicReference, _ options: SubscribeOptions = SubscribeOptions()
    ) -> SessionValues<ReceivedValue> {
        SessionValues(
            lease: subscribe(to: .characteristic(characteristic), options),
            decoder: ValueDecoder(.fail, valueLog) { $0 })
    }

    /// Returns the values of all characteristics with a subscription, on this link and each that follows.
    ///
    /// It subscribes to nothing itself, and is not restored after a restart. `.began` and `.interrupted` mark the
    /// links. `ReceivedValue.handle` is the handle of the characteristic.
    public func notifications(_ options: SubscribeOptions = SubscribeOptions()) -> SessionValues<ReceivedValue> {
        SessionValues(
            lease: subscribe(to: .everything, options),
            decoder: ValueDecoder(.fail, valueLog) { $0 })
    }

    /// Subscribes on this link and each that follows, with values decoded as the key's type.
    ///
    /// A value whose bytes do not fit the type is thrown as `BLEError.Code.malformedValue`, with the bytes in
    /// `partialValue`; a `for` loop ends there, an iterator continues with its next `next()`. With
    /// `SubscribeOptions.malformedValues` such values are left out instead.
    public func values<Value: GATTReadable & Sendable>(
        of key: CharacteristicKey<Value>, _ options: SubscribeOptions = SubscribeOptions()
    ) -> SessionValues<Value> {
        SessionValues(
            lease: subscribe(to: .characteristic(CharacteristicReference(key)), options),
            decoder: ValueDecoder(options.malformedValues, valueLog))
    }

    /// Where values that are left out are logged.
    nonisolated var valueLog: ValueLog {
        ValueLog(logger: logger, peer: name, troubles: PeerTroubles(), loop: loop)
    }

    private func subscribe(to source: StandingSubscription.Source, _ options: SubscribeOptions) -> StandingLease {
        lastNumber &+= 1
        let buffer = StreamBuffer<SessionValues<ReceivedValue>.Entry>(
            of: name, capacity: options.capacity, byteLimit: options.byteLimit, policy: options.policy)
        let lease = StandingLease(number: lastNumber, buffer: buffer, session: self)
        switch linkAnswer(during: "subscribe") {
        case .failure(let error)?:
            buffer.finish(life.isEnding ? nil : error)
        case .success(let link)?:
            standing[lease.number] = StandingSubscription(source: source, options: options, buffer: buffer)
            startPump(lease.number, on: link)
        case nil:
            standing[lease.number] = StandingSubscription(source: source, options: options, buffer: buffer)
            keep(lease.number)
        }
        return lease
    }

    // MARK: Link by link

    /// Begins each subscription on the link that is ready now.
    func makeStandingSubscriptions() {
        guard let link else { return }
        for number in standing.keys.sorted() { startPump(number, on: link) }
    }

    private func startPump(_ number: UInt64, on link: Peripheral) {
        guard let subscription = standing[number] else { return }
        keep(number)
        let epoch = workNumber
        subscription.pump?.cancel()
        standing[number]?.pump = Task.detached(executorPreference: loop) { [weak self] in
            let end = await Self.pump(subscription, on: link, epoch)
            guard case .over(let failure) = end else { return }
            subscription.buffer.finish(failure)
            await self?.removeStanding(number)
        }
    }

    /// How bringing the values of one link came to an end.
    private enum PumpEnd {
        /// The next link goes on.
        case untilNextLink
        /// No link will: the peer refuses for good, or nobody takes the values.
        case over(BLEError?)
    }

    /// What the peer, or this program, would answer on the next link too.
    private static let lastingCodes: Set<BLEError.Code> = [
        .refusedByPeer, .insufficientSecurity, .notSupported, .attributeNotFound, .ambiguous, .invalidArgument,
        .valuesLost, .replaced,
    ]
    /// The pauses before a subscription that failed on a link that is up is tried again; they double.
    private static let firstPause = Duration.seconds(1)
    private static let longestPause = Duration.seconds(30)

    /// Brings the values of one link, until it ends; a change of the peer's services is an interruption as well.
    private static func pump(
        _ subscription: StandingSubscription, on link: Peripheral, _ epoch: UInt64
    ) async -> PumpEnd {
        let (source, options, buffer) = (subscription.source, subscription.options, subscription.buffer)
        var pause = firstPause
        var changes: ServiceChangeSequence.AsyncIterator?
        while true {
            // Before it is looked for, so that no change comes in between.
            if changes == nil, subscription.absence.hasBegun {
                changes = await link.announcedServiceChanges().makeAsyncIterator()
            }
            var begun: ValueSequence?
            var lossesTold = 0
            /// What was lost behind the last value that came.
            func losses() -> Int { (begun?.droppedInTotal ?? 0) - lossesTold }
            do throws(BLEError) {
                let sequence = try await values(of: source, options, on: link)
                var values = sequence.makeAsyncIterator()
                begun = sequence
                subscription.absence.begin()
                pause = firstPause
                // A policy that ends the stream has put the reason into it.
                guard buffer.yield(.began(epoch)) else { return .over(nil) }
                while let value = try await values.next() {
                    lossesTold += value.droppedBefore
                    let goesOn = buffer.yield(
                        .value(value, epoch), bytes: value.bytes.count, behind: value.droppedBefore)
                    guard goesOn else { return .over(nil) }
                }
                if Task.isCancelled {
                    // Here, and not when the sequence goes away, so that who waits for this end knows that the peer was told.
                    try? await sequence.unsubscribe()
                    return .untilNextLink
                }
                let error = await link.endError(during: "go on with a subscription")
                return buffer.yield(.interrupted(error, epoch), behind: losses()) ? .untilNextLink : .over(nil)
            } catch {
                if Task.isCancelled { return .untilNextLink }
                let isLinkUp = await link.isConnected
                if isLinkUp, error.code == .attributeNotFound, let reference = subscription.reference,
                    let isFirst = subscription.absence.missed()
                {
                    if isFirst {
                        link.logger.notice(
                            "a characteristic is gone until its service returns",
                            metadata: ["peer": "\(link.name)", "characteristic": "\(reference)"])
                    }
                    guard (try? await changes?.next()) != nil else { return .untilNextLink }
                    continue
                }
                if isLinkUp, isLasting(error, for: source) {
                    buffer.lost(losses())
                    return .over(error)
                }
                if begun != nil, !buffer.yield(.interrupted(error, epoch), behind: losses()) { return .over(nil) }
                if !isLinkUp { return .untilNextLink }
                if begun == nil {
                    let waited: Void? = try? await CentralClock(loop: link.loop).sleep(for: pause)
                    if waited == nil { return .untilNextLink }
                    pause = min(pause * 2, longestPause)
                }
            }
        }
    }

    private static func values(
        of source: StandingSubscription.Source, _ options: SubscribeOptions, on link: Peripheral
    ) async throws(BLEError) -> ValueSequence {
        switch source {
        case .characteristic(let reference): return try await link.subscribe(to: reference, options)
        case .everything:
            let all = await link.notifications(
                capacity: options.capacity, byteLimit: options.byteLimit, policy: options.policy)
            return ValueSequence(subscription: all.subscription)
        }
    }

    private static func isLasting(_ error: BLEError, for source: StandingSubscription.Source) -> Bool {
        // What was found in a database that has changed since is nowhere in the new one.
        if case .characteristic(.characteristic) = source, error.code == .servicesChanged { return true }
        return lastingCodes.contains(error.code)
    }

    /// Ends one subscription; returns when the peer knows, if it has to.
    func endStanding(_ number: UInt64) async {
        forgetStanding(number)
        guard let subscription = standing.removeValue(forKey: number) else { return }
        subscription.buffer.finish()
        subscription.pump?.cancel()
        await subscription.pump?.value
    }

    func removeStanding(_ number: UInt64) {
        standing.removeValue(forKey: number)?.pump?.cancel()
    }

    /// Nobody can end it any more; what is wanted of it stays so.
    func letGoOfStanding(_ number: UInt64) {
        removeStanding(number)
        kept[number] = nil
    }

    /// Ends all of them: with what the session gave up with, or without an error.
    func endStandingSubscriptions(_ failure: BLEError?) {
        for subscription in standing.inOrder {
            subscription.pump?.cancel()
            subscription.buffer.finish(failure)
        }
        standing = [:]
    }
}

/// Keeps a standing subscription, and its session, alive.
final class StandingLease: Sendable {
    let number: UInt64
    let buffer: StreamBuffer<SessionValues<ReceivedValue>.Entry>
    let session: Session

    init(number: UInt64, buffer: StreamBuffer<SessionValues<ReceivedValue>.Entry>, session: Session) {
        self.number = number
        self.buffer = buffer
        self.session = session
    }

    deinit {
        buffer.finish()
        let (session, number) = (session, number)
        Task.detached(executorPreference: session.loop) { await session.letGoOfStanding(number) }
    }
}
