import BareBLE
import Dispatch
import Glibc
import Synchronization

/// A service manager of the test's own: it listens where daemons notify.
final class ServiceManager: Sendable {
    /// Where it listens, as `NOTIFY_SOCKET` says it.
    let address: String
    private let descriptor: Int32
    private let received = Received()

    private final class Received: Sendable {
        let assignments = Mutex<[String]>([])
    }

    init() throws {
        let name = "bareble-example-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        self.address = "@" + name
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0[1...].copyBytes(from: name.utf8) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + 1 + name.utf8.count)
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard bound == 0 else { throw WaitTimeout(what: "a service manager listens", seen: []) }
        Self.collect(from: descriptor, into: received)
    }

    deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// On a thread of its own, as messages come: few of them have room in the socket.
    private static func collect(from descriptor: Int32, into received: Received) {
        DispatchQueue(label: "manager").async {
            var message = [UInt8](repeating: 0, count: 4096)
            while case let count = recv(descriptor, &message, message.count, 0), count > 0 {
                let lines = String(decoding: message.prefix(count), as: UTF8.self).split(separator: "\n")
                received.assignments.withLock { $0 += lines.map(String.init) }
            }
            close(descriptor)
        }
    }

    /// What it says to a process that it starts.
    func environment(watchdogMicroseconds: Int) -> ServiceEnvironment {
        let variables = ["NOTIFY_SOCKET": address, "WATCHDOG_USEC": "\(watchdogMicroseconds)"]
        return ServiceEnvironment(variables: variables, processID: getpid())
    }

    /// What it has been sent, in order.
    var assignments: [String] { received.assignments.withLock { $0 } }

    /// Waits until the assignments are as wanted.
    func wait(for what: String, _ isEnough: ([String]) -> Bool) async throws {
        try await waited(for: what, seen: { assignments }) { isEnough(assignments) }
    }

    /// Waits until this one has come.
    func wait(for assignment: String) async throws {
        try await wait(for: "\(assignment) is sent") { $0.contains(assignment) }
    }
}
