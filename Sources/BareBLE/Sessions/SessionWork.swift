internal import BLECore
internal import BLELinux

// What a session has in progress: its current link, its work, and the end of what it has released. Only the session
// uses these, on its event loop.

/// The current link of a session. It knows its end at once; `watch` reports it after the earlier changes of services.
struct SessionLink {
    let link: Peripheral
    let watch: Task<Void, Never>

    init(_ link: Peripheral, _ watch: Task<Void, Never>) {
        self.link = link
        self.watch = watch
    }

    /// The reason of its end; `nil` while it is up.
    // Read from the link: a closure there would stay as long as the link, once for each time that it is returned.
    var end: DisconnectReason? { link.assumeIsolated { $0.end } }
}

/// The one thing in progress in a session: a connect, the program's work on a link, or a wait for the adapter.
struct SessionWork {
    private(set) var number: UInt64 = 0
    private var task: Task<Void, Never>?

    /// Begins new work; `body` receives its number.
    mutating func begin(on loop: EventLoop, _ body: @escaping @Sendable (UInt64) async -> Void) {
        number &+= 1
        let number = number
        // Detached: it must not inherit exclusive access or another task-local value of the requesting task.
        task = Task.detached(executorPreference: loop) { await body(number) }
    }

    /// Ends the work with this number; returns whether it was still in progress.
    mutating func end(_ number: UInt64) -> Bool {
        guard number == self.number else { return false }
        task = nil
        return true
    }

    /// Cancels the work; returns its task, which may have to be awaited.
    mutating func cancel() -> Task<Void, Never>? {
        number &+= 1
        task?.cancel()
        return task.take()
    }
}

/// The end of what a session has released: of cancelled work, and of the closing link.
struct SessionTeardown {
    /// The mode in which the link is disconnected.
    private var mode = Peripheral.DisconnectMode.now
    /// Completes when everything that was released has ended.
    private(set) var task: Task<Void, Never>?
    private(set) weak var closingLink: Peripheral?

    /// The next link to be released is disconnected in this mode.
    mutating func setMode(_ mode: Peripheral.DisconnectMode) { self.mode = mode }

    mutating func begin(_ link: Peripheral?, after work: Task<Void, Never>?, on loop: EventLoop) {
        let (earlier, mode) = (task, mode)
        closingLink = link
        // Not detached: a task that ends the session inside `exclusively` does not wait for itself.
        task = Task(executorPreference: loop) {
            await earlier?.value
            await work?.value
            await link?.disconnect(mode)
        }
    }
}
