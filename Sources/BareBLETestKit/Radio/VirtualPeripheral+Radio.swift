internal import BLECore
internal import BLELinux

// What a virtual radio does to its peripherals.

extension VirtualPeripheral {
    /// Takes one end of a link that a virtual radio has made.
    package func connect(
        over descriptor: Int32, hangingUp: @Sendable @escaping () -> Void, clientGone: @Sendable @escaping () -> Void
    ) {
        self.hangingUp = hangingUp
        self.clientGone = clientGone
        begin(PeerLink(adopting: descriptor, on: loop))
    }

    /// The radio ended the link.
    package func connectionLost() {
        hangingUp = nil
        clientGone = nil
        disconnect()
    }

    /// The radio ended the link that `restart` forgot.
    package func forgottenConnectionLost() {
        forgottenLink?.close()
        forgottenLink = nil
    }

    /// Lets nothing cross the link, because the peripheral is out of reach, or lets it cross again.
    package func hold(_ isHeld: Bool) {
        if isHeld { link?.hold() } else { link?.release() }
    }

    /// Forgets everything but what it is, as when its battery is taken out: the link is not ended but dead.
    package func restart() {
        hangingUp = nil
        clientGone = nil
        forgottenLink?.close()
        forgottenLink = link.take()
        forgottenLink?.hold()
        for plan in plans.values { plan.timer.map(loop.cancel) }
        plans = [:]
        server.restart(device)
        record(.linkLost)
    }

    /// Calls a handler on the loop with each PDU, before a client's is answered and after the peripheral's own was sent.
    package func observe(_ handler: (@Sendable (_ isClients: Bool) -> Void)?) {
        exchanged = handler
    }
}
