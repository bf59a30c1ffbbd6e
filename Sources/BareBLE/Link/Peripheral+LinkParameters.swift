public import BLECore

extension Peripheral {
    /// Returns the present connection parameters; both bounds of the interval are the one in use.
    ///
    /// They are the latest ones that the controller reported: when the link came up, and at each change since, even
    /// one by the peer. Nothing is sent.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a link without a radio, and for one that another program has
    ///   made; `.notPermitted` without CAP_NET_RAW; `.disconnected`.
    public func connectionParameters() async throws(BLEError) -> ConnectionParameters {
        try await radio(during: "read the connection parameters").parameters()
    }

    /// Requests other connection parameters, and waits until they are in effect, which takes some of the old
    /// intervals.
    ///
    /// The controller chooses within the bounds, and may refuse. Requests of one link take turns. A request cannot be
    /// cancelled once it was sent: after a timeout or a cancellation the link may still change.
    ///
    /// - Returns: The parameters of the link now.
    /// - Throws: `BLEError` with `.refusedByPeer`, with the reason in `hciStatus`; `.invalidArgument` and `.busy` from
    ///   the controller; `.notSupported` for a link without a radio; `.notPermitted` without CAP_NET_RAW; `.timedOut`,
    ///   `.disconnected`, `.adapterDown`, `.cancelled`.
    @discardableResult
    public func requestConnectionParameters(
        _ parameters: ConnectionParameters, timeout: Duration = .seconds(10)
    ) async throws(BLEError) -> ConnectionParameters {
        try await radio(during: "change the connection parameters").requestParameters(parameters, timeout)
    }

    /// Returns the PHYs that the link uses now, as the controller reports them.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a link without a radio, and if the controller has only one PHY;
    ///   `.notPermitted` without CAP_NET_RAW; `.disconnected`.
    public func phy() async throws(BLEError) -> LinkPHY {
        try await radio(during: "read the PHY").phy()
    }

    /// Sets the PHYs that the link may use, and waits until the two controllers have chosen.
    ///
    /// An empty set stands for no preference. The result may be the link's previous PHYs, without an error. As with
    /// `requestConnectionParameters(_:timeout:)`, requests take turns and cannot be cancelled.
    ///
    /// - Parameters:
    ///   - transmit: The PHYs on which this host may send.
    ///   - receive: The PHYs on which it may receive; by default the same.
    ///   - timeout: The longest time for the controllers.
    /// - Returns: The PHYs of the link now.
    /// - Throws: `BLEError` as `requestConnectionParameters(_:timeout:)` does; `.notSupported` also if a controller
    ///   lacks the PHY.
    @discardableResult
    public func requestPHY(
        _ transmit: LEPHYs, receive: LEPHYs? = nil, timeout: Duration = .seconds(10)
    ) async throws(BLEError) -> LinkPHY {
        try await radio(during: "change the PHY").requestPHY(transmit, receive ?? transmit, timeout)
    }

    /// Returns the adapter's controls of the link.
    func radio(during operation: String) throws(BLEError) -> LinkControls {
        guard let controls else {
            throw BLEError(
                .notSupported, subject: name, during: operation, because: "this link has no radio",
                hint: "Connect through an adapter: its controller is needed for that.")
        }
        if end != nil { throw endError(during: operation) }
        return controls
    }
}
