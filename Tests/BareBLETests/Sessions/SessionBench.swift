import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// A session over socketpairs to one virtual peripheral, whose connects a test may refuse, in virtual time.
struct SessionBench: Sendable {
    let central: Central
    let peripheral: VirtualPeripheral
    let door = Door()

    init(_ device: VirtualDevice = .heartRate) throws {
        let time = try #require(VirtualTimeTrait.time, "the test lacks .virtualTime")
        central = Central(time: time)
        peripheral = VirtualPeripheral(device, time: time)
    }

    /// No pauses to speak of.
    static let hasty = ReconnectPolicy.backoff(initial: .milliseconds(1), max: .milliseconds(2), jitter: 0)

    func session(
        _ options: Session.Options = Session.Options(reconnect: hasty),
        _ handlers: Session.Handlers = Session.Handlers()
    ) async throws -> Session {
        try await central.session(target, options, handlers)
    }

    var target: SessionTarget {
        SessionTarget(name: "bench") { [central, peripheral, door] options throws(BLEError) in
            try await door.enter()
            // The peripheral hears of the end of its last link a little later than this side.
            while await peripheral.isConnected {
                if Task.isCancelled { throw BLEError(.cancelled, during: "connect", because: "of the test") }
                await Task.yield()
            }
            guard let descriptor = try? await peripheral.connect() else {
                throw BLEError(.connectFailed, during: "connect", because: "the peripheral has no descriptors")
            }
            return try await central.attach(descriptor: descriptor, name: "bench", options)
        }
    }

    /// The stand-in between a session and its peripheral.
    actor Door {
        private var failures: [BLEError.Code] = []
        private var isClosed = false
        private(set) var knocks = 0
        private var waiting: [CheckedContinuation<Void, Never>] = []

        /// Refuses the next connects.
        func refuse(_ codes: [BLEError.Code]) { failures += codes }

        /// Lets connects wait.
        func close() { isClosed = true }

        func open() {
            isClosed = false
            for continuation in waiting { continuation.resume() }
            waiting = []
        }

        func enter() async throws(BLEError) {
            knocks += 1
            while isClosed {
                await withTaskCancellationHandler {
                    await withCheckedContinuation { continuation in
                        if Task.isCancelled { continuation.resume() } else { waiting.append(continuation) }
                    }
                } onCancel: {
                    testTask { await self.wakeAll() }
                }
                if Task.isCancelled { throw BLEError(.cancelled, during: "connect", because: "of the test") }
            }
            if !failures.isEmpty { throw BLEError(failures.removeFirst(), during: "connect", because: "of the test") }
        }

        private func wakeAll() {
            for continuation in waiting { continuation.resume() }
            waiting = []
        }
    }
}

/// A name for an event without what a test cannot foresee.
extension Session.Event {
    var word: String {
        switch self {
        case .connecting(let attempt): "connecting \(attempt)"
        case .connected: "connected"
        case .ready: "ready"
        case .disconnected(let loss): "disconnected \(loss.error.code)"
        case .servicesChanged: "servicesChanged"
        case .gaveUp(let error): "gaveUp \(error.code)"
        case .ended: "ended"
        case .missed: "missed"
        }
    }
}

extension ConnectionEventSequence.AsyncIterator {
    /// The words of the events up to the first that is `word`.
    mutating func words(upTo word: String) async throws -> [String] {
        var words: [String] = []
        while let event = try await next() {
            words.append(event.word)
            if event.word == word { return words }
        }
        return words
    }
}

func error(_ code: BLEError.Code) -> BLEError { BLEError(code, during: "", because: "") }
