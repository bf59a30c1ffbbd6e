import CoreBluetooth
import Testing

/// The names and the numbers of Apple's CoreBluetooth, from its documentation and the headers of its SDK.
@Suite struct SurfaceTests {
    @Test func enumerationsHaveTheirRawValues() {
        let states: [CBManagerState] = [.unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn]
        #expect(states.map(\.rawValue) == [0, 1, 2, 3, 4, 5])
        let authorizations: [CBManagerAuthorization] = [.notDetermined, .restricted, .denied, .allowedAlways]
        #expect(authorizations.map(\.rawValue) == [0, 1, 2, 3])
        let peripherals: [CBPeripheralState] = [.disconnected, .connecting, .connected, .disconnecting]
        #expect(peripherals.map(\.rawValue) == [0, 1, 2, 3])
        let writes: [CBCharacteristicWriteType] = [.withResponse, .withoutResponse]
        #expect(writes.map(\.rawValue) == [0, 1])
        let latencies: [CBPeripheralManagerConnectionLatency] = [.low, .medium, .high]
        #expect(latencies.map(\.rawValue) == [0, 1, 2])
        let events: [CBConnectionEvent] = [.peerDisconnected, .peerConnected]
        #expect(events.map(\.rawValue) == [0, 1])
        #expect(CBChannelSoundingSessionConfiguration.Role.initiator.rawValue == 0)
    }

    @Test func formerEnumerationsHaveTheirRawValues() {
        let names: any FormerNames = DeprecatedNames()
        #expect(names.states.map(\.0) == [0, 1, 2, 3, 4, 5])
        #expect(names.states.map(\.1) == [0, 1, 2, 3, 4, 5])
        #expect(names.authorizations == [0, 1, 2, 3])
        #expect(names.unknownDevice == 12)
    }

    @Test func optionSetsHaveTheirBits() {
        let properties: [CBCharacteristicProperties] = [
            .broadcast, .read, .writeWithoutResponse, .write, .notify, .indicate, .authenticatedSignedWrites,
            .extendedProperties, .notifyEncryptionRequired, .indicateEncryptionRequired,
        ]
        #expect(properties.map(\.rawValue) == [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x200])
        let permissions: [CBAttributePermissions] = [
            .readable, .writeable, .readEncryptionRequired, .writeEncryptionRequired,
        ]
        #expect(permissions.map(\.rawValue) == [1, 2, 4, 8])
        let features: [CBCentralManager.Feature] = [.extendedScanAndConnect, .channelSounding]
        #expect(features.map(\.rawValue) == [1, 1024])
    }

    @Test func errorCodesHaveTheirNumbers() {
        let codes: [CBError.Code] = [
            CBError.unknown, CBError.invalidParameters, CBError.invalidHandle, CBError.notConnected, CBError.outOfSpace,
            CBError.operationCancelled, CBError.connectionTimeout, CBError.peripheralDisconnected,
            CBError.uuidNotAllowed, CBError.alreadyAdvertising, CBError.connectionFailed,
            CBError.connectionLimitReached, CBError.unknownDevice, CBError.operationNotSupported,
            CBError.peerRemovedPairingInformation, CBError.encryptionTimedOut, CBError.tooManyLEPairedDevices,
            CBError.leGattExceededBackgroundNotificationLimit, CBError.leGattNearBackgroundNotificationLimit,
            CBError.channelSoundingConfigurationFailed, CBError.channelSoundingProcedureFailed,
        ]
        #expect(codes.map(\.rawValue) == Array(0...20))
        #expect(codes == (0...20).map { CBError.Code(rawValue: $0) })
        let attributes: [CBATTError.Code] = [
            CBATTError.success, CBATTError.invalidHandle, CBATTError.readNotPermitted, CBATTError.writeNotPermitted,
            CBATTError.invalidPdu, CBATTError.insufficientAuthentication, CBATTError.requestNotSupported,
            CBATTError.invalidOffset, CBATTError.insufficientAuthorization, CBATTError.prepareQueueFull,
            CBATTError.attributeNotFound, CBATTError.attributeNotLong, CBATTError.insufficientEncryptionKeySize,
            CBATTError.invalidAttributeValueLength, CBATTError.unlikelyError, CBATTError.insufficientEncryption,
            CBATTError.unsupportedGroupType, CBATTError.insufficientResources,
        ]
        #expect(attributes.map(\.rawValue) == Array(0...17))
        #expect(attributes == (0...17).map { CBATTError.Code(rawValue: $0) })
    }

    /// A peer may send any number; on Apple's systems it is a value (T1).
    @Test(arguments: [0x13, 0x80, 0x9F, 0xFC, 0xFF, 1000, -1]) func anyNumberIsAnErrorCode(_ number: Int) {
        #expect(CBATTError.Code(rawValue: number)?.rawValue == number)
        #expect(CBError.Code(rawValue: number)?.rawValue == number)
    }

    /// The ways in which programs look at errors (T2).
    @Test func errorsAreCastAndCaught() {
        let text = "Could not read."
        let error: any Error = CBATTError(.readNotPermitted, userInfo: [NSLocalizedDescriptionKey: text])
        #expect((error as NSError).domain == "CBATTErrorDomain")
        #expect((error as NSError).code == 2)
        #expect((error as NSError).localizedDescription == text)
        #expect(error.localizedDescription == text)
        #expect((error as? CBATTError)?.code == .readNotPermitted)
        #expect(error as? CBError == nil)
        do {
            throw CBError(.connectionTimeout)
        } catch CBError.peripheralDisconnected {
            Issue.record("the pattern of another code matches")
        } catch CBError.connectionTimeout {
            #expect((CBError(.connectionTimeout) as NSError).domain == CBErrorDomain)
        } catch {
            Issue.record("no pattern matches")
        }
        switch error {
        case CBATTError.readNotPermitted: break
        default: Issue.record("no pattern matches")
        }
    }

    @Test func constantsHaveTheirValues() {
        #expect(CBErrorDomain == "CBErrorDomain")
        #expect(CBATTErrorDomain == "CBATTErrorDomain")
        let advertisement = [
            CBAdvertisementDataLocalNameKey, CBAdvertisementDataManufacturerDataKey, CBAdvertisementDataServiceDataKey,
            CBAdvertisementDataServiceUUIDsKey, CBAdvertisementDataOverflowServiceUUIDsKey,
            CBAdvertisementDataTxPowerLevelKey, CBAdvertisementDataIsConnectable,
            CBAdvertisementDataSolicitedServiceUUIDsKey,
        ]
        let names = [
            "LocalName", "ManufacturerData", "ServiceData", "ServiceUUIDs", "HashedServiceUUIDs", "TxPowerLevel",
            "IsConnectable", "SolicitedServiceUUIDs",
        ]
        #expect(advertisement == names.map { "kCBAdvData\($0)" })
        let descriptors = [
            CBUUIDCharacteristicExtendedPropertiesString, CBUUIDCharacteristicUserDescriptionString,
            CBUUIDClientCharacteristicConfigurationString, CBUUIDServerCharacteristicConfigurationString,
            CBUUIDCharacteristicFormatString, CBUUIDCharacteristicAggregateFormatString,
            CBUUIDCharacteristicValidRangeString, CBUUIDCharacteristicObservationScheduleString,
        ]
        #expect(descriptors == ["2900", "2901", "2902", "2903", "2904", "2905", "2906", "2910"])
        #expect(CBUUIDL2CAPPSMCharacteristicString == "ABDD3056-28FA-441D-A470-55A75A52553A")
    }

    /// Programs compare none of these with texts; what matters is that they differ within one dictionary.
    @Test func keysDiffer() {
        let connect = [
            CBConnectPeripheralOptionNotifyOnConnectionKey, CBConnectPeripheralOptionNotifyOnDisconnectionKey,
            CBConnectPeripheralOptionNotifyOnNotificationKey, CBConnectPeripheralOptionStartDelayKey,
            CBConnectPeripheralOptionEnableTransportBridgingKey, CBConnectPeripheralOptionRequiresANCS,
            CBConnectPeripheralOptionEnableAutoReconnect,
        ]
        #expect(Set(connect).count == 7)
        let central = [
            CBCentralManagerOptionShowPowerAlertKey, CBCentralManagerOptionRestoreIdentifierKey,
            CBCentralManagerOptionDeviceAccessForMedia,
        ]
        #expect(Set(central).count == 3)
        let scan = [CBCentralManagerScanOptionAllowDuplicatesKey, CBCentralManagerScanOptionSolicitedServiceUUIDsKey]
        #expect(Set(scan).count == 2)
        let restored = [
            CBCentralManagerRestoredStatePeripheralsKey, CBCentralManagerRestoredStateScanServicesKey,
            CBCentralManagerRestoredStateScanOptionsKey,
        ]
        #expect(Set(restored).count == 3)
        let peripheral = [
            CBPeripheralManagerOptionShowPowerAlertKey, CBPeripheralManagerOptionRestoreIdentifierKey,
            CBPeripheralManagerRestoredStateServicesKey, CBPeripheralManagerRestoredStateAdvertisementDataKey,
        ]
        #expect(Set(peripheral).count == 4)
        #expect(CBConnectionEventMatchingOption.serviceUUIDs != .peripheralUUIDs)
    }

    @Test func namesOfDarwinAreThere() {
        #expect(
            [NSEC_PER_SEC, NSEC_PER_MSEC, NSEC_PER_USEC, USEC_PER_SEC] == [1_000_000_000, 1_000_000, 1_000, 1_000_000])
        #expect(autoreleasepool { 7 } == 7)
        let now: CFAbsoluteTime = CFAbsoluteTimeGetCurrent()
        #expect(abs(now - Date.timeIntervalSinceReferenceDate) < 60)
        let duration: CFTimeInterval = 0.5
        #expect(duration == 0.5 as Double)
        let psm: CBL2CAPPSM = 0x80
        #expect(psm == UInt16(0x80))
    }

    @Test func bytesAreSwapped() {
        let (short, word, long): (UInt16, UInt32, UInt64) = (0x0102, 0x0102_0304, 0x0102_0304_0506_0708)
        #expect(CFSwapInt16(short) == 0x0201)
        #expect(CFSwapInt32(word) == 0x0403_0201)
        #expect(CFSwapInt64(long) == 0x0807_0605_0403_0201)
        #expect(
            [CFSwapInt16LittleToHost(short), CFSwapInt16HostToLittle(short)] == [
                short.littleEndian, short.littleEndian,
            ])
        #expect(
            [CFSwapInt32LittleToHost(word), CFSwapInt32HostToLittle(word)] == [word.littleEndian, word.littleEndian])
        #expect(
            [CFSwapInt64LittleToHost(long), CFSwapInt64HostToLittle(long)] == [long.littleEndian, long.littleEndian])
        #expect([CFSwapInt16BigToHost(short), CFSwapInt16HostToBig(short)] == [short.bigEndian, short.bigEndian])
        #expect([CFSwapInt32BigToHost(word), CFSwapInt32HostToBig(word)] == [word.bigEndian, word.bigEndian])
        #expect([CFSwapInt64BigToHost(long), CFSwapInt64HostToBig(long)] == [long.bigEndian, long.bigEndian])
    }
}

/// The raw values of deprecated names. A test that used them directly would have to be deprecated too,
/// so a protocol has them.
private protocol FormerNames {
    var states: [(Int, Int)] { get }
    var authorizations: [Int] { get }
    var unknownDevice: Int { get }
}

private struct DeprecatedNames: FormerNames {
    @available(*, deprecated)
    var states: [(Int, Int)] {
        let central: [CBCentralManagerState] = [
            .unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn,
        ]
        let peripheral: [CBPeripheralManagerState] = [
            .unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn,
        ]
        return zip(central, peripheral).map { ($0.rawValue, $1.rawValue) }
    }

    @available(*, deprecated)
    var authorizations: [Int] {
        let all: [CBPeripheralManagerAuthorizationStatus] = [.notDetermined, .restricted, .denied, .authorized]
        return all.map(\.rawValue)
    }

    @available(*, deprecated)
    var unknownDevice: Int { CBError.unkownDevice.rawValue }
}
