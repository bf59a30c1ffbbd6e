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

    private let path: String
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
            await recording?.finish()
            // It would only be in the way of the next attempt.
            recording?.removeIfEmpty()
            throw error
        }
    }

    /// Makes the file at `path`, which must not be there.
    private init(_ path: String) throws(Failure) {
        self.path = path
        do throws(RecorderError) {
            recorder = try Recorder(btsnoop: path, dialogue: nil, isReplacing: false) { failure in
                Self.broken.withLock { $0 = true }
                let rest = Self.isEmpty(path) ? "Nothing was recorded." : "What is in it can be read."
                Console.warn(Self.text(failure, rest))
            }
        } catch {
            if case .cannotWrite = error { Self.remove(path) }
            throw Failure(
                message: Self.text(error, "Nothing was recorded, and nothing was sent."), status: Self.status(error))
        }
    }

    /// Has centrals that are made with `configuration` recorded.
    func attach(to configuration: inout Configuration) {
        recorder.attach(to: &configuration)
    }

    /// Returns when the file is whole.
    private func finish() async {
        // A failure has been told when it came.
        try? await recorder.finish()
    }

    /// Removes a file that has no packets: this program has made it.
    private func removeIfEmpty() {
        if Self.isEmpty(path) { Self.remove(path) }
    }

    /// Whether no packet is there to be read; a device keeps none.
    private static func isEmpty(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) != 0 || status.st_size <= headerLength
    }

    private static func remove(_ path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
        _ = unsafe unlink(path)
    }

    /// What is told of `error`, with `rest` about what was recorded before.
    private static func text(_ error: RecorderError, _ rest: String) -> String {
        switch error {
        case .cannotCreate(let path, EEXIST):
            "\(path) is there already, and --record replaces nothing. Name another file, or remove it first."
        case .cannotCreate(let path, EACCES) where Privileges.Caller.ofSudo != nil:
            "cannot create \(path): \(reason(EACCES)). Under sudo it would belong to the user who called it: name a file "
                + "where that user may write."
        case .cannotCreate(let path, let errno): "cannot create \(path): \(reason(errno)). Check the path."
        case .cannotWrite(let path, let errno):
            "the recording \(path) ends here: \(reason(errno)). \(rest) [errno \(errno)]"
        case .tooSlow: "the recording ends here: the disk is too slow for it. \(rest)"
        }
    }

    private static func reason(_ errno: Int32) -> String {
        unsafe String(cString: strerror(errno))
    }

    private static func status(_ error: RecorderError) -> ExitStatus {
        switch error {
        case .cannotCreate: .usage
        case .cannotWrite, .tooSlow: .linkLost
        }
    }
}
