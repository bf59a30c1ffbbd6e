import Glibc

/// A built example, run as a process of its own, as a service manager runs it.
final class BuiltProgram: Sendable {
    private let processID: pid_t
    private let output: String

    /// Starts it; its standard output goes to a file.
    init(_ name: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        output = "/tmp/bareble-example-\(name)-\(UInt32.random(in: 0 ... .max)).out"
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_CREAT | O_WRONLY | O_TRUNC, 0o600)
        var processID: pid_t = 0
        let path = Self.path(of: name)
        let status = Self.withPointers([path] + arguments) { arguments in
            Self.withPointers(environment.map { "\($0)=\($1)" }) { environment in
                posix_spawn(&processID, path, &actions, nil, arguments, environment)
            }
        }
        guard status == 0 else { throw WaitTimeout(what: "\(path) starts", seen: [String(cString: strerror(status))]) }
        self.processID = processID
    }

    deinit { unlink(output) }

    /// Beside the bundle of tests, where the build has put it.
    private static func path(of name: String) -> String {
        let places = CommandLine.arguments.filter { $0.hasSuffix(".xctest") } + CommandLine.arguments.prefix(1)
        let candidates = places.map { place in
            place.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/" + name
        }
        return candidates.first { access($0, X_OK) == 0 } ?? name
    }

    /// What it has printed so far.
    var lines: [String] {
        let file = open(output, O_RDONLY)
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = max(0, read(file, &bytes, bytes.count))
        return String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Waits until it has printed so many lines that begin like this.
    func printed(_ beginning: String, count: Int = 1) async throws {
        try await waited(for: "\(count) lines begin with `\(beginning)`", seen: { lines }) {
            lines.count { $0.hasPrefix(beginning) } >= count
        }
    }

    /// Asks it to stop, as `systemctl stop` does.
    func stop() {
        kill(processID, SIGTERM)
    }

    /// Waits for the end.
    ///
    /// - Returns: The exit status; 128 and the signal for one that was killed.
    func status() async throws -> Int32 {
        var status: Int32 = 0
        do {
            try await waited(for: "the program ends", seen: { lines }) { waitpid(processID, &status, WNOHANG) != 0 }
        } catch {
            kill(processID, SIGKILL)
            throw error
        }
        return status & 0x7F == 0 ? status >> 8 : 128 + status & 0x7F
    }

    private static func withPointers<Result>(
        _ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let pointers = texts.map { strdup($0) }
        defer { pointers.forEach { free($0) } }
        return body(pointers + [nil])
    }
}
