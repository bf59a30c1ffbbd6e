// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// The names of CoreBluetooth with the types that they have on Apple's systems, and a delegate that has every method: a
// name that differs is an error of the compiler, and a method that differs is not called.

import CoreBluetooth

/// The types, their members and the constants. Nothing here is called.
enum Surface {
    static func enumerations() {
        let _: [CBManagerState] = [.unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn]
        let _: [CBManagerAuthorization] = [.notDetermined, .restricted, .denied, .allowedAlways]
        let _: [CBPeripheralState] = [.disconnected, .connecting, .connected, .disconnecting]
        let _: [CBCharacteristicWriteType] = [.withResponse, .withoutResponse]
        let _: [CBPeripheralManagerConnectionLatency] = [.low, .medium, .high]
        let _: [CBConnectionEvent] = [.peerDisconnected, .peerConnected]
        let _: [CBChannelSoundingSessionConfiguration.Role] = [.initiator]
        let _: [Int] = [
            CBManagerState.unknown.rawValue, CBManagerAuthorization.denied.rawValue,
            CBPeripheralState.connected.rawValue, CBCharacteristicWriteType.withResponse.rawValue,
            CBPeripheralManagerConnectionLatency.low.rawValue, CBConnectionEvent.peerConnected.rawValue,
            CBChannelSoundingSessionConfiguration.Role.initiator.rawValue,
        ]
    }

    static func optionSets() {
        let _: CBCharacteristicProperties = [
            .broadcast, .read, .writeWithoutResponse, .write, .notify, .indicate, .authenticatedSignedWrites,
            .extendedProperties, .notifyEncryptionRequired, .indicateEncryptionRequired,
        ]
        let _: CBAttributePermissions = [.readable, .writeable, .readEncryptionRequired, .writeEncryptionRequired]
        let _: CBCentralManager.Feature = [.extendedScanAndConnect, .channelSounding]
        let _: [UInt] = [
            CBCharacteristicProperties.read.rawValue, CBAttributePermissions.readable.rawValue,
            CBCentralManager.Feature.channelSounding.rawValue,
        ]
        let _: [CBConnectionEventMatchingOption: Any] = [.serviceUUIDs: [CBUUID](), .peripheralUUIDs: [UUID]()]
        let _: String = CBConnectionEventMatchingOption.serviceUUIDs.rawValue
    }

    static func constants() {
        let _: [String] = [
            CBAdvertisementDataLocalNameKey, CBAdvertisementDataManufacturerDataKey, CBAdvertisementDataServiceDataKey,
            CBAdvertisementDataServiceUUIDsKey, CBAdvertisementDataOverflowServiceUUIDsKey,
            CBAdvertisementDataSolicitedServiceUUIDsKey, CBAdvertisementDataTxPowerLevelKey,
            CBAdvertisementDataIsConnectable,
        ]
        let _: [String] = [
            CBCentralManagerOptionShowPowerAlertKey, CBCentralManagerOptionRestoreIdentifierKey,
            CBCentralManagerOptionDeviceAccessForMedia, CBCentralManagerScanOptionAllowDuplicatesKey,
            CBCentralManagerScanOptionSolicitedServiceUUIDsKey, CBCentralManagerRestoredStatePeripheralsKey,
            CBCentralManagerRestoredStateScanServicesKey, CBCentralManagerRestoredStateScanOptionsKey,
        ]
        let _: [String] = [
            CBConnectPeripheralOptionNotifyOnConnectionKey, CBConnectPeripheralOptionNotifyOnDisconnectionKey,
            CBConnectPeripheralOptionNotifyOnNotificationKey, CBConnectPeripheralOptionStartDelayKey,
            CBConnectPeripheralOptionEnableTransportBridgingKey, CBConnectPeripheralOptionRequiresANCS,
            CBConnectPeripheralOptionEnableAutoReconnect,
        ]
        let _: [String] = [
            CBPeripheralManagerOptionShowPowerAlertKey, CBPeripheralManagerOptionRestoreIdentifierKey,
            CBPeripheralManagerRestoredStateServicesKey, CBPeripheralManagerRestoredStateAdvertisementDataKey,
        ]
        let _: [String] = [
            CBUUIDCharacteristicExtendedPropertiesString, CBUUIDCharacteristicUserDescriptionString,
            CBUUIDClientCharacteristicConfigurationString, CBUUIDServerCharacteristicConfigurationString,
            CBUUIDCharacteristicFormatString, CBUUIDCharacteristicAggregateFormatString,
            CBUUIDCharacteristicValidRangeString, CBUUIDCharacteristicObservationScheduleString,
            CBUUIDL2CAPPSMCharacteristicString,
        ]
    }

    static func errors(_ error: CBError, _ refusal: CBATTError) {
        let _: [CBError.Code] = [
            .unknown, .invalidParameters, .invalidHandle, .notConnected, .outOfSpace, .operationCancelled,
            .connectionTimeout, .peripheralDisconnected, .uuidNotAllowed, .alreadyAdvertising, .connectionFailed,
            .connectionLimitReached, .unknownDevice, .operationNotSupported, .peerRemovedPairingInformation,
            .encryptionTimedOut, .tooManyLEPairedDevices, .leGattExceededBackgroundNotificationLimit,
            .leGattNearBackgroundNotificationLimit, .channelSoundingConfigurationFailed,
            .channelSoundingProcedureFailed,
        ]
        let _: [CBError.Code] = [
            CBError.unknown, CBError.invalidParameters, CBError.invalidHandle, CBError.notConnected, CBError.outOfSpace,
            CBError.operationCancelled, CBError.connectionTimeout, CBError.peripheralDisconnected,
            CBError.uuidNotAllowed, CBError.alreadyAdvertising, CBError.connectionFailed,
            CBError.connectionLimitReached, CBError.unknownDevice, CBError.operationNotSupported,
            CBError.peerRemovedPairingInformation, CBError.encryptionTimedOut, CBError.tooManyLEPairedDevices,
            CBError.leGattExceededBackgroundNotificationLimit, CBError.leGattNearBackgroundNotificationLimit,
            CBError.channelSoundingConfigurationFailed, CBError.channelSoundingProcedureFailed,
        ]
        let _: [CBATTError.Code] = [
            .success, .invalidHandle, .readNotPermitted, .writeNotPermitted, .invalidPdu, .insufficientAuthentication,
            .requestNotSupported, .invalidOffset, .insufficientAuthorization, .prepareQueueFull, .attributeNotFound,
            .attributeNotLong, .insufficientEncryptionKeySize, .invalidAttributeValueLength, .unlikelyError,
            .insufficientEncryption, .unsupportedGroupType, .insufficientResources,
        ]
        let _: [CBATTError.Code] = [
            CBATTError.success, CBATTError.invalidHandle, CBATTError.readNotPermitted, CBATTError.writeNotPermitted,
            CBATTError.invalidPdu, CBATTError.insufficientAuthentication, CBATTError.requestNotSupported,
            CBATTError.invalidOffset, CBATTError.insufficientAuthorization, CBATTError.prepareQueueFull,
            CBATTError.attributeNotFound, CBATTError.attributeNotLong, CBATTError.insufficientEncryptionKeySize,
            CBATTError.invalidAttributeValueLength, CBATTError.unlikelyError, CBATTError.insufficientEncryption,
            CBATTError.unsupportedGroupType, CBATTError.insufficientResources,
        ]
        let _: [CBError] = [CBError(.unknown), CBError(.unknown, userInfo: [:])]
        let _: [CBATTError] = [CBATTError(.success), CBATTError(.success, userInfo: [:])]
        let _: (CBError.Code, CBATTError.Code) = (error.code, refusal.code)
        let _: [Int] = [error.errorCode, refusal.errorCode, error.code.rawValue, refusal.code.rawValue]
        let _: [[String: Any]] = [error.userInfo, refusal.userInfo, error.errorUserInfo, refusal.errorUserInfo]
        let _: [String] = [error.localizedDescription, refusal.localizedDescription]
        let _: [String] = [CBError.errorDomain, CBATTError.errorDomain, CBErrorDomain, CBATTErrorDomain]
    }

    @available(*, deprecated)
    static func former(_ central: CBCentralManager, _ device: CBPeripheral, _ characteristic: CBCharacteristic) {
        let _: [CBCentralManagerState] = [.unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn]
        let _: [CBPeripheralManagerState] = [
            .unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn,
        ]
        let _: [CBPeripheralManagerAuthorizationStatus] = [.notDetermined, .restricted, .denied, .authorized]
        let _: CBManagerAuthorization = central.authorization
        let _: CBPeripheralManagerAuthorizationStatus = CBPeripheralManager.authorizationStatus()
        let _: NSNumber? = device.rssi
        let _: Bool = characteristic.isBroadcasted
        let _: [CBError.Code] = [CBError.unkownDevice, CBError.Code.unkownDevice]
    }

    static func managers(
        _ central: CBCentralManager, _ peripheral: CBPeripheralManager,
        _ delegate: CBCentralManagerDelegate & CBPeripheralManagerDelegate
    ) {
        let _: [CBCentralManager] = [
            CBCentralManager(), CBCentralManager(delegate: delegate, queue: nil),
            CBCentralManager(delegate: delegate, queue: .main, options: nil),
        ]
        let _: CBCentralManagerDelegate? = central.delegate
        let _: Bool = central.isScanning
        let _: (CBCentralManager.Feature) -> Bool = CBCentralManager.supports(_:)
        let _: ([CBUUID]?, [String: Any]?) -> Void = central.scanForPeripherals(withServices:options:)
        let _: () -> Void = central.stopScan
        let _: (CBPeripheral, [String: Any]?) -> Void = central.connect(_:options:)
        let _: (CBPeripheral) -> Void = central.cancelPeripheralConnection(_:)
        let _: ([UUID]) -> [CBPeripheral] = central.retrievePeripherals(withIdentifiers:)
        let _: ([CBUUID]) -> [CBPeripheral] = central.retrieveConnectedPeripherals(withServices:)
        let _: ([CBConnectionEventMatchingOption: Any]?) -> Void = central.registerForConnectionEvents(options:)

        let _: CBManager = central
        let _: CBManagerState = central.state
        let _: CBManagerAuthorization = CBManager.authorization

        let _: [CBPeripheralManager] = [
            CBPeripheralManager(), CBPeripheralManager(delegate: delegate, queue: nil),
            CBPeripheralManager(delegate: delegate, queue: .main, options: nil),
        ]
        let _: CBPeripheralManagerDelegate? = peripheral.delegate
        let _: Bool = peripheral.isAdvertising
        let _: ([String: Any]?) -> Void = peripheral.startAdvertising(_:)
        let _: () -> Void = peripheral.stopAdvertising
        let _: (CBPeripheralManagerConnectionLatency, CBCentral) -> Void = peripheral.setDesiredConnectionLatency(
            _:for:)
        let _: (CBMutableService) -> Void = peripheral.add(_:)
        let _: (CBMutableService) -> Void = peripheral.remove(_:)
        let _: () -> Void = peripheral.removeAllServices
        let _: (CBATTRequest, CBATTError.Code) -> Void = peripheral.respond(to:withResult:)
        let _: (Data, CBMutableCharacteristic, [CBCentral]?) -> Bool =
            peripheral.updateValue(_:for:onSubscribedCentrals:)
        let _: (Bool) -> Void = peripheral.publishL2CAPChannel(withEncryption:)
        let _: (CBL2CAPPSM) -> Void = peripheral.unpublishL2CAPChannel(_:)
    }

    static func peripheral(_ peripheral: CBPeripheral) {
        let _: UUID = (peripheral as CBPeer).identifier
        let _: NSCopying = peripheral as CBPeer
        let _: CBPeripheralDelegate? = peripheral.delegate
        let _: String? = peripheral.name
        let _: CBPeripheralState = peripheral.state
        let _: [CBService]? = peripheral.services
        let _: Bool = peripheral.canSendWriteWithoutResponse
        let _: Bool = peripheral.ancsAuthorized
        let _: (CBCharacteristicWriteType) -> Int = peripheral.maximumWriteValueLength(for:)
        let _: ([CBUUID]?) -> Void = peripheral.discoverServices(_:)
        let _: ([CBUUID]?, CBService) -> Void = peripheral.discoverIncludedServices(_:for:)
        let _: ([CBUUID]?, CBService) -> Void = peripheral.discoverCharacteristics(_:for:)
        let _: (CBCharacteristic) -> Void = peripheral.discoverDescriptors(for:)
        let _: (CBCharacteristic) -> Void = peripheral.readValue(for:)
        let _: (CBDescriptor) -> Void = peripheral.readValue(for:)
        let _: (Data, CBCharacteristic, CBCharacteristicWriteType) -> Void = peripheral.writeValue(_:for:type:)
        let _: (Data, CBDescriptor) -> Void = peripheral.writeValue(_:for:)
        let _: (Bool, CBCharacteristic) -> Void = peripheral.setNotifyValue(_:for:)
        let _: () -> Void = peripheral.readRSSI
        let _: (CBL2CAPPSM) -> Void = peripheral.openL2CAPChannel(_:)
        let _: (CBChannelSoundingSessionConfiguration) -> Void = peripheral.startChannelSoundingSession(_:)
        let _: () -> Void = peripheral.cancelChannelSoundingSession
    }

    static func channelSounding(_ results: CBChannelSoundingProcedureResults) {
        let configuration = CBChannelSoundingSessionConfiguration(role: .initiator)
        let _: CBChannelSoundingSessionConfiguration.Role = configuration.role
        let _: Double = results.distance
    }

    static func attributes(
        _ service: CBMutableService, _ characteristic: CBMutableCharacteristic, _ descriptor: CBMutableDescriptor
    ) {
        let _: [CBAttribute] = [
            CBMutableService(type: service.uuid, primary: true),
            CBMutableCharacteristic(type: service.uuid, properties: .read, value: nil, permissions: .readable),
            CBMutableDescriptor(type: service.uuid, value: nil),
        ]
        let _: CBPeripheral? = (service as CBService).peripheral
        let _: Bool = service.isPrimary
        let _: [CBService]? = (service as CBService).includedServices
        let _: [CBCharacteristic]? = (service as CBService).characteristics
        let _: WritableKeyPath<CBMutableService, [CBService]?> = \.includedServices
        let _: WritableKeyPath<CBMutableService, [CBCharacteristic]?> = \.characteristics
        let _: CBService? = (characteristic as CBCharacteristic).service
        let _: Bool = characteristic.isNotifying
        let _: CBCharacteristicProperties = (characteristic as CBCharacteristic).properties
        let _: Data? = (characteristic as CBCharacteristic).value
        let _: [CBDescriptor]? = (characteristic as CBCharacteristic).descriptors
        let _: WritableKeyPath<CBMutableCharacteristic, CBCharacteristicProperties> = \.properties
        let _: WritableKeyPath<CBMutableCharacteristic, CBAttributePermissions> = \.permissions
        let _: WritableKeyPath<CBMutableCharacteristic, Data?> = \.value
        let _: WritableKeyPath<CBMutableCharacteristic, [CBDescriptor]?> = \.descriptors
        let _: [CBCentral]? = characteristic.subscribedCentrals
        let _: CBCharacteristic? = (descriptor as CBDescriptor).characteristic
        let _: Any? = descriptor.value
        let _: [CBUUID] = [CBUUID(string: "180D"), CBUUID(data: Data([0x18, 0x0D])), CBUUID(nsuuid: UUID())]
        let _: (Data, String) = (service.uuid.data, service.uuid.uuidString)
        let _: [NSCopying] = [service.uuid]
    }

    static func others(_ request: CBATTRequest, _ channel: CBL2CAPChannel) {
        let _: CBCentral = request.central
        let _: CBPeer = request.central
        let _: CBCharacteristic = request.characteristic
        let _: Int = request.offset
        let _: WritableKeyPath<CBATTRequest, Data?> = \.value
        let _: Int = request.central.maximumUpdateValueLength
        let _: CBPeer? = channel.peer
        let _: InputStream? = channel.inputStream
        let _: OutputStream? = channel.outputStream
        let _: CBL2CAPPSM = channel.psm
    }
}

/// Keeps the name of each method that is called.
public class EveryCallback: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, CBPeripheralManagerDelegate {
    public private(set) var names: [String] = []

    override public init() { super.init() }

    private func note(_ name: String = #function) { names.append(name) }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) { note() }
    public func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) { note() }
    public func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) { note() }
    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) { note() }
    public func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        note()
    }
    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?
    ) { note() }
    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
        isReconnecting: Bool, error: Error?
    ) { note() }
    public func centralManager(
        _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent, for peripheral: CBPeripheral
    ) { note() }
    public func centralManager(_ central: CBCentralManager, didUpdateANCSAuthorizationFor peripheral: CBPeripheral) {
        note()
    }

    public func peripheralDidUpdateName(_ peripheral: CBPeripheral) { note() }
    public func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) { note() }
    public func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: Error?) { note() }
    public func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: Error?) { note() }
    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) { note() }
    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: Error?
    ) { note() }
    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?
    ) { note() }
    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?
    ) { note() }
    public func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: Error?
    ) { note() }
    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?
    ) { note() }
    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: Error?
    ) { note() }
    public func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: Error?) {
        note()
    }
    public func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: Error?) {
        note()
    }
    public func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { note() }
    public func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: Error?) { note() }
    public func peripheral(
        _ peripheral: CBPeripheral, didReceive results: CBChannelSoundingProcedureResults?, error: Error?
    ) { note() }
    public func peripheral(_ peripheral: CBPeripheral, didCompleteChannelSoundingSession error: Error?) { note() }

    public func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) { note() }
    public func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) { note() }
    public func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) { note() }
    public func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        note()
    }
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
    ) { note() }
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
    ) { note() }
    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) { note() }
    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        note()
    }
    public func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { note() }
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: Error?
    ) { note() }
    public func peripheralManager(
        _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel PSM: CBL2CAPPSM, error: Error?
    ) { note() }
    public func peripheralManager(_ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: Error?) {
        note()
    }

    /// Calls each method of the first two protocols, as CoreBluetooth does; returns the number of calls.
    public func callAsCentral(_ manager: CBCentralManager, _ device: CBPeripheral, _ service: CBMutableService) -> Int {
        let characteristic = CBMutableCharacteristic(
            type: service.uuid, properties: .read, value: nil, permissions: .readable)
        let descriptor = CBMutableDescriptor(type: CBUUID(string: "2901"), value: "Text")
        let central: CBCentralManagerDelegate = self
        central.centralManagerDidUpdateState(manager)
        central.centralManager(manager, willRestoreState: [:])
        central.centralManager(manager, didDiscover: device, advertisementData: [:], rssi: -60)
        central.centralManager(manager, didConnect: device)
        central.centralManager(manager, didFailToConnect: device, error: nil)
        central.centralManager(manager, didDisconnectPeripheral: device, error: nil)
        central.centralManager(
            manager, didDisconnectPeripheral: device, timestamp: CFAbsoluteTimeGetCurrent(), isReconnecting: true,
            error: nil)
        central.centralManager(manager, connectionEventDidOccur: .peerConnected, for: device)
        central.centralManager(manager, didUpdateANCSAuthorizationFor: device)
        let peripheral: CBPeripheralDelegate = self
        peripheral.peripheralDidUpdateName(device)
        peripheral.peripheral(device, didModifyServices: [service])
        peripheral.peripheral(device, didReadRSSI: -60, error: nil)
        peripheral.peripheral(device, didDiscoverServices: nil)
        peripheral.peripheral(device, didDiscoverIncludedServicesFor: service, error: nil)
        peripheral.peripheral(device, didDiscoverCharacteristicsFor: service, error: nil)
        peripheral.peripheral(device, didUpdateValueFor: characteristic as CBCharacteristic, error: nil)
        peripheral.peripheral(device, didWriteValueFor: characteristic as CBCharacteristic, error: nil)
        peripheral.peripheral(device, didUpdateNotificationStateFor: characteristic, error: nil)
        peripheral.peripheral(device, didDiscoverDescriptorsFor: characteristic, error: nil)
        peripheral.peripheral(device, didUpdateValueFor: descriptor as CBDescriptor, error: nil)
        peripheral.peripheral(device, didWriteValueFor: descriptor as CBDescriptor, error: nil)
        peripheral.peripheralIsReady(toSendWriteWithoutResponse: device)
        peripheral.peripheral(device, didOpen: nil, error: nil)
        peripheral.peripheral(device, didReceive: nil, error: nil)
        peripheral.peripheral(device, didCompleteChannelSoundingSession: nil)
        let former: FormerCalls = DeprecatedCalls()
        former.callAsCentral(peripheral, device)
        return 26
    }

    /// Calls each method of the third protocol, as CoreBluetooth does; returns the number of calls.
    public func callAsPeripheral(_ manager: CBPeripheralManager, _ request: CBATTRequest, _ service: CBService) -> Int {
        let peripheral: CBPeripheralManagerDelegate = self
        peripheral.peripheralManagerDidUpdateState(manager)
        peripheral.peripheralManager(manager, willRestoreState: [:])
        peripheral.peripheralManagerDidStartAdvertising(manager, error: nil)
        peripheral.peripheralManager(manager, didAdd: service, error: nil)
        peripheral.peripheralManager(manager, central: request.central, didSubscribeTo: request.characteristic)
        peripheral.peripheralManager(manager, central: request.central, didUnsubscribeFrom: request.characteristic)
        peripheral.peripheralManager(manager, didReceiveRead: request)
        peripheral.peripheralManager(manager, didReceiveWrite: [request])
        peripheral.peripheralManagerIsReady(toUpdateSubscribers: manager)
        peripheral.peripheralManager(manager, didPublishL2CAPChannel: 0x80, error: nil)
        peripheral.peripheralManager(manager, didUnpublishL2CAPChannel: 0x80, error: nil)
        peripheral.peripheralManager(manager, didOpen: nil, error: nil)
        return 12
    }
}

/// Calls of deprecated methods. What made them directly would have to be deprecated too, so a protocol has them.
private protocol FormerCalls {
    func callAsCentral(_ delegate: CBPeripheralDelegate, _ device: CBPeripheral)
}

private struct DeprecatedCalls: FormerCalls {
    @available(*, deprecated)
    func callAsCentral(_ delegate: CBPeripheralDelegate, _ device: CBPeripheral) {
        delegate.peripheralDidUpdateRSSI(device, error: nil)
    }
}
