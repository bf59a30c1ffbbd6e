/// The events of a peripheral. All methods are called on the queue of the peripheral's manager, one at a time.
///
/// Each call of a method of `CBPeripheral` is followed by one callback, in the order of the calls, with an error if it
/// failed; unless the link ends first, after which no callback comes but the manager's. That of `openL2CAPChannel(_:)`
/// comes when the device has responded, and holds up no other. All methods have a default, which does nothing or logs a
/// line.
@preconcurrency public protocol CBPeripheralDelegate: NSObjectProtocol {
    /// Reports that `CBPeripheral.name` has changed, to the Device Name of a device that has advertised no name. It is
    /// read once, after connecting.
    func peripheralDidUpdateName(_ peripheral: CBPeripheral)

    /// Reports that services have changed. Those in `invalidatedServices` are no longer valid, and are no longer in
    /// `CBPeripheral.services`; discover them again. Their characteristics send no values any more.
    ///
    /// It is reported from the first discovery of services on. The list is empty if the change is of none that are
    /// known.
    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService])

    /// The former form of `peripheral(_:didReadRSSI:error:)`. It is never called.
    @available(*, deprecated)
    func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: (any Error)?)

    /// Reports the result of `CBPeripheral.readRSSI()`, in dBm; 127 with an error, for example without CAP_NET_RAW.
    func peripheral(_ peripheral: CBPeripheral, didReadRSSI rssi: NSNumber, error: (any Error)?)

    /// Reports the end of `CBPeripheral.discoverServices(_:)`. What was found is in `CBPeripheral.services`. That the
    /// device has none of them is no error.
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?)

    /// Reports the end of `CBPeripheral.discoverIncludedServices(_:for:)`. What was found is in
    /// `CBService.includedServices`. That there is none is no error.
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?)

    /// Reports the end of `CBPeripheral.discoverCharacteristics(_:for:)`. What was found is in
    /// `CBService.characteristics`. That there is none is no error.
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?)

    /// Reports a value in `CBCharacteristic.value`: the result of a read, or a notified or indicated one.
    ///
    /// The value is that of this callback, however fast others follow. With an error it stays as it was. The error is a
    /// `CBATTError` with the number that the device has sent, also one that has no name, or a `CBError`.
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?)

    /// Reports the peer's response to a write with response, a `CBATTError` if it was refused. A write without response
    /// has no callback. `CBCharacteristic.value` stays as it was.
    func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?)

    /// Reports the end of `CBPeripheral.setNotifyValue(_:for:)`, before the first value or after the last one.
    ///
    /// `CBCharacteristic.isNotifying` is the outcome. The error is `CBATTError.requestNotSupported` for a
    /// characteristic that sends no values, and `CBError.invalidHandle` if the device has changed its service
    /// meanwhile.
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?)

    /// Reports the end of `CBPeripheral.discoverDescriptors(for:)`. What was found is in
    /// `CBCharacteristic.descriptors`, the Client Characteristic Configuration among them.
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: (any Error)?)

    /// Reports the end of `CBPeripheral.readValue(for:)` for a descriptor. The value is in `CBDescriptor.value`, in the
    /// class of its type.
    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?)

    /// Reports the peer's response to a write of a descriptor.
    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?)

    /// Reports that `CBPeripheral.canSendWriteWithoutResponse` is `true` again after it was `false`.
    func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral)

    /// Reports the end of `CBPeripheral.openL2CAPChannel(_:)`. Keep a reference to the channel:
    /// it closes with the last one.
    ///
    /// The error is `CBError.connectionTimeout` if the device does not respond, `CBATTError.insufficientAuthentication`
    /// if it demands a more secure link and could not be paired, or no pairing is configured, and otherwise a `CBError`
    /// with the reason in `localizedDescription`.
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
