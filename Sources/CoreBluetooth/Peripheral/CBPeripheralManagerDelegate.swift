/// The events of a peripheral manager. All methods are called on the queue that the manager was created with,
/// one at a time.
///
/// All but `peripheralManagerDidUpdateState(_:)` have a default, which does nothing or logs a line.
@preconcurrency public protocol CBPeripheralManagerDelegate: NSObjectProtocol {
    /// Reports that `CBManager.state` has changed; called first soon after the manager was created.
    ///
    /// In any state but `.poweredOn` nothing is advertised. The services stay in `.poweredOff`; in the others they are
    /// withdrawn, and have to be added again.
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager)

    /// Reports what a manager with a restore identifier continues after a restart of the program, before the state is
    /// reported.
    ///
    /// It is called if the run before has left a state. The services are published again already, so do not add them;
    /// and what was advertised is advertised again as soon as the adapter is on. Centrals connect and subscribe again.
    ///
    /// - Parameters:
    ///   - peripheral: The manager.
    ///   - dict: The values of `CBPeripheralManagerRestoredStateServicesKey`, and, if it advertises,
    ///     `CBPeripheralManagerRestoredStateAdvertisementDataKey`.
    func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any])

    /// Reports that advertising has begun, or why it could not. There is one callback for each
    /// `CBPeripheralManager.startAdvertising(_:)`.
    ///
    /// The error is `CBError.alreadyAdvertising`, `.operationCancelled` if the program has stopped it before it began,
    /// or one with the reason in `localizedDescription`, for example that CAP_NET_RAW is missing.
    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?)

    /// Reports that a service was published, or why it could not be: `CBError.invalidParameters` for a service that was
    /// added before, or whose parts contradict each other.
    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?)

    /// Reports that a central has subscribed to a characteristic. It is in
    /// `CBMutableCharacteristic.subscribedCentrals` by then.
    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic)

    /// Reports that a central has ended its subscription, or that its link has ended.
    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic)

    /// Reports a central's request to read a value that is not fixed. Set `CBATTRequest.value` to the bytes from its
    /// offset on, and respond within 20 s.
    ///
    /// A long value is requested part by part. Requests that the permissions exclude are refused without a callback.
    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest)

    /// Reports a central's request to write one value or several of a service, all or none. Respond once, to any one,
    /// within 20 s. Writes without response come here too, and need none.
    ///
    /// If a central writes values of several services as one, those of the next service follow after a success.
    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest])

    /// Reports that there is room for updates again, after
    /// `CBPeripheralManager.updateValue(_:for:onSubscribedCentrals:)` has returned `false`.
    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager)

    /// Reports that centrals can open channels, and the PSM for it; or why they cannot, and 0. Centrals learn the PSM
    /// from the program, for example by a characteristic (`CBUUIDL2CAPPSMCharacteristicString`).
    func peripheralManager(
        _ peripheral: CBPeripheralManager, didPublishL2CAPChannel psm: CBL2CAPPSM, error: (any Error)?)

    /// Reports that centrals can no longer open channels; `CBError.invalidParameters` for a PSM that is not published.
    func peripheralManager(
        _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel psm: CBL2CAPPSM, error: (any Error)?)

    /// Reports that a central has opened a channel. Keep a reference to it: it closes with the last one. There is no
    /// error on Linux: the kernel refuses a channel to a central whose link is not encrypted, where that is demanded.
    func peripheralManager(_ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?)
}

extension CBPeripheralManagerDelegate {
    /// Logs a line: the program has provided a restore identifier, and drops what is restored.
    public func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
        peripheral.logUnusedRestoration()
    }

    /// Does nothing.
    public func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {}

    /// Does nothing.
    public func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {}

    /// Does nothing.
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
    ) {}

    /// Does nothing.
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
    ) {}

    /// Refuses the request with Request Not Supported.
    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        peripheral.respond(to: request, withResult: .requestNotSupported)
    }

    /// Refuses the requests with Request Not Supported.
    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        if let first = requests.first { peripheral.respond(to: first, withResult: .requestNotSupported) }
    }

    /// Does nothing.
    public func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {}

    /// Does nothing.
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didPublishL2CAPChannel psm: CBL2CAPPSM, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel psm: CBL2CAPPSM, error: (any Error)?
    ) {}

    /// Does nothing: the channel closes.
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?
    ) {}
}
