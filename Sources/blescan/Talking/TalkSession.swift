// Several operations on one link.
//
// Duties: operations one after the other; values of subscriptions as they come, between the lines of other results;
// the wait for values, which counts those that have come since the last wait; the end of all subscriptions.
//
// Invariants:
// - A value is counted by one wait only.
// - A link that was lost ends the operation that runs, and every later one, with that error.

import BLECore
import BareBLE

/// The state of `talk`: its subscriptions, and the values that no wait has counted.
actor TalkSession {
    private struct Waiter {
        let count: Int
        let continuation: CheckedContinuation<Bool, any Error>
    }

    private let peripheral: Peripheral
    private let output: OperationOutput
    private let timeout: Duration
    private var subscriptions: [AttributeHandle: (values: ValueSequence, task: Task<Void, Never>)] = [:]
    private var uncounted = 0
    private var waiter: Waiter?
    /// The error that ended a subscription.
    private var failure: (any Error)?

    init(_ peripheral: Peripheral, _ output: OperationOutput, timeout: Duration) {
        self.peripheral = peripheral
        self.output = output
        self.timeout = timeout
    }

    /// Performs an operation and prints its result.
    ///
    /// - Returns: Whether more operations may follow.
    func perform(_ operation: TalkOperation) async throws -> Bool {
        switch operation {
        case .read(let attributes):
            for attribute in attributes { try await read(attribute, isAlone: attributes.count == 1) }
        case .write(let attribute, let bytes, let kind): try await write(attribute, bytes, kind)
        case .notify(let attributes, let kind): try await subscribe(to: attributes, kind)
        case .stop(let attributes): try await unsubscribe(from: attributes)
        case .wait(let count, let time): try await wait(for: count, time)
        case .explore: try await explore()
        case .help: for line in TalkOperation.usage.split(separator: "\n") { Console.note(String(line)) }
        case .quit: return false
        }
        return true
    }

    /// Ends all subscriptions.
    func end() async {
        try? await unsubscribe(from: [])
    }

    // MARK: Operations

    private func read(_ attribute: AttributeArgument, isAlone: Bool) async throws {
        do throws(BLEError) {
            let reading = try await peripheral.readAttribute(attribute.reference, timeout: timeout)
            let uuid = reading.uuid
            let label = isAlone ? nil : await self.label(reading.handle, uuid)
            Console.out(output.line(ofReading: reading.value, at: reading.handle, uuid, label: label))
        } catch {
            throw await attribute.advised(error, peripheral)
        }
    }

    private func write(_ attribute: AttributeArgument, _ bytes: [UInt8], _ kind: WriteKind) async throws {
        do throws(BLEError) {
            try await peripheral.write(bytes, to: attribute.reference, kind, timeout: timeout)
        } catch {
            throw await attribute.advised(error, peripheral)
        }
        let database = await peripheral.database
        let handle = attribute.reference.valueHandle(in: database)
        Console.out(
            output.line(
                ofWriting: bytes, to: attribute, at: handle, handle.flatMap { database?.type(at: $0) }, kind))
    }

    private func subscribe(to attributes: [AttributeArgument], _ kind: SubscriptionKind) async throws {
        for attribute in attributes {
            let values: ValueSequence
            do throws(BLEError) {
                values = try await peripheral.subscribe(
                    to: [attribute.reference],
                    SubscribeOptions(preferred: kind, capacity: 65_536, timeout: timeout))
            } catch {
                throw await attribute.advised(error, peripheral, subscribing: true)
            }
            guard let handle = values.handles.first, subscriptions[handle] == nil else {
                try await values.unsubscribe()
                continue
            }
            let uuid = await peripheral.database?.type(at: handle)
            let label = await self.label(handle, uuid)
            let task = Task { [weak self] in
                do {
                    for try await value in values { await self?.received(value, uuid, label) }
                } catch {
                    await self?.ended(by: error)
                }
            }
            subscriptions[handle] = (values, task)
            if !output.isJSON { Console.note("subscribed to \(label)") }
        }
    }

    private func unsubscribe(from attributes: [AttributeArgument]) async throws {
        let database = await peripheral.database
        let handles =
            attributes.isEmpty
            ? Array(subscriptions.keys) : attributes.compactMap { $0.reference.valueHandle(in: database) }
        for handle in handles.sorted() {
            guard let subscription = subscriptions.removeValue(forKey: handle) else {
                throw Failure(
                    message: "there is no subscription to \(CharacteristicReference.handle(handle))",
                    hint: "`notify` begins one.", status: .notFound)
            }
            // After ^C the task is cancelled, but the peer must still be asked to stop.
            try await Task { try await subscription.values.unsubscribe() }.value
            await subscription.task.value
            if !output.isJSON { Console.note("unsubscribed from \(CharacteristicReference.handle(handle))") }
        }
    }

    private func explore() async throws {
        let database = try await peripheral.discover(level: .full, timeout: timeout)
        let tree = AttributeTree(database, of: output.peer, mtu: await peripheral.mtu)
        if output.isJSON {
            Console.out(tree.json.text)
        } else {
            for line in AttributeScreen(tree, width: Console.width).table { Console.out(line.plain) }
        }
    }

    // MARK: Values

    private func received(_ value: ReceivedValue, _ uuid: BluetoothUUID?, _ label: String) {
        if value.droppedBefore > 0, !output.isJSON {
            Console.note("\(value.droppedBefore.counted("value")) dropped here")
        }
        Console.out(output.line(of: value, uuid, label: label))
        uncounted += 1
        guard let waiter, uncounted >= waiter.count else { return }
        uncounted -= waiter.count
        resume(returning: true)
    }

    private func ended(by error: any Error) {
        failure = failure ?? error
        guard let waiter else { return }
        self.waiter = nil
        waiter.continuation.resume(throwing: error)
    }

    private func wait(for count: Int?, _ time: DurationArgument?) async throws {
        // A time alone is a pause.
        let needed = count ?? (time == nil ? 1 : .max)
        if uncounted >= needed {
            uncounted -= needed
            return
        }
        if time == nil, subscriptions.isEmpty {
            throw Failure(
                message: "there is no subscription to wait for", hint: "`notify ATTRIBUTE` begins one.", status: .usage)
        }
        let deadline = time.map { time in
            Task {
                try await Task.sleep(for: time.duration)
                resume(returning: false)
            }
        }
        defer { deadline?.cancel() }
        let hasCome = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Bool, any Error>) in
                if let failure { return continuation.resume(throwing: failure) }
                if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                waiter = Waiter(count: needed, continuation: continuation)
            }
        } onCancel: {
            Task { await self.ended(by: CancellationError()) }
        }
        guard !hasCome, let count else {
            // What came during a pause has been waited for.
            if count == nil { uncounted = 0 }
            return
        }
        let came = uncounted
        uncounted = 0
        throw Failure(
            message: "only \(came) of \(count.counted("value")) came", hint: "Allow more time with --for.",
            status: .timedOut)
    }

    private func resume(returning hasCome: Bool) {
        guard let waiter else { return }
        self.waiter = nil
        waiter.continuation.resume(returning: hasCome)
    }

    private func label(_ handle: AttributeHandle, _ uuid: BluetoothUUID?) async -> String {
        let name = uuid.map { AssignedNumbers.characteristicName($0) ?? $0.description }
        return [CharacteristicReference.handle(handle).description, name].compactMap(\.self).joined(separator: " ")
    }
}
