package import BLECore
package import BLELinux

/// The operations on a link that only the adapter can perform, because they require HCI commands.
///
/// A link over a Unix socket or a descriptor has none.
package struct LinkControls: Sendable {
    /// The link, as the adapter knows it.
    let link: LinkIdentity
    /// The controller's number for the link; `nil` for a stand-in. Numbers are used again after the end of a link.
    package var handle: ConnectionHandle? { link.handle }
    /// Reads the peer's signal strength from the controller, in dBm.
    package let rssi: @Sendable () async throws(BLEError) -> Int
    /// The connection parameters that the controller reported last.
    package let parameters: @Sendable () async throws(BLEError) -> ConnectionParameters
    /// Requests other connection parameters, with a timeout; returns those in effect then.
    package let requestParameters:
        @Sendable (ConnectionParameters, Duration) async throws(BLEError) -> ConnectionParameters
    /// Reads from the controller the PHYs that the link uses.
    package let phy: @Sendable () async throws(BLEError) -> Peripheral.LinkPHY
    /// Sets the PHYs that the link may send and receive on, with a timeout; returns those in use then.
    package let requestPHY: @Sendable (LEPHYs, LEPHYs, Duration) async throws(BLEError) -> Peripheral.LinkPHY
    /// Ends the link at the controller; closing the socket alone leaves it up for two more seconds.
    package let disconnect: @Sendable () async -> Void
    /// The reason that the controller reported for the end of the link, if it has reported it already.
    package let lastReason: @Sendable () async -> HCIStatus?
    /// Opens an L2CAP channel on the link.
    package let openChannel: @Sendable (ChannelRequest) async throws(BLEError) -> LinkSocket
    /// Has a handler called, on the loop, when the controller is known to have lost the link, with what it reports of
    /// the link; `nil` after a reset. Nothing else may report that.
    package let watchLoss: @Sendable (@escaping @Sendable (HCIStatus?) -> Void) -> Void
    /// Has a handler called, on the loop, when the encryption of the link changes, with whether it is encrypted.
    let watchEncryption: @Sendable (@escaping @Sendable (Bool) -> Void) -> Void
    /// When the controller's report arrived that the link is encrypted; `nil` if it is not, or that is not known. To be
    /// called on the loop.
    let encryptionBeginning: @Sendable () -> ArrivalTime?
    /// Reads what the controller has reported, so that it is not known later than what the socket has received. To be
    /// called on the loop.
    let readEvents: @Sendable () -> Void
    /// Returns a Boolean value that indicates whether the controller still has the link, as the kernel reports it.
    package let isUp: @Sendable () async -> Bool
    /// What may keep the adapter from passing data on, as a hint for links on which nothing comes. To be called on the
    /// loop.
    let silenceHint: @Sendable () -> String
    /// What the kernel's parameters do to a link that it has made with them, as a hint for its end by the supervision
    /// timeout; `nil` for any other link.
    let supervisionHint: String?
    /// The security of the link, by the descriptor of its socket. To be called on the loop.
    let security: @Sendable (Int32) -> LinkSecurity
    /// The bond with the peer, if there is one that is used on the link. To be called on the loop.
    let bond: @Sendable () -> BondID?
    /// Records that the key of the bond has encrypted the link. To be called on the loop.
    let recordEncryption: @Sendable () -> Void
    /// Whether there is a bond with the peer, also where it is not used on the link. To be called on the loop.
    let isPeerBonded: @Sendable () -> Bool
    /// Why bonds could not be read, if some could not: the peer may have had one. To be called on the loop.
    let bondDamage: @Sendable () -> BLEError?
    /// Returns the error for an operation that needs a bond with the peer where none is used on the link, by the names
    /// of the peer and of the operation. To be called on the loop.
    let missingBond: @Sendable (String, String) -> BLEError
    /// Returns why the link may not be taken for one to a stranger by a call with this demand, by the name of the
    /// operation; `nil` if it may. To be called on the loop.
    let strangerError: @Sendable (ConnectOptions.SecurityDemand, String) -> BLEError?
    /// Makes sure that a write can be signed with the key of the bond, by codes that the closure computes.
    let prepareSignature: @Sendable (String, @escaping BondSigners.Code) async throws(BLEError) -> Void
    /// Signs a write, if that is prepared. To be called on the loop.
    let sign: @Sendable ([UInt8], AttributeHandle) -> BondSigners.Outcome
    /// Returns whether a signed write of the peer, which is the central, is to be executed,
    /// by codes that the closure computes.
    let accept: @Sendable (ATTSignedWriteCommand, BondSigners.Code?) async -> Bool
    /// Has the kernel send a Security Request to the peer, which is the central; it waits for the kernel and the disk,
    /// until the deadline at most.
    let requestSecurity: @Sendable (PairingOptions.RequiredSecurity, CallContext) async throws(BLEError) -> Void
    /// Whether the peer, which is the central, pairs. To be called on the loop.
    let isPairing: @Sendable () -> Bool
    /// Whether this side pairs with the peer on a link that was not encrypted before: it may be encrypted with a key
    /// that is not that of the bond. To be called on the loop.
    let isBeingPaired: @Sendable () -> Bool
    /// Pairs with the peer; with the descriptor of the link's socket.
    package let pair: @Sendable (Int32, PairingOptions) async throws(BLEError) -> Bond
}
