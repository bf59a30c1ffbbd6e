/// The configuration of a Channel Sounding session. No session can be started on Linux; see
/// `CBPeripheral.startChannelSoundingSession(_:)`.
open class CBChannelSoundingSessionConfiguration: NSObject, @unchecked Sendable {
    /// The role of this device in a session.
    public enum Role: Int, Sendable {
        /// This device starts the measurements.
        case initiator = 0
    }

    /// The role of this device.
    public let role: Role

    /// Creates a configuration.
    public init(role: Role) {
        self.role = role
    }
}

/// The results of a Channel Sounding procedure; there are none on Linux.
open class CBChannelSoundingProcedureResults: NSObject, @unchecked Sendable {
    /// The distance to the device, in metres.
    public let distance: Double

    init(distance: Double) {
        self.distance = distance
    }
}
