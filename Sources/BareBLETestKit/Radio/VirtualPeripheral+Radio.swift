internal import BLECore
internal import BLELinux

// Actions of a virtual radio on its peripherals.

extension VirtualPeripheral {
    /// Adopts one end of a link that a virtual radio has established.
    package func connect(
        over descriptor: Int32, hangingUp: @Sendable @escaping () -> Void, clientGone: @Sendable @escaping () -> Void
    ) {
        self.hangingUp = hangingUp
        self.clientGone = clientGone
        begin(PeerLink(adopting: descriptor, on: loop))
    }

    /// Handles the end of the link by the radio.
    package func connectionLost() {
        hangingUp = nil
        clientGone = nil
        disconnect()
        // A link without a socket may have been encrypted as well.
        endSecurity()
        renewServer()
    }

    /// Handles the end, by the radio, of the link that `restart` forgot.
    package func forgottenConnectionLost() {
        forgottenLink?.close()
        forgottenLink = nil
    }

    /// Suspends the link because the peripheral is out of range, or resumes it.
    package func hold(_ isHeld: Bool) {
        if isHeld { link?.hold() } else { link?.release() }
    }

    /// Loses all state but the description, as without a battery: the link is dead but not disconnected.
    package func restart() {
        hangingUp = nil
        clientGone = nil
        forgottenLink?.close()
        forgottenLink = link.take()
        forgottenLink?.hold()
        for plan in plans.values { plan.timer.map(loop.cancel) }
        plans = [:]
        endSecurity()
        server.restart(device)
        renewServer()
        record(.linkLost)
    }

    /// Calls a handler on the loop with each PDU: before the response to a client's, and after the peripheral's own was
    /// sent.
    package func observe(_ handler: (@Sendable (_ isClients: Bool) -> Void)?) {
        exchanged = handler
    }
}
