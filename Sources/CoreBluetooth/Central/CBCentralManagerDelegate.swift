/// The events of a central manager. All methods are called on the queue that the manager was created with,
/// one at a time.
///
/// All but `centralManagerDidUpdateState(_:)` have a default, which does nothing or logs a line. A method whose name or
/// types differ from those here is never called, without a warning; nor is one that only a subclass of the conforming
/// class declares.
@preconcurrency public protocol CBCentralManagerDelegate: NSObjectProtocol {
    /// Reports that `CBManager.state` has changed; called first soon after the manager was created.
    ///
    /// In any state but `.poweredOn` scans and connections have ended, without callbacks of their own.
    func centralManagerDidUpdateState(_ central: CBCentralManager)

    /// Reports what a manager with a restore identifier continues after a restart of the program, before the state is
    /// reported.
    ///
    /// It is called if the run before has left a state. Links end with a program on Linux: the peripherals are in the
    /// state `.connecting`, have no services, and are reported as connected when they are in range.
    ///
    /// - Parameters:
    ///   - central: The manager.
    ///   - dict: The values of `CBCentralManagerRestoredStatePeripheralsKey`, and, if it scans,
    ///     `CBCentralManagerRestoredStateScanServicesKey` and `CBCentralManagerRestoredStateScanOptionsKey`. Keep
    ///     references to the peripherals.
    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any])

    /// Reports a device that a scan has heard.
    ///
    /// - Parameters:
    ///   - central: The manager.
    ///   - peripheral: The device. Keep a reference to connect to it.
    ///   - advertisementData: The contents of its advertisement and its scan response.
    ///   - rssi: The strength of the signal, in dBm; 127 if the controller could not measure it.
    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi: NSNumber)

    /// Reports that a device is connected.
    ///
    /// The MTU has been exchanged, so `CBPeripheral.maximumWriteValueLength(for:)` is that of the link. No services are
    /// known yet: discover them on each connection, also on those that the system has made again.
    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral)

    /// Reports that a connection could not be established. It is not retried.
    ///
    /// A device that is out of range or off is no failure: the attempt goes on. The error is a `CBError`, with the
    /// reason in `localizedDescription`: `.connectionLimitReached` if the controller has no free link,
    /// `.connectionFailed`, `.encryptionTimedOut` or `.peerRemovedPairingInformation` for a bonded device, and
    /// `.unknown`, for example if the bonds cannot be opened.
    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?)

    /// Reports that a device is no longer connected.
    ///
    /// - Parameters:
    ///   - central: The manager.
    ///   - peripheral: The device. Its services are no longer valid.
    ///   - error: The reason; `nil` if the program has cancelled the connection, or the attempt. It is a `CBError`:
    ///     `.peripheralDisconnected` if the device has ended the link, `.connectionTimeout` if it is out of range or
    ///     does not respond, `.connectionFailed`, `.peerRemovedPairingInformation`, `.encryptionTimedOut` if it did not
    ///     finish its pairing, and `.unknown`. The end of the link with the adapter is reported by the state alone.
    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?)

    /// Reports that a device is no longer connected. If this method is implemented,
    /// the one without a time is not called.
    ///
    /// - Parameters:
    ///   - central: The manager.
    ///   - peripheral: The device.
    ///   - timestamp: The time at which the link ended.
    ///   - isReconnecting: A Boolean value that indicates whether the system connects again, as
    ///     `CBConnectPeripheralOptionEnableAutoReconnect` requests. The peripheral is in the state `.connecting` then.
    ///   - error: The reason, as in `centralManager(_:didDisconnectPeripheral:error:)`.
    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
        isReconnecting: Bool, error: (any Error)?)

    /// Reports a connection of this process, or its end, after `registerForConnectionEvents(options:)`.
    func centralManager(
        _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent, for peripheral: CBPeripheral)

    /// Reports a change of the authorization for Apple's notification service. It is never called on Linux.
    func centralManager(_ central: CBCentralManager, didUpdateANCSAuthorizationFor peripheral: CBPeripheral)
}

extension CBCentralManagerDelegate {
    /// Logs a line: the program has provided a restore identifier, and drops what is restored.
    public func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        central.logUnusedRestoration()
    }

    /// Does nothing.
    public func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi: NSNumber
    ) {}

    /// Does nothing.
    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {}

    /// Does nothing.
    public func centralManager(
        _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
    ) {}

    /// Does nothing.
    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) {}

    /// Calls the method without a time.
    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
        isReconnecting: Bool, error: (any Error)?
    ) {
        centralManager(central, didDisconnectPeripheral: peripheral, error: error)
    }

    /// Does nothing.
    public func centralManager(
        _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent, for peripheral: CBPeripheral
    ) {}

    /// Does nothing.
    public func centralManager(
        _ central: CBCentralManager, didUpdateANCSAuthorizationFor peripheral: CBPeripheral
    ) {}
}
