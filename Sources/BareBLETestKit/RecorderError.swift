/// Why a session is not recorded, or not any further.
///
/// What was written before the failure can be read, apart from the last packet perhaps.
public enum RecorderError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file could not be made; the number of the system's error.
    case cannotCreate(path: String, errno: Int32)
    /// The file could not be written any further, for example because the disk is full.
    case cannotWrite(path: String, errno: Int32)
    /// The disk was so slow that too many packets waited for it.
    case tooSlow(waitingBytes: Int)

    /// A sentence about it.
    public var description: String {
        switch self {
        case .cannotCreate(let path, let errno): "the recording \(path) cannot be made [errno \(errno)]"
        case .cannotWrite(let path, let errno): "the recording \(path) cannot be written any further [errno \(errno)]"
        case .tooSlow(let count): "the disk is too slow for the recording: \(count) bytes wait for it"
        }
    }
}
