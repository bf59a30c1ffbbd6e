/// The events of a peripheral. All methods are called on the queue of the peripheral's manager, one at a time.
///
/// Each call of a method of `CBPeripheral` is followed by one callback, in the order of the calls, with an error if it
/// failed; unless the link ends first, after which no callback comes but the manager's. That of `openL2CAPChannel(_:)`
/// comes when the device has responded, and holds up no other. All methods have a default, which does nothing or logs a
/// line.
@preconcurrency public protocol CBPeripheralDelegate: NSObjectProtocol {
    /// Reports that `CBPeripheral.name` has changed.
    func peripheralDidUpdateName(_ peripheral: CBPeripheral)

    /// Reports that services have changed. Those in `invalidatedServices` are no longer valid, and are no longer in
    /// `CBPeripheral.services`; discover them again.
    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService])

    /// The former form of `peripheral(_:didReadRSSI:error:)`. It is never called.
    @available(*, deprecated)
    func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: (any Error)?)

    /// Reports the result of `CBPeripheral.readRSSI()`, in dBm.
    func peripheral(_ peripheral: CBPeripheral, didReadRSSI rssi: NSNumber, error: (any Error)?)

    /// Reports the end of `CBPeripheral.discoverServices(_:)`.
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?)

    /// Reports the end of `CBPeripheral.discoverIncludedServices(_:for:)`.
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?)

    /// Reports the end of `CBPeripheral.discoverCharacteristics(_:for:)`.
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?)

    /// Reports a value in `CBCharacteristic.value`: the result of a read, or a notified or indicated one.
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?)

    /// Reports the peer's response to a write with response.
    func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?)

    /// Reports the end of `CBPeripheral.setNotifyValue(_:for:)`.
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?)

    /// Reports the end of `CBPeripheral.discoverDescriptors(for:)`.
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: (any Error)?)

    /// Reports the end of `CBPeripheral.readValue(for:)` for a descriptor.
    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?)

    /// Reports the peer's response to a write of a descriptor.
    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?)

    /// Reports that `CBPeripheral.canSendWriteWithoutResponse` is `true` again after it was `false`.
    func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral)

    /// Reports the end of `CBPeripheral.openL2CAPChannel(_:)`. Keep a reference to the channel:
    /// it closes with the last one.
    func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?)

    /// Reports a result of Channel Sounding. It is never called on Linux.
    func peripheral(
        _ peripheral: CBPeripheral, didReceive results: CBChannelSoundingProcedureResults?, error: (any Error)?)

    /// Reports the end of a Channel Sounding session: on Linux always with `CBError.operationNotSupported`.
    func peripheral(_ peripheral: CBPeripheral, didCompleteChannelSoundingSession error: (any Error)?)
}

extension CBPeripheralDelegate {
    /// Does nothing.
    public func peripheralDidUpdateName(_ peripheral: CBPeripheral) {}

    /// Logs that the delegate does not implement the method.
    public func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
        Misuse.log(
            "\(peripheral) has changed its services, and its delegate does not implement peripheral(_:didModifyServices:)",
            host: peripheral.host)
    }

    /// Does nothing.
    @available(*, deprecated)
    public func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: (any Error)?) {}

    /// Does nothing.
    public func peripheral(_ peripheral: CBPeripheral, didReadRSSI rssi: NSNumber, error: (any Error)?) {}

    /// Does nothing.
    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {}

    /// Does nothing.
    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) {}

    /// Does nothing: the channel closes.
    public func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {}

    /// Does nothing.
    public func peripheral(
        _ peripheral: CBPeripheral, didReceive results: CBChannelSoundingProcedureResults?, error: (any Error)?
    ) {}

    /// Does nothing.
    public func peripheral(_ peripheral: CBPeripheral, didCompleteChannelSoundingSession error: (any Error)?) {}
}
