/// One service of a peer: a group of related attributes.
///
/// Spec: Service Definition, Core Vol 3 Part G, 3.1.
public struct GATTService: Hashable, Sendable {
    /// The handles from the declaration to the last attribute of the group.
    public var handles: ClosedRange<AttributeHandle>
    /// The type of the service.
    public var uuid: BluetoothUUID
    /// A Boolean value that indicates whether the service is primary; a secondary service is only used where another
    /// one includes it.
    public var isPrimary: Bool
    /// References to other services, lowest handle first. They may form cycles.
    public var includes: [Include]

    /// Creates a service with these handles; only a full discovery lists includes.
    public init(
        handles: ClosedRange<AttributeHandle>, uuid: BluetoothUUID, isPrimary: Bool = true, includes: [Include] = []
    ) {
        self.handles = handles
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.includes = includes
    }
}

extension GATTService {
    /// A reference from one service to another.
    ///
    /// Spec: Include Definition, Core Vol 3 Part G, 3.2.
    public struct Include: Hashable, Sendable {
        /// The handle of the include declaration.
        public var handle: AttributeHandle
        /// The handles of the included service, as the peer sent them.
        public var handles: ClosedRange<AttributeHandle>
        /// The type of the included service; `nil` if the peer refused to report it.
        public var uuid: BluetoothUUID?

        /// Creates a reference that is declared at `handle` to the service at `handles`.
        public init(handle: AttributeHandle, handles: ClosedRange<AttributeHandle>, uuid: BluetoothUUID?) {
            self.handle = handle
            self.handles = handles
            self.uuid = uuid
        }
    }
}

/// The former name of `GATTService.Include`.
@available(*, deprecated, renamed: "GATTService.Include")
public typealias GATTInclude = GATTService.Include

/// One characteristic of a peer: a value, its properties, and the handles of its descriptors.
///
/// Spec: Characteristic Definition, Core Vol 3 Part G, 3.3.
public struct GATTCharacteristic: Hashable, Sendable {
    /// The handle of the declaration.
    public var declarationHandle: AttributeHandle
    /// The handle of the value: the one to read, write and subscribe to.
    public var valueHandle: AttributeHandle
    /// The last handle that can hold a descriptor; equal to `valueHandle` if there is none.
    public var endHandle: AttributeHandle
    /// The operations that the peer declares for the value.
    public var properties: CharacteristicProperties
    /// The type of the value.
    public var uuid: BluetoothUUID

    /// Creates a characteristic with these handles; an `endHandle` before the value is raised to the value's.
    public init(
        declarationHandle: AttributeHandle, valueHandle: AttributeHandle, endHandle: AttributeHandle,
        properties: CharacteristicProperties, uuid: BluetoothUUID
    ) {
        self.declarationHandle = declarationHandle
        self.valueHandle = valueHandle
        self.endHandle = max(endHandle, valueHandle)
        self.properties = properties
        self.uuid = uuid
    }

    /// The handles after the value, where descriptors are; `nil` if there are none.
    public var descriptorHandles: ClosedRange<AttributeHandle>? {
        endHandle > valueHandle ? (valueHandle &+ 1)...endHandle : nil
    }

    /// Every handle of the characteristic, from the declaration to the last descriptor.
    public var handles: ClosedRange<AttributeHandle> {
        min(declarationHandle, endHandle)...endHandle
    }
}

/// One descriptor of a characteristic; or any other attribute that is neither a declaration nor a value.
///
/// Spec: Characteristic Descriptor Declarations, Core Vol 3 Part G, 3.3.3.
public struct GATTDescriptor: Hashable, Sendable {
    /// The handle to read and write.
    public var handle: AttributeHandle
    /// The type of the descriptor.
    public var uuid: BluetoothUUID
    /// A Boolean value that indicates whether the type was inferred: the descriptor is the only attribute after a
    /// value that can be subscribed to, and such a value must have a Client Characteristic Configuration.
    public var isInferred: Bool

    /// Creates a descriptor at `handle`.
    public init(handle: AttributeHandle, uuid: BluetoothUUID, isInferred: Bool = false) {
        self.handle = handle
        self.uuid = uuid
        self.isInferred = isInferred
    }
}

extension GATTCharacteristic {
    /// Decodes the value of a declaration: properties 1 | value handle 2 | UUID 2 or 16.
    package init?(_ entry: ATTReadByTypeResponse.Entry) {
        var reader = ByteReader(entry.value.span)
        guard let properties = reader.u8(), let value = reader.u16(), let uuid = reader.uuid(reader.remaining) else {
            return nil
        }
        self.init(
            declarationHandle: entry.handle, valueHandle: value, endHandle: value,
            properties: CharacteristicProperties(rawValue: properties), uuid: uuid)
    }
}

extension GATTService.Include {
    /// Decodes the value of a declaration: first handle 2 | last handle 2 | UUID 2 or nothing.
    package init?(_ entry: ATTReadByTypeResponse.Entry) {
        var reader = ByteReader(entry.value.span)
        guard let first = reader.u16(), let last = reader.u16(), first > 0, first <= last else { return nil }
        self.init(handle: entry.handle, handles: first...last, uuid: reader.uuid(reader.remaining))
    }
}
