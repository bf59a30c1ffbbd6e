import Glibc

/// Tells the service manager how the daemon is: systemd's protocol for units of `Type=notify`, one datagram a message.
///
/// No call waits for the manager.
public struct ServiceNotifier: Sendable {
    /// How often the manager wants to hear that the daemon is well; `nil`: never.
    public let watchdogInterval: Duration?
    private let path: [UInt8]

    /// The notifier of a process with these variables; `nil` where no manager listens, such as in a shell.
    public init?(socket: String?, watchdogMicroseconds: String? = nil) {
        guard let socket, socket.hasPrefix("/") || socket.hasPrefix("@"), socket.utf8.count < 108 else { return nil }
        // An at sign stands for the zero with which names begin that are in no file system.
        path = socket.utf8.enumerated().map { $0.offset == 0 && $0.element == UInt8(ascii: "@") ? 0 : $0.element }
        watchdogInterval = watchdogMicroseconds.flatMap { Int64($0) }.flatMap { $0 > 0 ? .microseconds($0) : nil }
    }

    /// The notifier of this process.
    public static var process: ServiceNotifier? {
        func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
        // The watchdog may be meant for another process than this one.
        let isOurs = variable("WATCHDOG_PID").map { Int32($0) == getpid() } ?? true
        return ServiceNotifier(
            socket: variable("NOTIFY_SOCKET"), watchdogMicroseconds: isOurs ? variable("WATCHDOG_USEC") : nil)
    }

    /// Sends assignments such as `READY=1`. Those with a text of somebody else's must not have line breaks in them.
    ///
    /// - Returns: Whether the manager's socket took them.
    @discardableResult
    public func send(_ assignments: String...) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let text = Array(assignments.joined(separator: "\n").utf8)
        let length = MemoryLayout<sockaddr_un>.offset(of: \.sun_path).map { $0 + path.count } ?? 0
        let sent = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    descriptor, text, text.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT), $0,
                    socklen_t(length))
            }
        }
        return sent == text.count
    }
}
