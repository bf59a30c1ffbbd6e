// Carries out what a user wants on one link, and reports what has happened.
//
// Duties: discovery; the first read of all readable values, in the order of their handles, between which the user's
// operations run; operations; the values of subscriptions as they come; the signal strength, where there is a radio;
// the end of all subscriptions.
//
// Invariants:
// - Every operation has one event: its result or its failure. For operations in progress at the end of the link, that
//   is the end of the link.
// - A failure of one operation ends nothing but that.

import BLECore
import BareBLE

/// A link of a screen of attributes.
actor LinkSession {
    private let peripheral: Peripheral
    private let peer: PeerArgument
    private let timeout: Duration
    private let report: @Sendable (LinkEvent) -> Void
    private var subscriptions: [AttributeHandle: (values: ValueSequence, task: Task<Void, Never>)] = [:]
    private var operations: [Int: Task<Void, Never>] = [:]
    private var operationCount = 0
    /// The time between two measurements of the signal strength.
    private let strengthPause: Duration
    private var measuring: Task<Void, Never>?

    init(
        _ peripheral: Peripheral, of peer: PeerArgument, timeout: Duration, strengthPause: Duration = .seconds(2),
        report: @escaping @Sendable (LinkEvent) -> Void
    ) {
        self.peripheral = peripheral
        self.peer = peer
        self.timeout = timeout
        self.strengthPause = strengthPause
        self.report = report
    }

    /// Discovers and reads everything, then waits for the end of the link.
    ///
    /// - Throws: The error that ended the link; `.cancelled` if the task was cancelled during discovery or a read.
    func run() async throws {
        report(.connected(mtu: await peripheral.mtu))
        let database = try await peripheral.discover(level: .full, timeout: timeout)
        report(.discovered(database))
        measuring = Task { await measureStrength() }
        for handle in AttributeTree.readable(in: database, of: database.services) {
            if Task.isCancelled { break }
            do throws(BLEError) {
                let bytes = try await peripheral.read(.handle(handle), timeout: timeout)
                report(.value(handle, bytes, .read))
            } catch {
                guard error.isOfOneAttribute else { throw error }
                report(.unreadable(handle, error))
            }
        }
        guard let reason = await peripheral.disconnected() else { return }
        throw BLEError(
            .disconnected, subject: peripheral.name, during: "keep the link", because: "\(reason)",
            hint: "c connects again.", origin: reason.origin)
    }

    /// Begins an operation; its result is reported.
    func perform(_ request: LinkRequest) {
        operationCount += 1
        let number = operationCount
        operations[number] = Task {
            await carryOut(request)
            operations[number] = nil
        }
    }

    /// Cancels what is in progress, and ends all subscriptions.
    func end() async {
        measuring?.cancel()
        await measuring?.value
        let pending = Array(operations.values)
        for operation in pending { operation.cancel() }
        for operation in pending { await operation.value }
        for handle in subscriptions.keys.sorted() { try? await unsubscribe(from: handle) }
    }

    /// Measures the signal strength again and again, until the link ends or the task is cancelled.
    private func measureStrength() async {
        while !Task.isCancelled, await peripheral.isConnected {
            do throws(BLEError) {
                report(.strength(try await peripheral.rssi()))
            } catch {
                // The strength from before is not that of now. The end of the link has an event of its own.
                if error.code != .disconnected, error.code != .cancelled { report(.strength(nil)) }
                // Another failure may pass: the controller does not know the strength before some packets.
                if error.code == .notPermitted { return }
            }
            try? await Task.sleep(for: strengthPause)
        }
    }

    private func carryOut(_ request: LinkRequest) async {
        switch request {
        case .connect, .disconnect: break
        case .read(let handle):
            await attempt(at: handle) { () async throws(BLEError) in
                report(.value(handle, try await peripheral.read(.handle(handle), timeout: timeout), .read))
            }
        case .write(let handle, let bytes, let kind):
            await attempt(at: handle) { () async throws(BLEError) in
                try await peripheral.write(bytes, to: .handle(handle), kind, timeout: timeout)
                report(.written(handle, byteCount: bytes.count, kind))
            }
        case .subscribe(let handle):
            await attempt(at: handle, subscribing: true) { () async throws(BLEError) in
                try await subscribe(to: handle)
            }
        case .unsubscribe(let handle):
            await attempt(at: handle) { () async throws(BLEError) in try await unsubscribe(from: handle) }
        }
    }

    private func attempt(
        at handle: AttributeHandle, subscribing: Bool = false, _ body: () async throws(BLEError) -> Void
    ) async {
        do throws(BLEError) {
            try await body()
        } catch {
            // The end of the link is reported once, with its reason.
            guard error.code != .disconnected, error.code != .cancelled else { return }
            let attribute = try? AttributeArgument(argument: CharacteristicReference.handle(handle).description)
            let advised =
                await attribute?.advised(
                    error, peripheral, subscribing: subscribing, notifying: "s subscribes to it.") ?? error
            let isBonded = await peripheral.security.bond != nil
            let failure = Failure(advised.advised(peer, isBonded: isBonded, isOnScreen: true))
            report(.failed(handle, failure, mayBeCarriedOut: error.code == .timedOut))
        }
    }

    // MARK: Subscriptions

    private func subscribe(to handle: AttributeHandle) async throws(BLEError) {
        guard subscriptions[handle] == nil else { return report(.subscribed(handle)) }
        // A screen shows the newest value.
        let values = try await peripheral.subscribe(
            to: .handle(handle), SubscribeOptions(capacity: 256, timeout: timeout))
        let report = report
        let task = Task { [weak self] in
            do {
                for try await value in values {
                    let origin: LinkEvent.Origin =
                        value.droppedBefore > 0 ? .sentAfter(dropped: value.droppedBefore) : .sent
                    report(.value(handle, value.bytes, origin))
                }
            } catch {
                await self?.ended(handle, by: error)
            }
        }
        subscriptions[handle] = (values, task)
        report(.subscribed(handle))
    }

    private func unsubscribe(from handle: AttributeHandle) async throws(BLEError) {
        guard let subscription = subscriptions.removeValue(forKey: handle) else { return report(.unsubscribed(handle)) }
        // This task may be cancelled, but the peer must still be asked to stop.
        let failure = await Task { () -> BLEError? in
            do throws(BLEError) {
                try await subscription.values.unsubscribe()
                return nil
            } catch {
                return error
            }
        }.value
        await subscription.task.value
        if let failure { throw failure }
        report(.unsubscribed(handle))
    }

    private func ended(_ handle: AttributeHandle, by error: any Error) {
        guard subscriptions.removeValue(forKey: handle) != nil, let error = error as? BLEError,
            error.code != .disconnected, error.code != .cancelled
        else { return }
        report(.unsubscribed(handle))
        report(.failed(handle, Failure(error)))
    }
}
