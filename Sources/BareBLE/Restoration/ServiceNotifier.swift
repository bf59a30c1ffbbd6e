internal import BLELinux
internal import Glibc

/// Reports the daemon's state to the service manager: systemd's protocol for services of `Type=notify`.
///
/// No call waits for the manager, except `barrier(timeout:)`.
///
/// ```swift
/// let notifier = ServiceNotifier()
/// try notifier?.ready()
/// ```
public struct ServiceNotifier: Hashable, Sendable {
    /// The environment that the manager gave this process.
    public let environment: ServiceEnvironment
    let socket: ServiceSocket

    /// Creates a notifier; `nil` if no manager listens to the process, such as one started in a shell.
    public init?(_ environment: ServiceEnvironment = .process) {
        guard let socket = environment.notifySocket.flatMap({ ServiceSocket($0) }) else { return nil }
        self.environment = environment
        self.socket = socket
    }

    /// The interval in which `watchdog()` is expected; `nil` if it is not.
    public var watchdogInterval: Duration? { environment.watchdogInterval }

    /// Reports that the daemon has started, or has finished reloading its configuration.
    ///
    /// - Throws: `BLEError` with `.busy` if the manager accepts no more messages now, `.notPermitted`, `.system`.
    public func ready(status: String? = nil) throws(BLEError) {
        try send(["READY=1"] + (status.map { ["STATUS=\(Self.line($0))"] } ?? []))
    }

    /// Reports one line about the daemon's work, for `systemctl status`.
    ///
    /// - Throws: `BLEError` as `ready(status:)` does.
    public func status(_ text: String) throws(BLEError) {
        try send(["STATUS=\(Self.line(text))"])
    }

    /// Reports that the daemon works. A daemon that does not report for `watchdogInterval` is ended and started again.
    ///
    /// - Throws: `BLEError` as `ready(status:)` does.
    public func watchdog() throws(BLEError) {
        try send(["WATCHDOG=1"])
    }

    /// Reports that the daemon is about to end.
    ///
    /// - Throws: `BLEError` as `ready(status:)` does.
    public func stopping() throws(BLEError) {
        try send(["STOPPING=1"])
    }

    /// Waits until the manager has processed all earlier messages, even if it accepts no more of them now. The manager
    /// may lose the last message of a process that ends right after it.
    ///
    /// - Throws: `BLEError` with `.timedOut`, `.notPermitted`, `.system`.
    public func barrier(timeout: Duration = .seconds(5)) async throws(BLEError) {
        let socket = socket
        let (subject, operation) = (environment.notifySocket, "notify the service manager")
        // Not `Waiters`: another thread resumes it, once, and there is no loop.
        let failure = await withCheckedContinuation { (waiter: CheckedContinuation<BLEError?, Never>) in
            let isBegun = BlockingThread.begin {
                do throws(SystemCallError) {
                    try socket.barrier(timeout: timeout)
                    waiter.resume(returning: nil)
                } catch {
                    waiter.resume(returning: BLEError(error, notifying: subject))
                }
            }
            if !isBegun { waiter.resume(returning: .noRoom(subject: subject, during: operation)) }
        }
        if let failure { throw failure }
    }

    func send(_ lines: [String], descriptors: [Int32] = []) throws(BLEError) {
        do {
            try socket.send(lines.joined(separator: "\n"), descriptors: descriptors)
        } catch {
            throw BLEError(error, notifying: environment.notifySocket)
        }
    }

    /// Returns a text that cannot be taken for further assignments.
    private static func line(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}

extension BLEError {
    init(_ error: SystemCallError, notifying socket: String?) {
        let (code, reason, hint): (Code, String, String?) =
            switch error.errno {
            case EAGAIN: (.busy, "the service manager accepts no more messages now", "Try again a little later.")
            case ETIMEDOUT: (.timedOut, "the service manager did not respond in time", nil)
            case EACCES, EPERM: (.notPermitted, "this process may not write to its socket", nil)
            case ENOENT, ECONNREFUSED:
                (.system, "there is no listener", "Do not change NOTIFY_SOCKET; the service manager sets it.")
            default: (.system, "\(error.call) failed", nil)
            }
        self.init(
            code, subject: socket, during: "notify the service manager", because: reason, hint: hint,
            errorNumber: error.errno)
    }
}
