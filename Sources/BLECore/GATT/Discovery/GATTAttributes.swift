/// One service of a peer: a group of attributes that belong together.
///
/// Spec: Service Definition, Core Vol 3 Part G, 3.1.
public struct GATTService: Hashable, Sendable {
    /// The handles from the declaration to the last attribute of the group.
    public var handles: ClosedRange<AttributeHandle>
    /// What kind of service it is.
    public var uuid: BluetoothUUID
    /// Whether it stands on its own; a secondary service has a meaning only where another one includes it.
    public var isPrimary: Bool
    /// References to other services, lowest handle first. They may form cycles.
    public var includes: [GATTInclude]

    /// A service with these handles; includes are listed only by a full discovery.
    public init(
        handles: ClosedRange<AttributeHandle>, uuid: BluetoothUUID, isPrimary: Bool = true, includes: [GATTInclude] = []
    ) {
        self.handles = handles
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.includes = includes
    }
}

/// A reference from one service to another.
///
/// Spec: Include Definition, Core Vol 3 Part G, 3.2.
public struct GATTInclude: Hashable, Sendable {
    /// The handle of the include declaration.
    public var handle: AttributeHandle
    /// The handles of the service it points to, as the peer gave them.
    public var handles: ClosedRange<AttributeHandle>
    /// What kind of service it points to; `nil` when the peer would not say.
    public var uuid: BluetoothUUID?

    /// A reference that stands at `handle` and points to the service at `handles`.
    public init(handle: AttributeHandle, handles: ClosedRange<AttributeHandle>, uuid: BluetoothUUID?) {
        self.handle = handle
        self.handles = handles
        self.uuid = uuid
    }
}

/// One characteristic of a peer: a value, what can be done with it, and the handles of its descriptors.
///
/// Spec: Characteristic Definition, Core Vol 3 Part G, 3.3.
public struct GATTCharacteristic: Hashable, Sendable {
    /// The handle of the declaration.
    public var declarationHandle: AttributeHandle
    /// The handle of the value: the one to read, write and subscribe to.
    public var valueHandle: AttributeHandle
    /// The last handle that can hold a descriptor; equal to `valueHandle` when there is no room for one.
    public var endHandle: AttributeHandle
    /// What the peer says can be done with the value.
    public var properties: CharacteristicProperties
    /// What kind of value it is.
    public var uuid: BluetoothUUID

    /// A characteristic with these handles; an `endHandle` in front of the value is lifted to the value.
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

    /// The handles behind the value, where descriptors are; `nil` when there are none.
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
    /// What kind of descriptor it is.
    public var uuid: BluetoothUUID
    /// Whether nobody asked for its type: it is the only attribute behind a value that can be subscribed to, and such
    /// a value must have a Client Characteristic Configuration.
    public var isInferred: Bool

    /// A descriptor at `handle`.
    public init(handle: AttributeHandle, uuid: BluetoothUUID, isInferred: Bool = false) {
        self.handle = handle
        self.uuid = uuid
        self.isInferred = isInferred
    }
}
