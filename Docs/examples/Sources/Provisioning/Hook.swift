public import BareBLE
import Glibc

/// A program that does what a daemon leaves to the system.
///
/// It has nothing of this process but its standard output and error, the folder of its state in `STATE_DIRECTORY`, and
/// the lines that it is given on its standard input. What is secret belongs there: other users see arguments.
public struct Hook: Sendable {
    private let path: String
    private let limit: Duration
    private let clock: CentralClock

    /// Names the program, and how long it may run.
    public init(_ path: String, limit: Duration = .seconds(60), clock: CentralClock) {
        self.path = path
        self.limit = limit
        self.clock = clock
    }

    /// Runs the program to its end. One that takes too long, or whose caller is cancelled, is killed with its children.
    ///
    /// - Returns: The exit status; 128 and the signal for one that was killed.
    /// - Throws: `HookError` if it cannot be started.
    public func run(_ lines: [String]) async throws -> Int32 {
        let child = try start(lines)
        let end = clock.now + limit
        var status: Int32 = 0
        while waitpid(child, &status, WNOHANG) == 0 {
            let isCancelled = (try? await clock.sleep(for: .milliseconds(20))) == nil
            guard isCancelled || clock.now > end else { continue }
            kill(-child, SIGKILL)
            waitpid(child, &status, 0)
            break
        }
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }

    private func start(_ lines: [String]) throws(HookError) -> pid_t {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw HookError(path, errno) }
        defer { for end in ends { close(end) } }
        // A socket has room for far more, so this does not wait for the program.
        let input = Array(lines.map { $0 + "\n" }.joined().utf8)
        guard write(ends[1], input, input.count) == input.count else { throw HookError(path, errno) }
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
        // A group of its own, so that its children can be killed with it.
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        let environment = ["PATH", "STATE_DIRECTORY"].compactMap { (name: String) in
            getenv(name).map { "\(name)=\(String(cString: $0))" }
        }
        let texts = ([path] + environment).map { (text: String) in strdup(text) }
        defer { for text in texts { free(text) } }
        var child: pid_t = 0
        let result = posix_spawn(
            &child, path, &actions, &attributes, [texts[0], nil], Array(texts.dropFirst()) + [nil])
        guard result == 0 else { throw HookError(path, result) }
        return child
    }
}

/// A program that could not be started.
public struct HookError: Error, CustomStringConvertible {
    /// The program.
    public let path: String
    /// The kernel's error number.
    public let errorNumber: Int32

    init(_ path: String, _ errorNumber: Int32) {
        self.path = path
        self.errorNumber = errorNumber
    }

    /// What failed, and why.
    public var description: String { "could not start \(path): \(String(cString: strerror(errorNumber)))" }
}
