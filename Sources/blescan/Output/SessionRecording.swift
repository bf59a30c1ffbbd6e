import BLELinux
import BareBLE
import BareBLETestKit
import Glibc

/// The file of `--record`, while a command runs.
///
/// Each packet is in the file as soon as it has crossed the link, so the file can be read however the program ends. A
/// full disk ends the recording, not the command: it is reported once, and determines the exit status.
struct SessionRecording {
    private static let broken = Lock(false)
    /// Whether the command is over, and the recording is completed.
    private static let isFinishing = Lock(false)

    /// Whether a recording of this program has ended early.
    static var isBroken: Bool { broken.withLock { $0 } }

    /// The length of a btsnoop file without packets.
    private static let headerLength = 16

    /// `nil` if nobody has read the pipe from the beginning.
    private let recorder: Recorder?

    /// Runs `body` with the requested file, if any, and completes that.
    ///
    /// - Parameter goesOn: Whether the command continues after the reader of a pipe has gone: what it changes on a
    ///   device is not left half done.
    static func during<Value: Sendable>(
        _ options: RecordingOptions, goesOn: Bool = false, _ body: (SessionRecording?) async throws -> Value
    ) async throws -> Value {
        let recording = try options.record.map { try SessionRecording($0, goesOn: goesOn) }
        // The recording has ended the command before it began.
        if Interrupt.status != nil { throw CancellationError() }
        do {
            let value = try await body(recording)
            await recording?.finish()
            return value
        } catch {
            // A file without packets would only prevent the next attempt.
            await recording?.finish(removingEmpty: true)
            throw error
        }
    }

    /// Creates the file at `path`, which must not exist unless it is a FIFO; `-` is standard output.
    private init(_ path: String, goesOn: Bool) throws(Failure) {
        let target = try Self.target(path)
        var made: Recorder?
        do throws(RecorderError) {
            made = try Recorder(capture: target, dialogue: nil, isReplacing: false) { failure in
                if Self.isEndOfReader(failure, of: target) {
                    // A command that is over has its own status.
                    if Self.isFinishing.withLock(\.self) { return }
                    return Self.readerHasGone(path, goesOn: goesOn)
                }
                Self.broken.withLock { $0 = true }
                let rest = path != "-" && Self.isEmpty(path) ? "Nothing was recorded." : "What is in it can be read."
                Console.warn(Self.failure(failure, rest))
            }
        } catch {
            // The first bytes are written here. A reader that has gone before them is one that goes away later.
            guard Self.isEndOfReader(error, of: target) else {
                throw Self.failure(error, "Nothing was recorded, and nothing was sent.")
            }
            Self.readerHasGone(path, goesOn: goesOn)
        }
        recorder = made
    }

    /// Returns whether the reader of a pipe has gone away.
    private static func isEndOfReader(_ error: RecorderError, of target: Recorder.Target) -> Bool {
        guard case .pipe = target, case .cannotWrite(_, EPIPE) = error else { return false }
        return true
    }

    private static func readerHasGone(_ path: String, goesOn: Bool) {
        // As for results: the reader has what it needs.
        guard goesOn else { return Interrupt.end(.done) }
        Console.warn(
            "nobody reads \(path == "-" ? "standard output" : path) any more: the recording ends here, and the "
                + "command goes on")
    }

    private static func target(_ path: String) throws(Failure) -> Recorder.Target {
        if path == "-" {
            guard let descriptor = Console.takeStandardOutput() else {
                throw Failure(cannot: "write", "standard output", for: .writing, errno: errno)
            }
            return .pipe(PipeWriter(adopting: descriptor), "standard output")
        }
        do throws(SystemCallError) {
            let fifo = try PipeWriter.fifo(path) { Console.note("blescan: waiting until somebody reads \(path)") }
            return fifo.map { .pipe($0, path) } ?? .file(path)
        } catch {
            throw Failure(cannot: "open", path, for: .writing, errno: error.errno)
        }
    }

    /// Records the links of centrals that are made with `configuration`.
    func attach(to configuration: inout Configuration) {
        recorder?.attach(to: &configuration)
    }

    /// Returns when the file is complete.
    private func finish(removingEmpty: Bool = false) async {
        Self.isFinishing.withLock { $0 = true }
        // A failure was reported when it occurred.
        try? await recorder?.finish(removingEmpty: removingEmpty)
    }

    /// Returns whether there is no packet to read; a device stores none.
    private static func isEmpty(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) != 0 || status.st_size <= headerLength
    }

    /// Returns the message for `error`, with `rest` about what was recorded before.
    private static func failure(_ error: RecorderError, _ rest: String) -> Failure {
        switch error {
        case .cannotCreate(let path, EEXIST) where SystemFiles.isFolder(path):
            Failure(
                message: "\(path) is a directory", hint: "Name a new file, such as one in it.", status: .usage)
        case .cannotCreate(let path, EEXIST):
            Failure(
                message: "\(path) already exists, and --record never overwrites",
                hint: "Name another file, or remove this one.", status: .usage)
        case .cannotCreate(let path, let errno):
            Failure(cannot: "create", path, for: .writing, errno: errno)
        case .cannotWrite(let path, let errno):
            Failure(
                notWritten:
                    "the recording \(path) ends here: \(unsafe String(cString: strerror(errno))) [errno \(errno)]",
                hint: rest)
        case .tooSlow:
            Failure(
                notWritten: "the recording ends here: the disk, or the reader, is too slow for it", hint: rest)
        }
    }
}
