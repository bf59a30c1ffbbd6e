import CoreBluetooth
import TestSupport
import Testing

/// The names and the values of Apple's CoreBluetooth are those of the module.
@Suite struct SurfaceTests {
    @Test func theModuleHasTheNamesOfTheTableAndNoOthers() throws {
        let exported = try SurfaceTable.exported()
        let expected = Set(SurfaceTable.apple.map(\.text))
        let own = Set(SurfaceTable.own.map(\.symbol))
        #expect(expected.subtracting(exported.map(\.text)).sorted() == [])
        #expect(own.subtracting(exported.map(\.symbol)).sorted() == [])
        let others = exported.filter { name in
            !expected.contains(name.text) && !own.contains(name.symbol) && !SurfaceTable.isInherited(name)
        }
        #expect(others.map(\.text) == [])
    }

    /// The compiler checks the types of what it mentions. Words are compared here: a name is missed only if one of its
    /// words stands nowhere else in the sample.
    @Test func theSampleMentionsEveryNameOfTheTable() throws {
        let sample = try RepositoryFiles.text("Tests/CoreBluetoothClients/Swift5/Surface.swift")
        // The words of a comment mention nothing.
        let code = sample.replacing(/\/\/[^\n]+/, with: "")
        let words = Set(code.split { !$0.isLetter && !$0.isNumber })
        var wanted: Set<Substring> = []
        for name in SurfaceTable.apple {
            wanted.formUnion(name.base.split(separator: "."))
            wanted.formUnion(name.labels)
        }
        #expect(wanted.subtracting(words).sorted() == [])
    }

    @Test func enumerationsHaveTheirRawValues() {
        expectCases(of: "CBManagerState") { CBManagerState(rawValue: $0) }
        expectCases(of: "CBManagerAuthorization") { CBManagerAuthorization(rawValue: $0) }
        expectCases(of: "CBPeripheralState") { CBPeripheralState(rawValue: $0) }
        expectCases(of: "CBCharacteristicWriteType") { CBCharacteristicWriteType(rawValue: $0) }
        expectCases(of: "CBPeripheralManagerConnectionLatency") { CBPeripheralManagerConnectionLatency(rawValue: $0) }
        expectCases(of: "CBConnectionEvent") { CBConnectionEvent(rawValue: $0) }
        expectCases(of: "CBChannelSoundingSessionConfiguration.Role") {
            CBChannelSoundingSessionConfiguration.Role(rawValue: $0)
        }
        expectCases(of: "CBError.Code") { CBError.Code(rawValue: $0) }
        expectCases(of: "CBATTError.Code") { CBATTError.Code(rawValue: $0) }
    }

    @Test func formerEnumerationsHaveTheirRawValues() {
        let names: any FormerNames = DeprecatedNames()
        expectCases(of: "CBCentralManagerState") { names.centralManagerState($0) }
        expectCases(of: "CBPeripheralManagerState") { names.peripheralManagerState($0) }
        expectCases(of: "CBPeripheralManagerAuthorizationStatus") { names.authorizationStatus($0) }
        #expect(names.unknownDevices == [12, 12])
    }

    @Test func optionSetsHaveTheirBits() {
        let properties: [String: CBCharacteristicProperties] = [
            "broadcast": .broadcast, "read": .read, "writeWithoutResponse": .writeWithoutResponse, "write": .write,
            "notify": .notify, "indicate": .indicate, "authenticatedSignedWrites": .authenticatedSignedWrites,
            "extendedProperties": .extendedProperties, "notifyEncryptionRequired": .notifyEncryptionRequired,
            "indicateEncryptionRequired": .indicateEncryptionRequired,
        ]
        #expect(properties.mapValues { "\($0.rawValue)" } == SurfaceTable.values(of: "CBCharacteristicProperties"))
        let permissions: [String: CBAttributePermissions] = [
            "readable": .readable, "writeable": .writeable, "readEncryptionRequired": .readEncryptionRequired,
            "writeEncryptionRequired": .writeEncryptionRequired,
        ]
        #expect(permissions.mapValues { "\($0.rawValue)" } == SurfaceTable.values(of: "CBAttributePermissions"))
        let features: [String: CBCentralManager.Feature] = [
            "extendedScanAndConnect": .extendedScanAndConnect, "channelSounding": .channelSounding,
        ]
        #expect(features.mapValues { "\($0.rawValue)" } == SurfaceTable.values(of: "CBCentralManager.Feature"))
    }

    @Test func errorTypesHaveEachCode() {
        let codes: [CBError.Code] = [
            CBError.unknown, CBError.invalidParameters, CBError.invalidHandle, CBError.notConnected, CBError.outOfSpace,
            CBError.operationCancelled, CBError.connectionTimeout, CBError.peripheralDisconnected,
            CBError.uuidNotAllowed, CBError.alreadyAdvertising, CBError.connectionFailed,
            CBError.connectionLimitReached, CBError.unknownDevice, CBError.operationNotSupported,
            CBError.peerRemovedPairingInformation, CBError.encryptionTimedOut, CBError.tooManyLEPairedDevices,
            CBError.leGattExceededBackgroundNotificationLimit, CBError.leGattNearBackgroundNotificationLimit,
            CBError.channelSoundingConfigurationFailed, CBError.channelSoundingProcedureFailed,
        ]
        #expect(codes == (0...20).map { CBError.Code(rawValue: $0) })
        let attributes: [CBATTError.Code] = [
            CBATTError.success, CBATTError.invalidHandle, CBATTError.readNotPermitted, CBATTError.writeNotPermitted,
            CBATTError.invalidPdu, CBATTError.insufficientAuthentication, CBATTError.requestNotSupported,
            CBATTError.invalidOffset, CBATTError.insufficientAuthorization, CBATTError.prepareQueueFull,
            CBATTError.attributeNotFound, CBATTError.attributeNotLong, CBATTError.insufficientEncryptionKeySize,
            CBATTError.invalidAttributeValueLength, CBATTError.unlikelyError, CBATTError.insufficientEncryption,
            CBATTError.unsupportedGroupType, CBATTError.insufficientResources,
        ]
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
        let constants: [String: String] = [
            "CBErrorDomain": CBErrorDomain,
            "CBATTErrorDomain": CBATTErrorDomain,
            "CBAdvertisementDataLocalNameKey": CBAdvertisementDataLocalNameKey,
            "CBAdvertisementDataManufacturerDataKey": CBAdvertisementDataManufacturerDataKey,
            "CBAdvertisementDataServiceDataKey": CBAdvertisementDataServiceDataKey,
            "CBAdvertisementDataServiceUUIDsKey": CBAdvertisementDataServiceUUIDsKey,
            "CBAdvertisementDataOverflowServiceUUIDsKey": CBAdvertisementDataOverflowServiceUUIDsKey,
            "CBAdvertisementDataSolicitedServiceUUIDsKey": CBAdvertisementDataSolicitedServiceUUIDsKey,
            "CBAdvertisementDataTxPowerLevelKey": CBAdvertisementDataTxPowerLevelKey,
            "CBAdvertisementDataIsConnectable": CBAdvertisementDataIsConnectable,
            "CBUUIDCharacteristicExtendedPropertiesString": CBUUIDCharacteristicExtendedPropertiesString,
            "CBUUIDCharacteristicUserDescriptionString": CBUUIDCharacteristicUserDescriptionString,
            "CBUUIDClientCharacteristicConfigurationString": CBUUIDClientCharacteristicConfigurationString,
            "CBUUIDServerCharacteristicConfigurationString": CBUUIDServerCharacteristicConfigurationString,
            "CBUUIDCharacteristicFormatString": CBUUIDCharacteristicFormatString,
            "CBUUIDCharacteristicAggregateFormatString": CBUUIDCharacteristicAggregateFormatString,
            "CBUUIDCharacteristicValidRangeString": CBUUIDCharacteristicValidRangeString,
            "CBUUIDCharacteristicObservationScheduleString": CBUUIDCharacteristicObservationScheduleString,
            "CBUUIDL2CAPPSMCharacteristicString": CBUUIDL2CAPPSMCharacteristicString,
        ]
        #expect(constants == SurfaceTable.values(of: ""))
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

    /// Expects each raw value of the table to make the case of that name.
    private func expectCases<Case>(of type: String, _ make: (Int) -> Case?) {
        let values = SurfaceTable.values(of: type)
        #expect(!values.isEmpty, "\(type) is not in the table")
        for (name, value) in values {
            let made = Int(value).flatMap { make($0) }
            #expect(made.map { "\($0)" } == name, "\(type) \(value)")
        }
    }
}

/// Deprecated names. A test that used them directly would have to be deprecated too, so a protocol has them.
private protocol FormerNames {
    func centralManagerState(_ number: Int) -> String?
    func peripheralManagerState(_ number: Int) -> String?
    func authorizationStatus(_ number: Int) -> String?
    var unknownDevices: [Int] { get }
}

private struct DeprecatedNames: FormerNames {
    @available(*, deprecated)
    func centralManagerState(_ number: Int) -> String? {
        CBCentralManagerState(rawValue: number).map { "\($0)" }
    }

    @available(*, deprecated)
    func peripheralManagerState(_ number: Int) -> String? {
        CBPeripheralManagerState(rawValue: number).map { "\($0)" }
    }

    @available(*, deprecated)
    func authorizationStatus(_ number: Int) -> String? {
        CBPeripheralManagerAuthorizationStatus(rawValue: number).map { "\($0)" }
    }

    @available(*, deprecated)
    var unknownDevices: [Int] { [CBError.unkownDevice.rawValue, CBError.Code.unkownDevice.rawValue] }
}
