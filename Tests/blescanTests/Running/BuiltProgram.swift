import BLELinux
import Foundation
import TestSupport

/// The built `blescan`, run as a process of its own, as users run it.
enum BuiltProgram {
    /// The program is in the build's folder, next to the test bundle; `BAREBLE_BLESCAN` names another one.
    static let url: URL = {
        if let path = ProcessInfo.processInfo.environment["BAREBLE_BLESCAN"] { return URL(filePath: path) }
        return BuiltPrograms.url("blescan")
    }()

    /// Runs it to its end.
    static func run(
        _ arguments: [String], input: String = "", output: Sink = .collected, environment: [String: String] = [:]
    ) async throws -> Outcome {
        try await RunningProgram(arguments, input: input, output: output, environment: environment).outcome()
    }
}

/// The destination of standard output.
enum Sink {
    case collected
    /// A pipe without a reader.
    case closedPipe
    case file(String)
    case terminal(PseudoTerminal)
}

/// The result of a finished program.
struct Outcome: Sendable {
    let status: Int32
    let output: String
    let errors: String

    /// The lines of standard output, each of which must be one JSON object.
    func objects() throws -> [[String: Any]] {
        try output.split(separator: "\n").map { line in
            let value = try JSONSerialization.jsonObject(with: Data(line.utf8))
            guard let object = value as? [String: Any] else { throw CocoaError(.coderReadCorrupt) }
            return object
        }
    }
}

/// A program that runs in parallel with the test. Its output is collected, and can be waited for.
final class RunningProgram: Sendable {
    private struct State {
        var output = Data()
        var errors = Data()
        var openPipes = 2
        var status: Int32?
    }

    /// A program that was built with a sanitizer needs the sanitizer's options of these tests.
    static let sanitizing = ProcessInfo.processInfo.environment
        .filter { ["ASAN_OPTIONS", "TSAN_OPTIONS"].contains($0.key) }

    private let state = Lock(State())
    private let arguments: [String]
    let processID: pid_t

    init(
        _ arguments: [String], of executable: URL = BuiltProgram.url, input: String = "",
        output sink: Sink = .collected, errors terminal: PseudoTerminal? = nil,
        keyboard: PseudoTerminal? = nil, environment: [String: String] = [:]
    ) throws {
        self.arguments = arguments
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.environment = ["PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm", "TZ": "UTC0"]
            .merging(Self.sanitizing) { $1 }.merging(environment) { $1 }
        let (standardInput, output, errors) = (Pipe(), Pipe(), Pipe())
        process.standardInput = keyboard.map { $0.side } ?? standardInput
        switch sink {
        case .collected: process.standardOutput = output
        case .closedPipe:
            process.standardOutput = output
            try output.fileHandleForReading.close()
        case .file(let path):
            process.standardOutput = FileHandle(forWritingAtPath: path)
        case .terminal(let terminal):
            process.standardOutput = terminal.side
        }
        process.standardError = terminal.map { $0.side } ?? errors
        // Not `waitUntilExit`: in a thread whose run loop has nothing to do, that spins.
        process.terminationHandler = { [state] process in
            // The shell's status for a signal.
            let status =
                process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
            state.withLock { $0.status = status }
        }
        try process.run()
        processID = process.processIdentifier
        if case .collected = sink {
            Self.inThread { [self] in collect(output.fileHandleForReading, into: \.output) }
        } else {
            state.withLock { $0.openPipes -= 1 }
        }
        if terminal == nil {
            Self.inThread { [self] in collect(errors.fileHandleForReading, into: \.errors) }
        } else {
            state.withLock { $0.openPipes -= 1 }
        }
        Self.inThread {
            try? standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
            try? standardInput.fileHandleForWriting.close()
        }
    }

    /// Waits until standard output holds `text`.
    func printed(_ text: String) async throws {
        try await until("`\(text)` is printed") { String(decoding: $0.output, as: UTF8.self).contains(text) }
    }

    /// Sends a signal, such as that of ^C.
    func signal(_ number: Int32) {
        kill(processID, number)
    }

    /// Waits for the end.
    func outcome() async throws -> Outcome {
        try await until("the program ends") { $0.status != nil && $0.openPipes == 0 }
        return state.withLock { state in
            Outcome(
                status: state.status ?? -1, output: String(decoding: state.output, as: UTF8.self),
                errors: String(decoding: state.errors, as: UTF8.self))
        }
    }

    private func until(_ what: String, _ condition: (borrowing State) -> Bool) async throws {
        do {
            try await waited(for: what) { state.withLock { condition($0) } }
        } catch {
            kill(processID, SIGKILL)
            let seen = state.withLock { String(decoding: $0.output + $0.errors, as: UTF8.self) }
            throw WaitTimeout(what: "\(error.what): \(arguments); so far it has printed: \(seen)")
        }
    }

    private func collect(_ handle: FileHandle, into place: any WritableKeyPath<State, Data> & Sendable) {
        while case let data = handle.availableData, !data.isEmpty {
            state.withLock { $0[keyPath: place].append(data) }
        }
        // The thread's run loop never runs, and keeps the `Process` with its pipes for good. With some 1,350
        // descriptors open, `Process.run` of Foundation 6.3 reads beyond the end of the list of them.
        try? handle.close()
        state.withLock { $0.openPipes -= 1 }
    }

    private static func inThread(_ body: @Sendable @escaping () -> Void) {
        Thread(block: body).start()
    }
}

/// A condition that did not become true in time.
struct WaitTimeout: Error, CustomStringConvertible {
    let what: String
    var description: String { "the time was over before \(what)" }
}

/// Waits until `condition` holds, checking every few milliseconds; the limit is far longer than any expected time.
func waited(for what: String, _ condition: () -> Bool) async throws(WaitTimeout) {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(300)
    while !condition() {
        if clock.now > end { throw WaitTimeout(what: what) }
        try? await Task.sleep(for: .milliseconds(5))
    }
}
