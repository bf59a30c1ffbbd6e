internal import BLECore
internal import BLELinux

/// Whether the adapter can be used.
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

    /// The state of the adapter: first the present one, then each change, up to two seconds late.
    ///
    /// While a task iterates, the adapter is polled every two seconds.
    public nonisolated var adapterStates: AdapterStates { AdapterStates(central: self) }
}

/// The states of a central's adapter.
///
/// At most 16 wait for the consumer; beyond that the oldest is dropped, so the last one is always there.
public struct AdapterStates: AsyncSequence, Sendable {
    /// The element type: a state.
    public typealias Element = AdapterState
    /// The error that the sequence may end with.
    public typealias Failure = BLEError

    let central: Central

    /// Walks over the states.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(central: central)
    }

    /// Walks over the states.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let central: Central
        private var place: Place?
        private var walk: StreamWalk<AdapterState>?

        fileprivate init(central: Central) {
            self.central = central
        }

        /// The next state; `nil` when the task is cancelled.
        ///
        /// - Throws: `BLEError` with `.busy` while another task waits for the next state of this iterator.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> AdapterState? {
            if place == nil {
                let adapter = central.adapter
                let place = await Place(adapter.observeState(), adapter)
                walk = StreamWalk(place.buffer)
                self.place = place
            }
            guard let entry = try await walk?.peek() else { return nil }
            walk?.pass()
            return entry.element
        }
    }

    /// A place among the observers, until it is released.
    fileprivate final class Place: Sendable {
        let buffer: StreamBuffer<AdapterState>
        private let number: UInt64
        private let adapter: Adapter

        init(_ place: (number: UInt64, buffer: StreamBuffer<AdapterState>), _ adapter: Adapter) {
            (number, buffer) = place
            self.adapter = adapter
        }

        deinit {
            let (adapter, number) = (adapter, number)
            Task.detached(executorPreference: adapter.loop) { await adapter.stopObservingState(number) }
        }
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

    /// Whether the adapter is looked at every two seconds.
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
