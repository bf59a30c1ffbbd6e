// Several operations on one link.
//
// Duties: operations one after the other; values of subscriptions as they come, between the lines of other results;
// the wait for values, which counts those that have come since the last wait; the end of all subscriptions.
//
// Invariants:
// - A value is counted by one wait only, and a deadline ends the wait that it belongs to only.
// - A subscription that has ended is no longer there; a wait for values without one ends with the error of the last.
//
// Writing blocks while the reader does not read. It happens beside the tasks' threads, and ^C gives it up.

import BLECore
import BareBLE

/// The state of `talk`: its subscriptions, and the values that no wait has counted.
actor TalkSession {
    private struct Waiter {
        let number: Int
        let count: Int
        let continuation: CheckedContinuation<Bool, any Error>
    }

    private let peripheral: Peripheral
    private let output: OperationOutput
    private let lines: LineOutput
    private let timeout: Duration
    private let reader: ValueReader
    private var subscriptions: [AttributeHandle: (values: ValueSequence, task: Task<Void, Never>)] = [:]
    private var uncounted = 0
    private var waiter: Waiter?
    private var waits = 0

    init(_ reader: ValueReader, _ output: OperationOutput, to lines: LineOutput) {
        self.reader = reader
        self.output = output
        self.lines = lines
        peripheral = reader.peripheral
        timeout = reader.timeout
    }

    /// Performs an operation and prints its result.
    ///
    /// - Returns: Whether more operations may follow.
    func perform(_ operation: TalkOperation) async throws -> Bool {
        switch operation {
        case .read(let arguments): try await read(arguments)
        case .write(let attribute, let value, let kind): try await write(attribute, try value.bytes(), kind)
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
        for handle in subscriptions.keys.sorted() { try? await unsubscribe(from: handle) }
    }

    private func print(_ line: [UInt8]) async throws {
        let lines = lines
        if try await Prompt.hidden({ try await lines.write(line) }) == .closed { Interrupt.end(.done) }
    }

    // MARK: Operations

    /// Prints every value that can be read; then the failures are reported, and the last one is thrown.
    private func read(_ arguments: [ReadArgument]) async throws {
        var failures: [BLEError] = []
        for argument in arguments {
            for result in await reader.results(of: argument) {
                switch result {
                case .success(let reading):
                    let hasLabel = arguments.count > 1 || reading.isOfService
                    let label = hasLabel ? await self.label(reading.handle, reading.uuid) : nil
                    try await print(
                        output.line(ofReading: reading.value, at: reading.handle, reading.uuid, label: label))
                case .failure(let failure):
                    failures.append(failure)
                }
            }
            // Without a link the others cannot be read.
            if failures.last?.code == .disconnected || failures.last?.code == .cancelled { break }
        }
        try FailureAfterOthers.end(with: failures)
    }

    private func write(_ attribute: AttributeArgument, _ bytes: [UInt8], _ kind: Peripheral.WriteKind) async throws {
        do throws(BLEError) {
            try await peripheral.write(bytes, to: attribute.reference, kind, timeout: timeout)
        } catch {
            throw await attribute.advised(error, peripheral)
        }
        let database = await peripheral.database
        let handle = attribute.reference.valueHandle(in: database)
        try await print(
            output.line(
                ofWriting: bytes, to: attribute, at: handle, handle.flatMap { database?.type(at: $0) }, kind))
    }

    private func subscribe(to attributes: [AttributeArgument], _ kind: SubscribeOptions.Kind) async throws {
        let database = try await peripheral.discover(timeout: timeout)
        for attribute in attributes {
            try attribute.expectValue(in: database)
            let values: ValueSequence
            do throws(BLEError) {
                values = try await peripheral.subscribe(
                    to: [attribute.reference],
                    SubscribeOptions(preferred: kind, capacity: 65_536, timeout: timeout))
            } catch {
                throw await attribute.advised(
                    error, peripheral, subscribing: true, reading: "`read \(attribute.text)` reads it.")
            }
            guard let handle = values.handles.first, subscriptions[handle] == nil else {
                try await values.unsubscribe()
                continue
            }
            let uuid = await peripheral.database?.type(at: handle)
            let label = await self.label(handle, uuid)
            let task = Task { [weak self] in
                do {
                    for try await value in values { try await self?.received(value, uuid, label) }
                    await self?.ended(handle, by: nil)
                } catch {
                    await self?.ended(handle, by: error)
                }
            }
            subscriptions[handle] = (values, task)
            if !output.isJSON { Console.note("subscribed to \(label)") }
        }
    }

    private func unsubscribe(from attributes: [AttributeArgument]) async throws {
        let database = await peripheral.database
        let handles = try attributes.map { attribute throws(Failure) in
            guard let handle = attribute.reference.valueHandle(in: database), subscriptions[handle] != nil else {
                throw Failure(
                    message: "there is no subscription to \(attribute.text)", hint: "`notify` begins one.",
                    status: .notFound)
            }
            return handle
        }
        for handle in attributes.isEmpty ? subscriptions.keys.sorted() : handles {
            try await unsubscribe(from: handle)
        }
    }

    private func unsubscribe(from handle: AttributeHandle) async throws {
        guard let subscription = subscriptions.removeValue(forKey: handle) else { return }
        // After ^C the task is cancelled, but the peer must still be asked to stop.
        try await Task { try await subscription.values.unsubscribe() }.value
        await subscription.task.value
        if !output.isJSON { Console.note("unsubscribed from \(CharacteristicReference.handle(handle))") }
    }

    private func explore() async throws {
        let database = try await peripheral.discover(level: .full, timeout: timeout)
        let tree = AttributeTree(database, of: output.peer, mtu: await peripheral.mtu)
        if output.isJSON {
            try await print(tree.json(ofOperation: "explore").bytes)
        } else {
            let screen = AttributeScreen(tree, width: Console.width, spelled: Console.spelled)
            for line in screen.table { try await print(Array(line.painted(output.look).utf8)) }
        }
    }

    // MARK: Values

    private func received(_ value: ReceivedValue, _ uuid: BluetoothUUID?, _ label: String) async throws {
        if value.droppedBefore > 0, !output.isJSON {
            Console.note("\(value.droppedBefore.counted("value")) dropped here")
        }
        try await print(output.line(of: value, uuid, label: label))
        uncounted += 1
        guard let waiter, uncounted >= waiter.count else { return }
        uncounted -= waiter.count
        end(waiter.number, with: .success(true))
    }

    private func ended(_ handle: AttributeHandle, by error: (any Error)?) {
        subscriptions[handle] = nil
        guard subscriptions.isEmpty, let waiter else { return }
        if let error {
            end(waiter.number, with: .failure(error))
        } else if waiter.count < .max {
            end(waiter.number, with: .failure(Self.nothingToWaitFor))
        }
    }

    private func wait(for count: Int?, _ time: DurationArgument?) async throws {
        // A time alone is a pause.
        let needed = count ?? (time == nil ? 1 : .max)
        if uncounted >= needed {
            uncounted -= needed
            return
        }
        if needed < .max, subscriptions.isEmpty { throw Self.nothingToWaitFor }
        waits += 1
        let number = waits
        let deadline = time.map { time in
            Task {
                try await Task.sleep(for: time.duration)
                end(number, with: .success(false))
            }
        }
        defer { deadline?.cancel() }
        let hasCome = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Bool, any Error>) in
                if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                waiter = Waiter(number: number, count: needed, continuation: continuation)
            }
        } onCancel: {
            Task { await self.end(number, with: .failure(CancellationError())) }
        }
        guard !hasCome else { return }
        let came = uncounted
        // What came meanwhile has been waited for.
        uncounted = 0
        guard let count else { return }
        throw Failure(
            message: came == 0 ? "no value came" : "only \(came) of \(count.counted("value")) came",
            hint: "Allow more time with --for.", status: .timedOut)
    }

    private static var nothingToWaitFor: Failure {
        Failure(message: "there is no subscription to wait for", hint: "`notify ATTRIBUTE` begins one.", status: .usage)
    }

    private func end(_ number: Int, with result: Result<Bool, any Error>) {
        guard let waiter, waiter.number == number else { return }
        self.waiter = nil
        waiter.continuation.resume(with: result)
    }

    private func label(_ handle: AttributeHandle, _ uuid: BluetoothUUID?) async -> String {
        let name = uuid.map { AssignedNumbers.characteristicName($0) ?? $0.description }
        return [CharacteristicReference.handle(handle).description, name].compactMap(\.self).joined(separator: " ")
    }
}
