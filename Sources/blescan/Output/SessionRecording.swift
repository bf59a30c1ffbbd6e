import BLELinux
import BareBLE
import BareBLETestKit
import Glibc

/// The file of `--record`, while a command runs.
///
/// Each packet is in the file as soon as it has crossed the link, so whatever ends the program leaves a file that can be read. A disk
/// that is full ends the recording, not the command: that is said once, and the program ends with the status of it.
struct SessionRecording {
    private static let broken = Lock(false)

    /// Whether a recording of this program has ended before its time.
    static var isBroken: Bool { broken.withLock { $0 } }

    /// What a btsnoop file begins with, and consists of as long as there was no packet.
    private static let headerLength = 16

    private let recorder: Recorder

    /// Runs `body` with the file that is wanted, if one is, and leaves it whole.
    static func during<Value: Sendable>(
        _ options: RecordingOptions, _ body: (SessionRecording?) async throws -> Value
    ) async throws -> Value {
        let recording = try options.record.map { try SessionRecording($0) }
        do {
            let value = try await body(recording)
            await recording?.finish()
            return value
        } catch {
            // A file without packets would only be in the way of the next attempt.
            await recording?.finish(removingEmpty: true)
            throw error
        }
    }

    /// Makes the file at `path`, which must not be there.
    private init(_ path: String) throws(Failure) {
        do throws(RecorderError) {
            recorder = try Recorder(btsnoop: path, dialogue: nil, isReplacing: false) { failure in
                Self.broken.withLock { $0 = true }
                let rest = Self.isEmpty(path) ? "Nothing was recorded." : "What is in it can be read."
                Console.warn(Self.failure(failure, rest).message)
            }
        } catch {
            throw Self.failure(error, "Nothing was recorded, and nothing was sent.")
        }
    }

    /// Has centrals that are made with `configuration` recorded.
    func attach(to configuration: inout Configuration) {
        recorder.attach(to: &configuration)
    }

    /// Returns when the file is whole.
    private func finish(removingEmpty: Bool = false) async {
        // A failure has been told when it came.
        try? await recorder.finish(removingEmpty: removingEmpty)
    }

    /// Whether no packet is there to be read; a device keeps none.
    private static func isEmpty(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) != 0 || status.st_size <= headerLength
    }

    /// What is told of `error`, with `rest` about what was recorded before.
    private static func failure(_ error: RecorderError, _ rest: String) -> Failure {
        switch error {
        case .cannotCreate(let path, EEXIST):
            Failure(
                message:
                    "\(path) is there already, and --record replaces nothing. Name another file, or remove it first.",
                status: .usage)
        case .cannotCreate(let path, let errno):
            Failure(cannot: "create", path, for: .writing, errno: errno)
        case .cannotWrite(let path, let errno):
            Failure(
                message: "the recording \(path) ends here: \(unsafe String(cString: strerror(errno))). \(rest) "
                    + "[errno \(errno)]", status: .linkLost)
        case .tooSlow:
            Failure(message: "the recording ends here: the disk is too slow for it. \(rest)", status: .linkLost)
        }
    }
}
