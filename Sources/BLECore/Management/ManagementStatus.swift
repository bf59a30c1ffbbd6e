/// The status of a management command: one byte, where 0 is success.
///
/// Codes that later kernels add are preserved; `description` then shows the number.
///
/// Spec: Bluetooth Management API, Error Codes.
package struct ManagementStatus: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The interface's name and the number, such as `Not Powered (0x0F)`.
    package var description: String {
        "\(name ?? "status") (0x\(Hex.encode([rawValue])))"
    }

    private var name: String? {
        switch self {
        case .success: "Success"
        case .unknownCommand: "Unknown Command"
        case .notConnected: "Not Connected"
        case .failed: "Failed"
        case .connectFailed: "Connect Failed"
        case .authenticationFailed: "Authentication Failed"
        case .notPaired: "Not Paired"
        case .noResources: "No Resources"
        case .timeout: "Timeout"
        case .alreadyConnected: "Already Connected"
        case .busy: "Busy"
        case .rejected: "Rejected"
        case .notSupported: "Not Supported"
        case .invalidParameters: "Invalid Parameters"
        case .disconnected: "Disconnected"
        case .notPowered: "Not Powered"
        case .cancelled: "Cancelled"
        case .invalidIndex: "Invalid Index"
        case .blocked: "RFKilled"
        case .alreadyPaired: "Already Paired"
        case .permissionDenied: "Permission Denied"
        default: nil
        }
    }

    /// Success.
    package static let success = ManagementStatus(rawValue: 0x00)
    /// The kernel does not know the command.
    package static let unknownCommand = ManagementStatus(rawValue: 0x01)
    /// The peer is not connected.
    package static let notConnected = ManagementStatus(rawValue: 0x02)
    /// The command failed for a reason without a code.
    package static let failed = ManagementStatus(rawValue: 0x03)
    /// The connection could not be made.
    package static let connectFailed = ManagementStatus(rawValue: 0x04)
    /// Pairing failed or was refused.
    package static let authenticationFailed = ManagementStatus(rawValue: 0x05)
    /// There is no key for the peer.
    package static let notPaired = ManagementStatus(rawValue: 0x06)
    /// The kernel is out of memory, or a list is full.
    package static let noResources = ManagementStatus(rawValue: 0x07)
    /// The controller or the peer did not respond in time.
    package static let timeout = ManagementStatus(rawValue: 0x08)
    /// The peer is already connected.
    package static let alreadyConnected = ManagementStatus(rawValue: 0x09)
    /// The same operation is already in progress.
    package static let busy = ManagementStatus(rawValue: 0x0A)
    /// The operation is not possible in this state of the adapter.
    package static let rejected = ManagementStatus(rawValue: 0x0B)
    /// The adapter does not support the operation.
    package static let notSupported = ManagementStatus(rawValue: 0x0C)
    /// The parameters have the wrong length, or a value that is not allowed.
    package static let invalidParameters = ManagementStatus(rawValue: 0x0D)
    /// The link was lost.
    package static let disconnected = ManagementStatus(rawValue: 0x0E)
    /// The adapter is powered off.
    package static let notPowered = ManagementStatus(rawValue: 0x0F)
    /// The command was cancelled.
    package static let cancelled = ManagementStatus(rawValue: 0x10)
    /// There is no adapter with this index, or another program uses it exclusively.
    package static let invalidIndex = ManagementStatus(rawValue: 0x11)
    /// The adapter is blocked by rfkill.
    package static let blocked = ManagementStatus(rawValue: 0x12)
    /// There is already a key for the peer.
    package static let alreadyPaired = ManagementStatus(rawValue: 0x13)
    /// The process lacks the permission: most commands require CAP_NET_ADMIN.
    package static let permissionDenied = ManagementStatus(rawValue: 0x14)
}
