/// A failure to reach a peer of the test kit.
public enum TestLinkError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system has no sockets left; with its error number.
    case noSocketPair(errno: Int32)
    /// The peer is already connected and has one link at a time.
    case connectedAlready
    /// The device has no characteristic with this UUID.
    case noSuchCharacteristic(String)

    /// A message that describes the failure.
    public var description: String {
        switch self {
        case .noSocketPair(let errno): "the system gave no pair of sockets [errno \(errno)]"
        case .connectedAlready: "this peer is connected already"
        case .noSuchCharacteristic(let uuid): "the device has no characteristic \(uuid)"
        }
    }
}
