internal import BLECore
internal import BLELinux

/// The readiness of an adapter, or the reason for which it cannot be used.
public enum AdapterState: Hashable, Sendable, CustomStringConvertible {
    /// The kernel, or this container, has no Bluetooth sockets.
    case unsupported
    /// This process may not open the adapter.
    case unauthorized
    /// The adapter is not there, or not any more.
    case absent
    /// The adapter is there, and switched off or blocked.
    case poweredOff
    /// The adapter can be used.
    case poweredOn

    /// The state's name, which is stable.
    public var description: String {
        switch self {
        case .unsupported: "unsupported"
        case .unauthorized: "unauthorized"
        case .absent: "absent"
        case .poweredOff: "poweredOff"
        case .poweredOn: "poweredOn"
        }
    }
}

extension Central {
    /// The present state of the adapter, as the kernel reports it. Missing capabilities for scanning are not part of
    /// it.
    public var adapterState: AdapterState {
        get async { await adapter.state }
    }

    /// The state of the adapter: first the present one, then each change.
    ///
    /// With CAP_NET_RAW the kernel announces changes, and nothing wakes up in between. Without it the adapter is polled
    /// every two seconds while a task iterates, and changes are reported as late.
    public nonisolated var adapterStates: AdapterStateSequence {
        BLESequence { [self] in
            let observer = AdapterObserver(self)
            return BLESequence<AdapterState>.AsyncIterator { () async throws(BLEError) in
                try await observer.nextBatch()
            }
        }
    }
}

/// The states of a central's adapter.
///
/// Each iterator begins with the present state at its first `next()`. At most 16 wait for the consumer; beyond that the
/// oldest is dropped, so the last one is always there. `next()` throws `BLEError` with `.busy` while another task waits
/// for the next state of this iterator.
public typealias AdapterStateSequence = BLESequence<AdapterState>

/// The former name of `AdapterStateSequence`.
@available(*, deprecated, renamed: "AdapterStateSequence")
public typealias AdapterStates = AdapterStateSequence

/// One iterator's observation of the adapter, which begins with the first request for states.
private final class AdapterObserver: Sendable {
    private let central: Central
    private let observed = Lock<(buffer: StreamBuffer<AdapterState>, token: LifetimeToken)?>(nil)

    init(_ central: Central) {
        self.central = central
    }

    func nextBatch() async throws(BLEError) -> [StreamEntry<AdapterState>] {
        try await begin().nextBatch()
    }

    private func begin() async -> StreamBuffer<AdapterState> {
        if let buffer = observed.withLock({ $0?.buffer }) { return buffer }
        let adapter = central.adapter
        let (number, buffer) = await adapter.observeState()
        let token = LifetimeToken {
            Task.detached(executorPreference: adapter.loop) { await adapter.stopObservingState(number) }
        }
        observed.withLock { $0 = (buffer, token) }
        return buffer
    }
}

extension Adapter {
    /// The present state of the adapter.
    package var state: AdapterState {
        do throws(BLEError) {
            try find(during: "look at the adapter")
            return presence == .up ? .poweredOn : .poweredOff
        } catch {
            switch error.code {
            case .unsupported: return .unsupported
            case .notPermitted: return .unauthorized
            case .noAdapter: return .absent
            default: return .poweredOff
            }
        }
    }

    /// A Boolean value that indicates whether the adapter is looked at every two seconds.
    package var isWatched: Bool { monitor.isTimerSet }

    fileprivate func observeState() -> (number: UInt64, buffer: StreamBuffer<AdapterState>) {
        let buffer = StreamBuffer<AdapterState>(of: subject, capacity: 16, policy: .dropOldest)
        let now = state
        let number = monitor.observe(buffer, now)
        watchPresence()
        return (number, buffer)
    }

    fileprivate func stopObservingState(_ number: UInt64) {
        monitor.stopObserving(number)
        watchPresence()
    }
}
