public import BLECore
package import BLELinux
public import BareBLE

/// A time that stands still while any task can run and then jumps to the next deadline, for tests of whole daemons.
///
/// Everything created with the same virtual time runs on one thread. When nothing is left to run, time advances to the
/// next deadline: a minute of back-off, an hour of silence and the protocol's 30 seconds take no real time, and the
/// order of events is the same in every run.
///
///     try await VirtualTime.run { time in
///         let central = Central(time: time)
///         let belt = VirtualPeripheral(.heartRate, time: time)
///         let device = try await central.attach(descriptor: belt.connect())
///         try await time.clock.sleep(for: .seconds(3600))
///     }
///
/// For deterministic results, a test waits on `clock` or on the library, never on another clock; it creates all its
/// centrals and peers with the same time; and it starts tasks with groups, with `async let` or with `task(_:)`, because
/// a plain `Task { }` runs on a thread that this time does not control.
public struct VirtualTime: Sendable {
    package let loop: EventLoop

    /// The clock of this time, for waiting. A central's own `clock` is the same.
    public let clock: CentralClock

    /// The time of the `run` that the current task belongs to; `nil` in real time.
    @TaskLocal static var current: VirtualTime?

    private init() {
        loop = EventLoop(time: .virtual)
        clock = CentralClock(loop: loop)
    }

    /// Runs `body` in a new virtual time, which begins at zero.
    ///
    /// The thread ends with `body`. Pending deadlines are abandoned then, so a test must stop its daemon before it
    /// returns.
    ///
    /// - Throws: Rethrows the error of `body`.
    public static func run<Value: Sendable>(
        _ body: @concurrent @Sendable @escaping (VirtualTime) async throws -> Value
    ) async rethrows -> Value {
        let time = VirtualTime()
        time.loop.start()
        do {
            let value = try await withTaskExecutorPreference(time.loop) {
                try await Self.$current.withValue(time) { try await body(time) }
            }
            await time.loop.end()
            return value
        } catch {
            await time.loop.end()
            throw error
        }
    }

    /// The current instant.
    public var now: BootInstant { loop.now() }

    /// Starts a task in this time.
    @discardableResult
    public func task<Value: Sendable>(
        _ body: @concurrent @Sendable @escaping () async throws -> Value
    ) -> Task<Value, any Error> {
        Task(executorPreference: loop) { try await body() }
    }

    /// Waits until nothing is left to run before the next deadline.
    public func settle() async {
        try? await clock.sleep(for: .nanoseconds(1))
    }

    /// Runs `body`, which leaves the thread of this time, and stops time meanwhile: to read a file, or to wait for a
    /// real program.
    public func hold<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        loop.hold()
        defer { loop.release() }
        return try await body()
    }
}

extension Central {
    /// Creates a central in a virtual time. It has no radio: it connects to descriptors and sockets.
    public init(_ configuration: Configuration = Configuration(), time: VirtualTime) {
        self.init(configuration, loop: time.loop)
    }
}
