public import BLECore

/// The services of a `VirtualPeripheral`, in handle order, described in a few lines.
///
///     let lamp = VirtualDevice(name: "Lamp", services: [
///         VirtualService(0xFFF0, [
///             VirtualCharacteristic(0xFFF1, [.read, .write], value: [0x01]),
///             VirtualCharacteristic(0xFFF2, .notify, plan: NotifyPlan([[0x05], [0x06]], every: .milliseconds(100))),
///         ])
///     ])
///
/// Handles begin at 1 and are consecutive: the service, then each characteristic's declaration, value, client
/// configuration (if it can notify or indicate) and descriptors. Preset devices are `heartRate`, `uart` and others.
public struct VirtualDevice: Sendable {
    /// The device's name. It has no effect on the services.
    public var name: String
    /// The services, in handle order.
    public var services: [VirtualService]
    /// The maximum MTU that the device accepts, 23 to 517.
    public var maximumMTU: UInt16
    /// The way in which the device pairs; `nil` if it cannot.
    public var security: VirtualSecurity?

    /// Creates a device.
    public init(
        name: String, services: [VirtualService], maximumMTU: UInt16 = 517, security: VirtualSecurity? = nil
    ) {
        self.name = name
        self.services = services
        self.maximumMTU = maximumMTU
        self.security = security
    }
}

/// A service of a `VirtualDevice`.
public struct VirtualService: Sendable {
    /// The service's UUID.
    public var uuid: BluetoothUUID
    /// A Boolean value that indicates whether this is a primary service; clients find secondary services only through
    /// includes.
    public var isPrimary: Bool
    /// The included services, as indices into the device's list of services.
    public var includes: [Int]
    /// The characteristics, in handle order.
    public var characteristics: [VirtualCharacteristic]
    /// The service's handle; `nil`, or a handle already in use, selects the next one.
    public var handle: AttributeHandle?

    /// Creates a service.
    public init(
        _ uuid: BluetoothUUID, isPrimary: Bool = true, includes: [Int] = [], handle: AttributeHandle? = nil,
        _ characteristics: [VirtualCharacteristic]
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.includes = includes
        self.handle = handle
        self.characteristics = characteristics
    }
}

/// A characteristic of a `VirtualService`.
public struct VirtualCharacteristic: Sendable {
    /// The characteristic's UUID.
    public var uuid: BluetoothUUID
    /// The properties of the declaration. Reads and writes that are not listed are rejected.
    public var properties: CharacteristicProperties
    /// The initial value, at most 512 bytes.
    public var value: [UInt8]
    /// The action on a read, instead of returning the value.
    public var onRead: ReadAction?
    /// The action on a write, in addition to storing the value.
    public var onWrite: WriteAction?
    /// The values that are sent once a client has subscribed.
    public var plan: NotifyPlan?
    /// Further descriptors, except for the client configuration.
    public var descriptors: [VirtualDescriptor]
    /// The security that reads and writes require.
    public var protection: VirtualProtection

    /// Creates a characteristic.
    public init(
        _ uuid: BluetoothUUID, _ properties: CharacteristicProperties, value: [UInt8] = [],
        onRead: ReadAction? = nil, onWrite: WriteAction? = nil, plan: NotifyPlan? = nil,
        descriptors: [VirtualDescriptor] = [], protection: VirtualProtection = .none
    ) {
        self.uuid = uuid
        self.properties = properties
        self.value = value
        self.onRead = onRead
        self.onWrite = onWrite
        self.plan = plan
        self.descriptors = descriptors
        self.protection = protection
    }
}

/// A descriptor of a `VirtualCharacteristic`, read-only.
public struct VirtualDescriptor: Sendable {
    /// The descriptor's UUID.
    public var uuid: BluetoothUUID
    /// The descriptor's value.
    public var value: [UInt8]

    /// Creates a descriptor.
    public init(_ uuid: BluetoothUUID, value: [UInt8]) {
        self.uuid = uuid
        self.value = value
    }
}

/// The action of a virtual device on a read.
public enum ReadAction: Sendable {
    /// Rejects the read with this error.
    case refuse(ATTErrorCode)
    /// Returns the result of the closure, which is called for each part of a long value.
    case compute(@Sendable () -> [UInt8])
}

/// The action of a virtual device on a write.
public enum WriteAction: Sendable {
    /// Rejects the write with this error and keeps the old value. Write commands are dropped without an error.
    case refuse(ATTErrorCode)
    /// Sends the written value from the first characteristic with this UUID, if the client has subscribed to it. A
    /// value that one packet has no room for (the MTU less three bytes) is sent in several, in order, as by a serial
    /// line.
    case echo(BluetoothUUID)
    /// Calls the closure; an error rejects the write.
    case call(@Sendable ([UInt8]) -> ATTErrorCode?)
    /// Sends the values that the closure returns for the written one, in their order, from the first characteristic
    /// with this UUID, if the client has subscribed to it. They follow the response to the write, as those of a control
    /// point do.
    case reply(BluetoothUUID, @Sendable ([UInt8]) -> [[UInt8]])
}

/// A series of values that a characteristic sends once a client has subscribed.
///
/// The plan restarts with every connection and stops when the client unsubscribes. It uses indications if the client
/// enabled only those.
public struct NotifyPlan: Sendable, Hashable {
    /// The values, sent in turn.
    public var values: [[UInt8]]
    /// The time between two values.
    public var interval: Duration
    /// The number of values to send, or `nil` for no limit.
    public var count: Int?

    /// Creates a plan.
    public init(_ values: [[UInt8]], every interval: Duration, count: Int? = nil) {
        self.values = values
        self.interval = interval
        self.count = count
    }
}
