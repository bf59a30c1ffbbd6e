public import BLECore

extension Peripheral {
    /// How often the two sides of the link meet now; both bounds of the interval are the one in use.
    ///
    /// It is what the controller said last: when the link came up, and whenever it changed since, also where the peer wanted
    /// that. Nothing is sent for it.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a link without a radio, and for one that another program had made before;
    ///   `.notPermitted` without CAP_NET_RAW; `.disconnected`.
    public func connectionParameters() async throws(BLEError) -> ConnectionParameters {
        try await radio(during: "read the connection parameters").parameters()
    }

    /// Asks for other connection parameters, and waits until the link has them, which takes some of its old intervals.
    ///
    /// The controller chooses within the bounds, and may not do so at all. Requests of one link take turns. One whose time is over, or
    /// whose task is cancelled, cannot be taken back: the link may still change.
    ///
    /// - Returns: What the link has now.
    /// - Throws: `BLEError` with `.refusedByPeer`, whose `hciStatus` tells why; `.invalidArgument` and `.busy` from the
    ///   controller; `.notSupported` for a link without a radio; `.notPermitted` without CAP_NET_RAW; `.timedOut`,
    ///   `.disconnected`, `.adapterDown`, `.cancelled`.
    @discardableResult
    public func requestConnectionParameters(
        _ parameters: ConnectionParameters, timeout: Duration = .seconds(10)
    ) async throws(BLEError) -> ConnectionParameters {
        try await radio(during: "change the connection parameters").requestParameters(parameters, timeout)
    }

    /// Which PHYs the link uses now, as the controller says.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a link without a radio, and where the controller has one PHY only;
    ///   `.notPermitted` without CAP_NET_RAW; `.disconnected`.
    public func phy() async throws(BLEError) -> LinkPHY {
        try await radio(during: "read the PHY").phy()
    }

    /// Says which PHYs the link may use, and waits until the two controllers have chosen.
    ///
    /// An empty set stands for no preference. What is chosen may be what the link had before; that is no failure. As with
    /// `requestConnectionParameters(_:timeout:)`, requests take turns and cannot be taken back.
    ///
    /// - Parameters:
    ///   - transmit: what this host may send on.
    ///   - receive: what it may receive on; the same when left out.
    ///   - timeout: how long the controllers may take.
    /// - Returns: What the link uses now.
    /// - Throws: `BLEError` as `requestConnectionParameters(_:timeout:)` does; `.notSupported` also where a controller has no
    ///   such PHY.
    @discardableResult
    public func requestPHY(
        _ transmit: LEPHYs, receive: LEPHYs? = nil, timeout: Duration = .seconds(10)
    ) async throws(BLEError) -> LinkPHY {
        try await radio(during: "change the PHY").requestPHY(transmit, receive ?? transmit, timeout)
    }

    /// What the adapter can do for the link.
    func radio(during operation: String) throws(BLEError) -> LinkControls {
        guard let controls else {
            throw BLEError(
                .notSupported, subject: name, during: operation, because: "this link has no radio under it")
        }
        if end != nil { throw endError(during: operation) }
        return controls
    }
}
