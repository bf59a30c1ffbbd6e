/// The state of a link that another program needs to resume it, beyond what the descriptor itself reveals.
///
/// `bytes` is a form to hand over. Its times are on the machine's boot-time clock, so it is of use to any program on
/// the same machine, for as long as the link lives.
package struct LinkState: Hashable, Sendable {
    /// A value that the peer sends in notifications or indications.
    package struct Subscription: Hashable, Sendable {
        package var valueHandle: AttributeHandle
        package var configuration: GATTDescriptor
        package var kind: Subscriptions.Kind
        /// The UUID of the characteristic, if known.
        package var uuid: BluetoothUUID?
        /// A Boolean value that indicates whether the application subscribed to it.
        package var isWanted: Bool
        /// A Boolean value that indicates whether the library itself subscribed to it: it is Service Changed.
        package var isOwn: Bool

        package init(
            valueHandle: AttributeHandle, configuration: GATTDescriptor, kind: Subscriptions.Kind,
            uuid: BluetoothUUID?, isWanted: Bool, isOwn: Bool
        ) {
            self.valueHandle = valueHandle
            self.configuration = configuration
            self.kind = kind
            self.uuid = uuid
            self.isWanted = isWanted
            self.isOwn = isOwn
        }
    }

    /// The peer's address; `nil` for a link without a radio.
    package var peer: PeerID?
    /// The link's name in messages.
    package var name: String
    /// The state of the protocol.
    package var client = GATTClient.Remains()
    /// The values that are switched on, by handle.
    package var subscriptions: [Subscription] = []
    /// The known services of the peer, if all of them are up to date.
    package var cache: GATTCache?

    package init(peer: PeerID?, name: String) {
        self.peer = peer
        self.name = name
    }
}
