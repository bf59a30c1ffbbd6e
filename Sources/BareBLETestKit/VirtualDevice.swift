public import BLECore

/// What a `VirtualPeripheral` serves: its services in the order of their handles, described in a few lines.
///
///     let lamp = VirtualDevice(name: "Lamp", services: [
///         VirtualService(0xFFF0, [
///             VirtualCharacteristic(0xFFF1, [.read, .write], value: [0x01]),
///             VirtualCharacteristic(0xFFF2, .notify, plan: NotifyPlan([[0x05], [0x06]], every: .milliseconds(100))),
///         ])
///     ])
///
/// Handles begin at 1 and follow one another: the service, then each characteristic's declaration, value, client
/// configuration (if it can notify or indicate) and descriptors. Ready-made devices are `heartRate`, `uart` and others.
public struct VirtualDevice: Sendable {
    /// What the device calls itself. It has no effect on the services.
    public var name: String
    /// The services, in the order of their handles.
    public var services: [VirtualService]
    /// The largest MTU that the device agrees to, 23 to 517.
    public var maximumMTU: UInt16

    /// Describes a device.
    public init(name: String, services: [VirtualService], maximumMTU: UInt16 = 517) {
        self.name = name
        self.services = services
        self.maximumMTU = maximumMTU
    }
}

/// A service of a `VirtualDevice`.
public struct VirtualService: Sendable {
    /// What kind of service it is.
    public var uuid: BluetoothUUID
    /// Whether clients find it by themselves; else only through another service's include.
    public var isPrimary: Bool
    /// The places in the device's list of the services that this one includes.
    public var includes: [Int]
    /// The characteristics, in the order of their handles.
    public var characteristics: [VirtualCharacteristic]
    /// The service's own handle; `nil`, and any handle that is taken already, means the next one.
    public var handle: AttributeHandle?

    /// Describes a service.
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
    /// What kind of value it is.
    public var uuid: BluetoothUUID
    /// What its declaration says that can be done with it. Reads and writes that are not listed are refused.
    public var properties: CharacteristicProperties
    /// The value at the beginning; at most 512 bytes.
    public var value: [UInt8]
    /// What the device does when the value is read, instead of giving it out.
    public var onRead: ReadAction?
    /// What the device does when the value is written, besides keeping it.
    public var onWrite: WriteAction?
    /// The values it sends unasked, once a client has asked for them.
    public var plan: NotifyPlan?
    /// Further descriptors; the client configuration needs no mention.
    public var descriptors: [VirtualDescriptor]

    /// Describes a characteristic.
    public init(
        _ uuid: BluetoothUUID, _ properties: CharacteristicProperties, value: [UInt8] = [],
        onRead: ReadAction? = nil, onWrite: WriteAction? = nil, plan: NotifyPlan? = nil,
        descriptors: [VirtualDescriptor] = []
    ) {
        self.uuid = uuid
        self.properties = properties
        self.value = value
        self.onRead = onRead
        self.onWrite = onWrite
        self.plan = plan
        self.descriptors = descriptors
    }
}

/// A descriptor of a `VirtualCharacteristic`, readable and not writable.
public struct VirtualDescriptor: Sendable {
    /// What kind of descriptor it is.
    public var uuid: BluetoothUUID
    /// Its value.
    public var value: [UInt8]

    /// Describes a descriptor.
    public init(_ uuid: BluetoothUUID, value: [UInt8]) {
        self.uuid = uuid
        self.value = value
    }
}

/// What a virtual device does when a value is read.
public enum ReadAction: Sendable {
    /// It refuses with this error.
    case refuse(ATTErrorCode)
    /// It gives out what the closure returns. A long value is asked for once a piece.
    case compute(@Sendable () -> [UInt8])
}

/// What a virtual device does when a value is written.
public enum WriteAction: Sendable {
    /// It refuses with this error, and keeps the old value. Write commands are refused in silence.
    case refuse(ATTErrorCode)
    /// It sends the written value from the first characteristic of that kind, if the client has asked for its values.
    case echo(BluetoothUUID)
    /// It calls the closure; an error refuses the write.
    case call(@Sendable ([UInt8]) -> ATTErrorCode?)
}

/// The values that a characteristic sends unasked, in a row, once a client has switched them on.
///
/// The plan starts anew with every connection, stops when the client switches it off, and uses indications where the
/// client asked for those alone.
public struct NotifyPlan: Sendable, Hashable {
    /// The values, used in turn.
    public var values: [[UInt8]]
    /// The time between two values.
    public var interval: Duration
    /// How many values are sent; `nil` for no end.
    public var count: Int?

    /// Describes a plan.
    public init(_ values: [[UInt8]], every interval: Duration, count: Int? = nil) {
        self.values = values
        self.interval = interval
        self.count = count
    }
}
