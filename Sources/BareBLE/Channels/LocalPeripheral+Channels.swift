public import BLECore
internal import BLELinux

extension LocalPeripheral {
    /// Listens for channels that centrals open beside the attributes.
    ///
    /// It accepts channels on the links that this local peripheral serves, and makes none: `acceptCentrals()` or
    /// `advertise(_:)` does. Channels of other links are closed at once. Each PSM has one listener on an adapter, of
    /// all programs.
    ///
    /// - Parameters:
    ///   - psm: The PSM, 0x0080 to 0x00FF, or one below that the Bluetooth SIG has assigned, which takes
    ///     CAP_NET_BIND_SERVICE; `nil` has the kernel choose a free one, which `ChannelListener.psm` names.
    ///   - security: What a link must have before the kernel accepts a channel on it. A central that lacks it is
    ///     refused; it may pair, and try again.
    ///   - options: The MTU, and limits.
    /// - Throws: `BLEError` with `.busy` if the PSM has a listener, or none is free; `.notPermitted` for one below
    ///   0x0080; `.invalidArgument` for one that does not exist, for impossible options, and after `stop()`;
    ///   `.notSupported`, `.noAdapter`, `.unsupported`, `.system`.
    public func listenForChannels(
        psm: UInt16? = nil, security: AccessRequirement.Level = .open,
        _ options: ChannelListener.Options = ChannelListener.Options()
    ) async throws(BLEError) -> ChannelListener {
        let operation = BLEError.listening(to: psm)
        try checkRuns(during: operation)
        try register(during: operation)
        let adapter = central.adapter
        let name = await adapter.name
        let request = try ChannelListenRequest(psm: psm, security: security, options, on: name, during: operation)
        let socket = try await adapter.listenForChannels(request, during: operation)
        // It may have been stopped meanwhile.
        try checkRuns(during: operation)
        let acceptor: ChannelAcceptor
        do throws(SystemCallError) {
            acceptor = try ChannelAcceptor(
                socket, options, on: central.loop, logger: central.configuration.logger
            ) { [weak links] handle in
                // The channel may be readable before the link that it belongs to.
                adapter.assumeIsolated { $0.acceptWaitingLinks() }
                guard let links, let link = links.link(handle: handle) else { return nil }
                return (links.snapshot(of: link), link.peripheral)
            }
        } catch {
            throw BLEError(error, listeningTo: request.psm, adapter: name, during: operation)
        }
        self.acceptor.insert(acceptor)
        return ChannelListener(acceptor, on: central.loop)
    }

    /// Takes a connected SEQPACKET descriptor, with one packet of the channel in each of its own, as a channel that a
    /// central has opened.
    ///
    /// The descriptor belongs to the channel from now on, even if the call throws. The limits of the listener apply.
    /// Tests pass one end of a socketpair.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor.
    ///   - listener: The listener that delivers the channel.
    ///   - central: The central.
    /// - Throws: `BLEError` with `.disconnected` if the central is not connected; `.queueFull` if the listener refuses
    ///   the channel; `.invalidArgument` if the listener was stopped; `.system`.
    public func attach(
        channel descriptor: Int32, to listener: ChannelListener, of central: ConnectedCentral.ID
    ) throws(BLEError) {
        let operation = "attach a channel"
        guard let link = links[central] else {
            _ = LinkSocket(adopting: descriptor)
            throw BLEError(
                .disconnected, subject: "central \(central.number)", during: operation,
                because: "the central is not connected",
                hint: "`centrals` has those that are.")
        }
        try listener.acceptor.attach(descriptor, of: (links.snapshot(of: link), link.peripheral), during: operation)
    }
}
