public import BLECore
package import BLELinux
public import BareBLE

/// A time that stands while anything happens and leaps over all waiting, for a test of whole daemons.
///
/// Everything that is made with the same virtual time runs on one thread. When nobody on it has anything to do, time goes on to the
/// next deadline: a minute of back-off, an hour of silence and the 30 seconds of the protocol take no time, and the same test
/// has the same order of events every time.
///
///     try await VirtualTime.run { time in
///         let central = Central(time: time)
///         let belt = VirtualPeripheral(.heartRate, time: time)
///         let device = try await central.attach(descriptor: belt.connect())
///         try await time.clock.sleep(for: .seconds(3600))
///     }
///
/// To be exact, a test keeps to these rules: it waits on `clock` or on the library, never on another clock; it makes all its
/// centrals and peers with the same time; and it starts tasks by groups, by `async let` or with `task(_:)`, because a
/// plain `Task { }` runs on another thread, which this time does not know of.
public struct VirtualTime: Sendable {
    package let loop: EventLoop

    /// The clock that goes by this time, to wait on. A central's own `clock` is the same.
    public let clock: CentralClock

    private init() {
        loop = EventLoop(time: .virtual)
        clock = CentralClock(loop: loop)
    }

    /// Runs `body` in a virtual time of its own, which begins at zero.
    ///
    /// The thread that serves it ends with `body`. What still waits for a deadline then is given up, so a test stops its daemon
    /// before it returns.
    ///
    /// - Throws: What `body` throws.
    public static func run<Value: Sendable>(
        _ body: @concurrent @Sendable @escaping (VirtualTime) async throws -> Value
    ) async rethrows -> Value {
        let time = VirtualTime()
        time.loop.start()
        do {
            let value = try await withTaskExecutorPreference(time.loop) { try await body(time) }
            await time.loop.end()
            return value
        } catch {
            await time.loop.end()
            throw error
        }
    }

    /// The time now.
    public var now: BootInstant { loop.now() }

    /// Starts a task that this time knows of.
    @discardableResult
    public func task<Value: Sendable>(
        _ body: @concurrent @Sendable @escaping () async throws -> Value
    ) -> Task<Value, any Error> {
        Task(executorPreference: loop) { try await body() }
    }

    /// Waits until nobody in this time has anything to do any more before the next deadline.
    public func settle() async {
        try? await clock.sleep(for: .nanoseconds(1))
    }

    /// Runs `body`, which leaves the thread of this time, and lets no deadline pass meanwhile: to read a file, or to ask a real
    /// program.
    public func hold<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        loop.hold()
        defer { loop.release() }
        return try await body()
    }
}

extension Central {
    /// A central that lives in a virtual time. It has no radio: it connects to descriptors and to sockets.
    public init(_ configuration: Configuration = Configuration(), time: VirtualTime) {
        self.init(configuration, loop: time.loop)
    }
}
