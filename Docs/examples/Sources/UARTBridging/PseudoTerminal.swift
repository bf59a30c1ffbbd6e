import Dispatch
import Glibc

/// A pseudo-terminal: programs open `path`, or the symbolic link to it, as a serial port; this side reads what they
/// write, and writes what they read.
///
/// It is raw: no byte is changed, echoed or interpreted as a signal. Bytes wait in the kernel, some 4 KiB each way.
public final class PseudoTerminal: Sendable {
    /// The terminal's own name, such as `/dev/pts/7`.
    public let path: String
    private let link: String
    private let master: Int32
    /// Held open here too: otherwise reads would fail whenever the last program closes the terminal.
    private let terminal: Int32
    /// A pipe; a byte in it ends every wait for good.
    private let stop: (reading: Int32, writing: Int32)

    /// Opens a terminal, and creates a symbolic link to it. An existing link is replaced, a file is not.
    ///
    /// - Throws: `TerminalError`.
    public init(linkedAt link: String) throws(TerminalError) {
        var (master, terminal): (Int32, Int32) = (-1, -1)
        var raw = termios()
        cfmakeraw(&raw)
        guard openpty(&master, &terminal, nil, &raw, nil) == 0 else { throw TerminalError("open a pseudo-terminal") }
        var name = [CChar](repeating: 0, count: 128)
        var pipes: [Int32] = [-1, -1]
        guard ttyname_r(terminal, &name, name.count) == 0, pipe(&pipes) == 0,
            fcntl(master, F_SETFL, O_NONBLOCK) == 0
        else {
            throw TerminalError("set up a pseudo-terminal")
        }
        path = Self.text(name.prefix { $0 != 0 })
        self.link = link
        self.master = master
        self.terminal = terminal
        stop = (pipes[0], pipes[1])
        if Self.target(of: link) != nil { unlink(link) }
        guard symlink(path, link) == 0 else { throw TerminalError("link \(link)") }
    }

    deinit {
        for descriptor in [master, terminal, stop.reading, stop.writing] { close(descriptor) }
    }

    /// Removes the symbolic link, unless it has been replaced.
    public func removeLink() {
        if Self.target(of: link) == path { unlink(link) }
    }

    /// Waits for bytes, and returns those that have arrived.
    ///
    /// - Throws: `TerminalError`; `CancellationError` when a task that waits here, for reading or writing, is
    ///   cancelled.
    public func read(upTo length: Int) async throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: length)
        while true {
            let count = Glibc.read(master, &bytes, length)
            if count > 0 { return Array(bytes.prefix(count)) }
            guard count < 0, errno == EAGAIN else { throw TerminalError("read the terminal") }
            try await wait(until: POLLIN)
        }
    }

    /// Writes all of the bytes, and waits while the terminal's buffer is full.
    ///
    /// - Throws: `TerminalError`; `CancellationError` as `read(upTo:)` does.
    public func write(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(master, $0.baseAddress, $0.count) }
            if count > 0 {
                rest.removeFirst(count)
            } else if count < 0, errno == EAGAIN {
                try await wait(until: POLLOUT)
            } else {
                throw TerminalError("write to the terminal")
            }
        }
    }

    private func wait(until event: Int32) async throws {
        let (master, stop) = (master, stop)
        let isStopped = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // This runs on a thread that may block: neither one of Swift's own nor the one of the links.
                DispatchQueue.global().async {
                    var files = [
                        pollfd(fd: master, events: Int16(event), revents: 0),
                        pollfd(fd: stop.reading, events: Int16(POLLIN), revents: 0),
                    ]
                    poll(&files, 2, -1)
                    continuation.resume(returning: files[1].revents != 0)
                }
            }
        } onCancel: {
            _ = Glibc.write(stop.writing, [1 as UInt8], 1)
        }
        if isStopped { throw CancellationError() }
    }

    private static func target(of link: String) -> String? {
        var characters = [CChar](repeating: 0, count: 4096)
        let count = readlink(link, &characters, characters.count)
        return count < 0 ? nil : text(characters.prefix(count))
    }

    private static func text(_ characters: ArraySlice<CChar>) -> String {
        String(decoding: characters.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// A failed system call.
public struct TerminalError: Error, CustomStringConvertible {
    /// The operation that failed.
    public let operation: String
    /// The kernel's error number.
    public let errorNumber: Int32

    init(_ operation: String) {
        self.operation = operation
        errorNumber = errno
    }

    /// The operation and the reason in one sentence.
    public var description: String { "could not \(operation): \(String(cString: strerror(errorNumber)))" }
}
