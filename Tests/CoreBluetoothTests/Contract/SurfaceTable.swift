import TestSupport

/// The names of Apple's CoreBluetooth for iOS 27, with their types and raw values, written from its documentation; and
/// the names that the module has besides.
///
/// A type is a line, and each of its members an indented one: a property `name: Type`, a method
/// `name(label: Type) -> Result`, and a case or a constant with a known value `name = value`. One name is not there:
/// `CBUUID.init(cfuuid:)`, which was deprecated long ago; Linux has no `CFUUID`.
enum SurfaceTable {
    /// A public name.
    struct Name {
        /// The type that has it; empty for one that stands alone.
        let owner: String
        /// The first part of the name.
        let base: String
        /// What follows it: the type of a property, the parameters of a method, or the kind of a type.
        let declaration: String
        /// The raw value of a case, or the value of a constant.
        let value: String?

        var symbol: String { owner.isEmpty ? base : "\(owner).\(base)" }

        /// The whole name with its type.
        var text: String { symbol + declaration }

        /// The argument labels of a method.
        var labels: [Substring] {
            declaration.matches(of: /[( ](\w+):/).map { $0.output.1 }.filter { $0 != "_" }
        }
    }

    static let apple = names(
        """
        CBErrorDomain = CBErrorDomain
        CBATTErrorDomain = CBATTErrorDomain

        CBAdvertisementDataLocalNameKey = kCBAdvDataLocalName
        CBAdvertisementDataManufacturerDataKey = kCBAdvDataManufacturerData
        CBAdvertisementDataServiceDataKey = kCBAdvDataServiceData
        CBAdvertisementDataServiceUUIDsKey = kCBAdvDataServiceUUIDs
        CBAdvertisementDataOverflowServiceUUIDsKey = kCBAdvDataHashedServiceUUIDs
        CBAdvertisementDataSolicitedServiceUUIDsKey = kCBAdvDataSolicitedServiceUUIDs
        CBAdvertisementDataTxPowerLevelKey = kCBAdvDataTxPowerLevel
        CBAdvertisementDataIsConnectable = kCBAdvDataIsConnectable

        CBCentralManagerOptionShowPowerAlertKey: String
        CBCentralManagerOptionRestoreIdentifierKey: String
        CBCentralManagerOptionDeviceAccessForMedia: String

        CBCentralManagerScanOptionAllowDuplicatesKey: String
        CBCentralManagerScanOptionSolicitedServiceUUIDsKey: String

        CBConnectPeripheralOptionNotifyOnConnectionKey: String
        CBConnectPeripheralOptionNotifyOnDisconnectionKey: String
        CBConnectPeripheralOptionNotifyOnNotificationKey: String
        CBConnectPeripheralOptionStartDelayKey: String
        CBConnectPeripheralOptionEnableTransportBridgingKey: String
        CBConnectPeripheralOptionRequiresANCS: String
        CBConnectPeripheralOptionEnableAutoReconnect: String

        CBCentralManagerRestoredStatePeripheralsKey: String
        CBCentralManagerRestoredStateScanServicesKey: String
        CBCentralManagerRestoredStateScanOptionsKey: String

        CBPeripheralManagerOptionShowPowerAlertKey: String
        CBPeripheralManagerOptionRestoreIdentifierKey: String
        CBPeripheralManagerRestoredStateServicesKey: String
        CBPeripheralManagerRestoredStateAdvertisementDataKey: String

        CBUUIDCharacteristicExtendedPropertiesString = 2900
        CBUUIDCharacteristicUserDescriptionString = 2901
        CBUUIDClientCharacteristicConfigurationString = 2902
        CBUUIDServerCharacteristicConfigurationString = 2903
        CBUUIDCharacteristicFormatString = 2904
        CBUUIDCharacteristicAggregateFormatString = 2905
        CBUUIDCharacteristicValidRangeString = 2906
        CBUUIDCharacteristicObservationScheduleString = 2910
        CBUUIDL2CAPPSMCharacteristicString = ABDD3056-28FA-441D-A470-55A75A52553A

        CBL2CAPPSM: UInt16

        enum CBManagerState
            unknown = 0
            resetting = 1
            unsupported = 2
            unauthorized = 3
            poweredOff = 4
            poweredOn = 5

        enum CBCentralManagerState
            unknown = 0
            resetting = 1
            unsupported = 2
            unauthorized = 3
            poweredOff = 4
            poweredOn = 5

        enum CBPeripheralManagerState
            unknown = 0
            resetting = 1
            unsupported = 2
            unauthorized = 3
            poweredOff = 4
            poweredOn = 5

        enum CBManagerAuthorization
            notDetermined = 0
            restricted = 1
            denied = 2
            allowedAlways = 3

        enum CBPeripheralManagerAuthorizationStatus
            notDetermined = 0
            restricted = 1
            denied = 2
            authorized = 3

        enum CBPeripheralState
            disconnected = 0
            connecting = 1
            connected = 2
            disconnecting = 3

        enum CBCharacteristicWriteType
            withResponse = 0
            withoutResponse = 1

        enum CBPeripheralManagerConnectionLatency
            low = 0
            medium = 1
            high = 2

        enum CBConnectionEvent
            peerDisconnected = 0
            peerConnected = 1

        enum CBChannelSoundingSessionConfiguration.Role
            initiator = 0

        struct CBCharacteristicProperties
            broadcast = 1
            read = 2
            writeWithoutResponse = 4
            write = 8
            notify = 16
            indicate = 32
            authenticatedSignedWrites = 64
            extendedProperties = 128
            notifyEncryptionRequired = 256
            indicateEncryptionRequired = 512

        struct CBAttributePermissions
            readable = 1
            writeable = 2
            readEncryptionRequired = 4
            writeEncryptionRequired = 8

        struct CBCentralManager.Feature
            extendedScanAndConnect = 1
            channelSounding = 1024

        struct CBConnectionEventMatchingOption
            serviceUUIDs: CBConnectionEventMatchingOption
            peripheralUUIDs: CBConnectionEventMatchingOption

        enum CBError.Code
            unknown = 0
            invalidParameters = 1
            invalidHandle = 2
            notConnected = 3
            outOfSpace = 4
            operationCancelled = 5
            connectionTimeout = 6
            peripheralDisconnected = 7
            uuidNotAllowed = 8
            alreadyAdvertising = 9
            connectionFailed = 10
            connectionLimitReached = 11
            unknownDevice = 12
            operationNotSupported = 13
            peerRemovedPairingInformation = 14
            encryptionTimedOut = 15
            tooManyLEPairedDevices = 16
            leGattExceededBackgroundNotificationLimit = 17
            leGattNearBackgroundNotificationLimit = 18
            channelSoundingConfigurationFailed = 19
            channelSoundingProcedureFailed = 20
            unkownDevice: CBError.Code

        struct CBError
            init(_: CBError.Code, userInfo: [String: Any])
            code: CBError.Code
            errorCode: Int
            userInfo: [String: Any]
            errorUserInfo: [String: Any]
            localizedDescription: String
            errorDomain: String
            unknown: CBError.Code
            invalidParameters: CBError.Code
            invalidHandle: CBError.Code
            notConnected: CBError.Code
            outOfSpace: CBError.Code
            operationCancelled: CBError.Code
            connectionTimeout: CBError.Code
            peripheralDisconnected: CBError.Code
            uuidNotAllowed: CBError.Code
            alreadyAdvertising: CBError.Code
            connectionFailed: CBError.Code
            connectionLimitReached: CBError.Code
            unknownDevice: CBError.Code
            unkownDevice: CBError.Code
            operationNotSupported: CBError.Code
            peerRemovedPairingInformation: CBError.Code
            encryptionTimedOut: CBError.Code
            tooManyLEPairedDevices: CBError.Code
            leGattExceededBackgroundNotificationLimit: CBError.Code
            leGattNearBackgroundNotificationLimit: CBError.Code
            channelSoundingConfigurationFailed: CBError.Code
            channelSoundingProcedureFailed: CBError.Code

        enum CBATTError.Code
            success = 0
            invalidHandle = 1
            readNotPermitted = 2
            writeNotPermitted = 3
            invalidPdu = 4
            insufficientAuthentication = 5
            requestNotSupported = 6
            invalidOffset = 7
            insufficientAuthorization = 8
            prepareQueueFull = 9
            attributeNotFound = 10
            attributeNotLong = 11
            insufficientEncryptionKeySize = 12
            invalidAttributeValueLength = 13
            unlikelyError = 14
            insufficientEncryption = 15
            unsupportedGroupType = 16
            insufficientResources = 17

        struct CBATTError
            init(_: CBATTError.Code, userInfo: [String: Any])
            code: CBATTError.Code
            errorCode: Int
            userInfo: [String: Any]
            errorUserInfo: [String: Any]
            localizedDescription: String
            errorDomain: String
            success: CBATTError.Code
            invalidHandle: CBATTError.Code
            readNotPermitted: CBATTError.Code
            writeNotPermitted: CBATTError.Code
            invalidPdu: CBATTError.Code
            insufficientAuthentication: CBATTError.Code
            requestNotSupported: CBATTError.Code
            invalidOffset: CBATTError.Code
            insufficientAuthorization: CBATTError.Code
            prepareQueueFull: CBATTError.Code
            attributeNotFound: CBATTError.Code
            attributeNotLong: CBATTError.Code
            insufficientEncryptionKeySize: CBATTError.Code
            invalidAttributeValueLength: CBATTError.Code
            unlikelyError: CBATTError.Code
            insufficientEncryption: CBATTError.Code
            unsupportedGroupType: CBATTError.Code
            insufficientResources: CBATTError.Code

        class CBUUID
            init(string: String)
            init(data: Data)
            init(nsuuid: UUID)
            uuidString: String
            data: Data

        class CBAttribute
            uuid: CBUUID

        class CBService
            peripheral: CBPeripheral?
            isPrimary: Bool
            includedServices: [CBService]?
            characteristics: [CBCharacteristic]?

        class CBMutableService
            init(type: CBUUID, primary: Bool)
            includedServices: [CBService]?
            characteristics: [CBCharacteristic]?

        class CBCharacteristic
            service: CBService?
            properties: CBCharacteristicProperties
            value: Data?
            descriptors: [CBDescriptor]?
            isNotifying: Bool
            isBroadcasted: Bool

        class CBMutableCharacteristic
            init(type: CBUUID, properties: CBCharacteristicProperties, value: Data?, permissions: CBAttributePermissions)
            permissions: CBAttributePermissions
            subscribedCentrals: [CBCentral]?
            properties: CBCharacteristicProperties
            value: Data?
            descriptors: [CBDescriptor]?

        class CBDescriptor
            characteristic: CBCharacteristic?
            value: Any?

        class CBMutableDescriptor
            init(type: CBUUID, value: Any?)

        class CBPeer
            identifier: UUID

        class CBCentral
            maximumUpdateValueLength: Int

        class CBManager
            state: CBManagerState
            authorization: CBManagerAuthorization

        class CBCentralManager
            init()
            init(delegate: CBCentralManagerDelegate?, queue: DispatchQueue?)
            init(delegate: CBCentralManagerDelegate?, queue: DispatchQueue?, options: [String: Any]?)
            delegate: CBCentralManagerDelegate?
            isScanning: Bool
            supports(_: CBCentralManager.Feature) -> Bool
            scanForPeripherals(withServices: [CBUUID]?, options: [String: Any]?)
            stopScan()
            connect(_: CBPeripheral, options: [String: Any]?)
            cancelPeripheralConnection(_: CBPeripheral)
            retrievePeripherals(withIdentifiers: [UUID]) -> [CBPeripheral]
            retrieveConnectedPeripherals(withServices: [CBUUID]) -> [CBPeripheral]
            registerForConnectionEvents(options: [CBConnectionEventMatchingOption: Any]?)

        class CBPeripheral
            delegate: CBPeripheralDelegate?
            name: String?
            state: CBPeripheralState
            services: [CBService]?
            canSendWriteWithoutResponse: Bool
            ancsAuthorized: Bool
            rssi: NSNumber?
            discoverServices(_: [CBUUID]?)
            discoverIncludedServices(_: [CBUUID]?, for: CBService)
            discoverCharacteristics(_: [CBUUID]?, for: CBService)
            discoverDescriptors(for: CBCharacteristic)
            readValue(for: CBCharacteristic)
            readValue(for: CBDescriptor)
            writeValue(_: Data, for: CBCharacteristic, type: CBCharacteristicWriteType)
            writeValue(_: Data, for: CBDescriptor)
            maximumWriteValueLength(for: CBCharacteristicWriteType) -> Int
            setNotifyValue(_: Bool, for: CBCharacteristic)
            readRSSI()
            openL2CAPChannel(_: CBL2CAPPSM)
            startChannelSoundingSession(_: CBChannelSoundingSessionConfiguration)
            cancelChannelSoundingSession()

        class CBL2CAPChannel
            peer: CBPeer!
            inputStream: InputStream!
            outputStream: OutputStream!
            psm: CBL2CAPPSM

        class CBPeripheralManager
            init()
            init(delegate: CBPeripheralManagerDelegate?, queue: DispatchQueue?)
            init(delegate: CBPeripheralManagerDelegate?, queue: DispatchQueue?, options: [String: Any]?)
            delegate: CBPeripheralManagerDelegate?
            isAdvertising: Bool
            authorizationStatus() -> CBPeripheralManagerAuthorizationStatus
            startAdvertising(_: [String: Any]?)
            stopAdvertising()
            setDesiredConnectionLatency(_: CBPeripheralManagerConnectionLatency, for: CBCentral)
            add(_: CBMutableService)
            remove(_: CBMutableService)
            removeAllServices()
            respond(to: CBATTRequest, withResult: CBATTError.Code)
            updateValue(_: Data, for: CBMutableCharacteristic, onSubscribedCentrals: [CBCentral]?) -> Bool
            publishL2CAPChannel(withEncryption: Bool)
            unpublishL2CAPChannel(_: CBL2CAPPSM)

        class CBATTRequest
            central: CBCentral
            characteristic: CBCharacteristic
            offset: Int
            value: Data?

        class CBChannelSoundingSessionConfiguration
            init(role: CBChannelSoundingSessionConfiguration.Role)
            role: CBChannelSoundingSessionConfiguration.Role

        class CBChannelSoundingProcedureResults
            distance: Double

        protocol CBCentralManagerDelegate
            centralManagerDidUpdateState(_: CBCentralManager)
            centralManager(_: CBCentralManager, willRestoreState: [String: Any])
            centralManager(_: CBCentralManager, didDiscover: CBPeripheral, advertisementData: [String: Any], rssi: NSNumber)
            centralManager(_: CBCentralManager, didConnect: CBPeripheral)
            centralManager(_: CBCentralManager, didFailToConnect: CBPeripheral, error: Error?)
            centralManager(_: CBCentralManager, didDisconnectPeripheral: CBPeripheral, error: Error?)
            centralManager(_: CBCentralManager, didDisconnectPeripheral: CBPeripheral, \
        timestamp: CFAbsoluteTime, isReconnecting: Bool, error: Error?)
            centralManager(_: CBCentralManager, connectionEventDidOccur: CBConnectionEvent, for: CBPeripheral)
            centralManager(_: CBCentralManager, didUpdateANCSAuthorizationFor: CBPeripheral)

        protocol CBPeripheralDelegate
            peripheralDidUpdateName(_: CBPeripheral)
            peripheral(_: CBPeripheral, didModifyServices: [CBService])
            peripheralDidUpdateRSSI(_: CBPeripheral, error: Error?)
            peripheral(_: CBPeripheral, didReadRSSI: NSNumber, error: Error?)
            peripheral(_: CBPeripheral, didDiscoverServices: Error?)
            peripheral(_: CBPeripheral, didDiscoverIncludedServicesFor: CBService, error: Error?)
            peripheral(_: CBPeripheral, didDiscoverCharacteristicsFor: CBService, error: Error?)
            peripheral(_: CBPeripheral, didDiscoverDescriptorsFor: CBCharacteristic, error: Error?)
            peripheral(_: CBPeripheral, didUpdateValueFor: CBCharacteristic, error: Error?)
            peripheral(_: CBPeripheral, didWriteValueFor: CBCharacteristic, error: Error?)
            peripheral(_: CBPeripheral, didUpdateNotificationStateFor: CBCharacteristic, error: Error?)
            peripheral(_: CBPeripheral, didUpdateValueFor: CBDescriptor, error: Error?)
            peripheral(_: CBPeripheral, didWriteValueFor: CBDescriptor, error: Error?)
            peripheralIsReady(toSendWriteWithoutResponse: CBPeripheral)
            peripheral(_: CBPeripheral, didOpen: CBL2CAPChannel?, error: Error?)
            peripheral(_: CBPeripheral, didReceive: CBChannelSoundingProcedureResults?, error: Error?)
            peripheral(_: CBPeripheral, didCompleteChannelSoundingSession: Error?)

        protocol CBPeripheralManagerDelegate
            peripheralManagerDidUpdateState(_: CBPeripheralManager)
            peripheralManager(_: CBPeripheralManager, willRestoreState: [String: Any])
            peripheralManagerDidStartAdvertising(_: CBPeripheralManager, error: Error?)
            peripheralManager(_: CBPeripheralManager, didAdd: CBService, error: Error?)
            peripheralManager(_: CBPeripheralManager, central: CBCentral, didSubscribeTo: CBCharacteristic)
            peripheralManager(_: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom: CBCharacteristic)
            peripheralManager(_: CBPeripheralManager, didReceiveRead: CBATTRequest)
            peripheralManager(_: CBPeripheralManager, didReceiveWrite: [CBATTRequest])
            peripheralManagerIsReady(toUpdateSubscribers: CBPeripheralManager)
            peripheralManager(_: CBPeripheralManager, didPublishL2CAPChannel: CBL2CAPPSM, error: Error?)
            peripheralManager(_: CBPeripheralManager, didUnpublishL2CAPChannel: CBL2CAPPSM, error: Error?)
            peripheralManager(_: CBPeripheralManager, didOpen: CBL2CAPChannel?, error: Error?)
        """)

    /// What the module has besides: the system below the managers, and names that Apple's Foundation brings along.
    static let own = names(
        """
        class CoreBluetoothHost
            configure
        struct CoreBluetoothHost.Settings
            adapter
            pairing
            stateDirectory
            init
        struct CoreBluetoothHost.Pairing
            directory
            allowsCentrals
            show
            compare
            enter
            confirm
            init

        protocol CBKeyValueObservable
            observe
        enum NSKeyValueChange
            setting
            insertion
            removal
            replacement
        class NSKeyValueObservation
            invalidate
        struct NSKeyValueObservedChange
            Kind
            kind
            newValue
            oldValue
            indexes
            isPrior
        struct NSKeyValueObservingOptions
            new
            old
            initial
            prior
        protocol DispatchSourceFileSystemObject

        CFAbsoluteTime
        CFAbsoluteTimeGetCurrent
        CFTimeInterval
        NSEC_PER_SEC
        NSEC_PER_MSEC
        NSEC_PER_USEC
        USEC_PER_SEC
        CFSwapInt16
        CFSwapInt16LittleToHost
        CFSwapInt16HostToLittle
        CFSwapInt16BigToHost
        CFSwapInt16HostToBig
        CFSwapInt32
        CFSwapInt32LittleToHost
        CFSwapInt32HostToLittle
        CFSwapInt32BigToHost
        CFSwapInt32HostToBig
        CFSwapInt64
        CFSwapInt64LittleToHost
        CFSwapInt64HostToLittle
        CFSwapInt64BigToHost
        CFSwapInt64HostToBig
        autoreleasepool
        """)

    /// The beginnings of what types have because of what they conform to and inherit from.
    private static let inherited = [
        "init(rawValue:", "init?(rawValue:", "rawValue:", "== (", "~= (", "hash(into:", "hash:", "isEqual(",
        "copy(with:", "description:", "errorDescription:",
    ]

    /// Whether a name stands in neither part of the table, because it is that of a protocol or of `NSObject`.
    static func isInherited(_ name: Name) -> Bool {
        inherited.contains { (name.base + name.declaration).hasPrefix($0) }
    }

    /// Returns the raw values of a type's cases, or of the constants that stand alone, by name.
    static func values(of owner: String) -> [String: String] {
        let named = apple.filter { $0.owner == owner }.compactMap { name in name.value.map { (name.base, $0) } }
        return Dictionary(uniqueKeysWithValues: named)
    }

    // MARK: Reading

    private static let kinds: Set<Substring> = ["class", "enum", "protocol", "struct"]

    private static func names(_ table: String) -> [Name] {
        var owner = ""
        return table.split(separator: "\n").map { line in
            if line.hasPrefix(" ") { return name(line.drop { $0 == " " }, in: owner) }
            let words = line.split(separator: " ")
            guard kinds.contains(words[0]) else { return name(line, in: "") }
            owner = String(words[1])
            return Name(owner: "", base: owner, declaration: ": \(words[0])", value: nil)
        }
    }

    private static func name(_ text: Substring, in owner: String) -> Name {
        let parts = text.split(separator: " = ", maxSplits: 1)
        let symbol = parts.first ?? ""
        let base = symbol.prefix { !" (:<".contains($0) }
        return Name(
            owner: owner, base: String(base), declaration: String(symbol.dropFirst(base.count)),
            value: parts.count == 2 ? String(parts[1]) : nil)
    }

    /// Returns the public names of the module from the compiler's listing, which `make api` compares with the module.
    /// The page does not have values; a name with a value in the table has no type here either.
    static func exported() throws -> [Name] {
        let valued = Set(apple.filter { $0.value != nil }.map(\.symbol))
        let parts = try RepositoryFiles.text("Docs/users/api.md").split(separator: "\n## ")
        // Long lists of cases have several lines.
        let part = parts.first { $0.hasPrefix("Run code written for iOS") }?.replacing(",\n    ", with: ", ") ?? ""
        var (owner, isCode) = ("", false)
        var names: [Name] = []
        for line in part.split(separator: "\n") {
            if line.hasPrefix("**") {
                let heading = line.dropFirst(2).prefix { $0 != "*" }
                owner = heading == "Functions" ? "" : String(heading)
            } else if line.hasPrefix("```") {
                isCode.toggle()
            } else if isCode {
                names += declared(by: line.split(separator: "  //", maxSplits: 1).first ?? "", in: owner)
            }
        }
        return names.map { name in
            guard valued.contains(name.symbol) else { return name }
            return Name(owner: name.owner, base: name.base, declaration: "", value: nil)
        }
    }

    /// Returns what a line of the listing declares, in the form of the table.
    private static func declared(by line: Substring, in owner: String) -> [Name] {
        let words = line.split(separator: " ")
        if !owner.isEmpty, !line.hasPrefix(" ") {
            let kind = words.first { kinds.contains($0) } ?? ""
            return [Name(owner: "", base: owner, declaration: ": \(kind)", value: nil)]
        }
        let modifiers: Set<Substring> = ["class", "convenience", "override", "static", "weak"]
        let code = words.drop { modifiers.contains($0) }.joined(separator: " ")
        var text = String(code.split(separator: " {", maxSplits: 1).first ?? "")
        text.replace(" : ", with: ": ")
        text.replace(/\(any (\w+)\)/) { $0.output.1 }
        text.replace("any ", with: "")
        if text.hasPrefix("func ") || text.hasPrefix("init") {
            // Without the names of the parameters, and without their defaults.
            text.replace(/(\w+) \w+:/) { "\($0.output.1):" }
            text.replace(/\s=\s[^,)]+/, with: "")
            return [name(text.hasPrefix("func ") ? text.dropFirst(5) : text[...], in: owner)]
        }
        let rest = text.drop { $0 != " " }.dropFirst().replacing(" = ", with: ": ")
        let bases = rest.prefix { $0 != ":" }
        return bases.split(separator: ", ").map { base in
            Name(owner: owner, base: String(base), declaration: String(rest.dropFirst(bases.count)), value: nil)
        }
    }
}
