internal import BLECore
internal import BLELinux
public import BareBLE
internal import Glibc

/// A service manager in this process: it receives daemons' notifications and stores their descriptors.
///
/// ```swift
/// let manager = try VirtualServiceManager()
/// let notifier = ServiceNotifier(manager.environment())
/// try notifier?.ready()
/// await manager.wait { $0.contains("READY=1") }
/// ```
public actor VirtualServiceManager {
    private static let lastNumber = Lock(0)

    /// Its socket address, for `NOTIFY_SOCKET`.
    public nonisolated let address: String
    private let descriptor: Int32
    /// All assignments received, in order, except those that accompany descriptors.
    public private(set) var assignments: [String] = []
    private var stored: [(name: String, number: Int32)] = []
    private var takesBarriers = true

    /// The executor of the test kit's thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe EventLoop.peers.asUnownedSerialExecutor()
    }

    /// Starts to listen on an abstract address of its own, or at `path`.
    ///
    /// - Throws: `TestLinkError` if the system has no sockets left or cannot bind one at `path`.
    public init(path: String? = nil) throws(TestLinkError) {
        let number = Self.lastNumber.withLock { number in
            number += 1
            return number
        }
        address = path ?? "@bareble-test-\(getpid())-\(number)"
        guard let socket = ServiceSocket(address) else { throw .noSocketPair(errno: EINVAL) }
        do throws(SystemCallError) {
            descriptor = try socket.listen()
        } catch {
            throw .noSocketPair(errno: error.errno)
        }
        // What arrives earlier waits in the socket.
        Task(executorPreference: EventLoop.peers) { await self.listen() }
    }

    private func listen() {
        EventLoop.peers.onReadable(descriptor) { [weak self] in
            self?.assumeIsolated { $0.readable() }
        }
    }

    // Not isolated: Swift 6.3 fails with "circular reference" when it optimizes a program that uses it.
    deinit {
        for entry in stored { MemoryFile.close(entry.number) }
        Task(executorPreference: EventLoop.peers) { [descriptor] in
            EventLoop.peers.unregister(descriptor)
            MemoryFile.close(descriptor)
        }
    }

    /// Returns the environment variables of a process with this number, or of this one.
    public nonisolated func environment(
        processID: Int32? = nil, watchdog: Duration? = nil
    ) -> ServiceEnvironment {
        var variables = ["NOTIFY_SOCKET": address]
        if let watchdog { variables["WATCHDOG_USEC"] = "\(Int64(watchdog / .microseconds(1)))" }
        return ServiceEnvironment(variables: variables, processID: processID ?? getpid())
    }

    /// The names of the stored descriptors, sorted, one for each.
    public var storedNames: [String] { stored.map(\.name).sorted() }

    /// Returns the stored descriptors for the next run of the daemon and forgets them. They are owned by the caller and
    /// remain open across exec.
    public func takeStored() -> [(name: String, number: Int32)] {
        defer { stored = [] }
        for entry in stored { LinkSocket.setLivesAcrossExec(true, entry.number) }
        return stored
    }

    /// Stops acknowledging barriers, so that daemons that wait for one keep waiting.
    public func ignoreBarriers() {
        takesBarriers = false
    }

    /// Waits until the assignments satisfy a condition.
    public func wait(until isEnough: @Sendable ([String]) -> Bool) async {
        while !isEnough(assignments), !Task.isCancelled { await Task.yield() }
    }

    private func readable() {
        while let (text, descriptors) = ServiceSocket.receive(at: descriptor) {
            let lines = text.split(separator: "\n").map(String.init)
            let name = lines.first { $0.hasPrefix("FDNAME=") }.map { String($0.dropFirst(7)) } ?? "stored"
            if lines.contains("FDSTORE=1") {
                stored += descriptors.map { (name, $0) }
            } else if lines.contains("BARRIER=1"), !takesBarriers {
                stored += descriptors.map { ("barrier", $0) }
            } else {
                for number in descriptors { MemoryFile.close(number) }
            }
            if lines.contains("FDSTOREREMOVE=1") {
                for entry in stored where entry.name == name { MemoryFile.close(entry.number) }
                stored.removeAll { $0.name == name }
            }
            assignments += lines
        }
    }
}
