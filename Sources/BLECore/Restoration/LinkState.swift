/// All that must be known of a link that is up to go on with it in another program: what the descriptor itself does not tell.
///
/// It has a form to hand over, `bytes`. What it says of time is on the machine's boot-time clock, so it is of use to any program on
/// the same machine, for as long as the link lives.
package struct LinkState: Hashable, Sendable {
    /// A value that the peer sends of its own accord.
    package struct Subscription: Hashable, Sendable {
        package var valueHandle: AttributeHandle
        package var configuration: GATTDescriptor
        package var kind: Subscriptions.Kind
        /// What the value is, where it is known.
        package var uuid: BluetoothUUID?
        /// Whether the application wants it.
        package var isWanted: Bool
        /// Whether the library itself wants it: it is Service Changed.
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

    /// Who is at the other end; `nil` for a link without a radio.
    package var peer: PeerID?
    /// What messages call the link.
    package var name: String
    /// Where the protocol stands.
    package var client = GATTClient.Remains()
    /// What is switched on, by handle.
    package var subscriptions: [Subscription] = []
    /// What is known of the peer's services, if all of it is up to date.
    package var cache: GATTCache?

    package init(peer: PeerID?, name: String) {
        self.peer = peer
        self.name = name
    }
}
