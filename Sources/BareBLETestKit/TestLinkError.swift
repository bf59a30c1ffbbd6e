/// Why a peer of the test kit could not be reached.
public enum TestLinkError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system gave no pair of sockets; the number of its error.
    case noSocketPair(errno: Int32)
    /// The peer is connected already, and has one link at a time.
    case connectedAlready
    /// The device has no characteristic of that kind.
    case noSuchCharacteristic(String)

    /// A sentence about it.
    public var description: String {
        switch self {
        case .noSocketPair(let errno): "the system gave no pair of sockets [errno \(errno)]"
        case .connectedAlready: "this peer is connected already"
        case .noSuchCharacteristic(let uuid): "the device has no characteristic \(uuid)"
        }
    }
}
