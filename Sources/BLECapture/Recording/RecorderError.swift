internal import BLECore

/// A failure that prevents or ends a recording.
///
/// What was written before the failure remains readable, possibly except for the last packet.
public enum RecorderError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file could not be created; with the system's error number.
    case cannotCreate(path: String, errno: Int32)
    /// Writing to the file failed, for example because the disk is full.
    case cannotWrite(path: String, errno: Int32)
    /// The disk was too slow, so that too many bytes were queued.
    case tooSlow(waitingBytes: Int)

    /// A message that describes the failure.
    public var description: String {
        switch self {
        case .cannotCreate(let path, let errno): "the recording \(path) cannot be created [errno \(errno)]"
        case .cannotWrite(let path, let errno): "writing the recording \(path) failed [errno \(errno)]"
        case .tooSlow(let count): "the disk is too slow for the recording: \(count) bytes are queued"
        }
    }
}
