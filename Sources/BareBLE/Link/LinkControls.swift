package import BLECore
package import BLELinux

/// What only the adapter can do for a link, because it takes commands to the controller.
///
/// A link over a Unix socket or a descriptor has none.
package struct LinkControls: Sendable {
    /// Asks the controller how well it hears the peer, in dBm.
    package let rssi: @Sendable () async throws(BLEError) -> Int
    /// How the link runs, as the controller said last.
    package let parameters: @Sendable () async throws(BLEError) -> ConnectionParameters
    /// Asks for other connection parameters, for so long; what the link has then.
    package let requestParameters:
        @Sendable (ConnectionParameters, Duration) async throws(BLEError) -> ConnectionParameters
    /// Asks the controller which PHYs the link uses.
    package let phy: @Sendable () async throws(BLEError) -> LinkPHY
    /// Says which PHYs the link may send and receive on, for so long; what it uses then.
    package let requestPHY: @Sendable (LEPHYs, LEPHYs, Duration) async throws(BLEError) -> LinkPHY
    /// Ends the link at the controller; closing the socket alone leaves it up for two more seconds.
    package let disconnect: @Sendable () async -> Void
    /// What the controller said when the link ended, if it said so already.
    package let lastReason: @Sendable () async -> HCIStatus?
    /// Opens a channel beside the link.
    package let openChannel: @Sendable (ChannelRequest) async throws(BLEError) -> LinkSocket
    /// Has a handler called, on the loop, when the controller is known to have forgotten the link, which nothing else may tell.
    package let watchLoss: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// Whether the controller still has the link, by what the kernel says.
    package let isUp: @Sendable () async -> Bool
}
