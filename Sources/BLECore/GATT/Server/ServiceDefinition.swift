/// A service to publish, with its characteristics in the order of their handles.
///
/// `ServerDatabase` adds what the specification prescribes: the declarations, the Client Characteristic Configuration
/// of a characteristic that can notify or indicate, and its Extended Properties.
///
/// Spec: Core Vol 3 Part G, 3.1.
package struct ServiceDefinition: Hashable, Sendable {
    /// A service that another one includes.
    package enum Include: Hashable, Sendable {
        /// A published service, by the handle of its declaration.
        case published(AttributeHandle)
        /// A service that is published in the same call, by its position.
        case position(Int)
    }

    /// The service's UUID.
    package var uuid: BluetoothUUID
    /// A Boolean value that indicates whether the service is primary.
    package var isPrimary: Bool
    /// The included services.
    package var includes: [Include]
    /// The characteristics.
    package var characteristics: [CharacteristicDefinition]

    /// Creates a service.
    package init(
        _ uuid: BluetoothUUID, isPrimary: Bool = true, includes: [Include] = [],
        _ characteristics: [CharacteristicDefinition] = []
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.includes = includes
        self.characteristics = characteristics
    }
}

/// A characteristic of a `ServiceDefinition`.
///
/// Spec: Core Vol 3 Part G, 3.3.
package struct CharacteristicDefinition: Hashable, Sendable {
    /// The characteristic's UUID.
    package var uuid: BluetoothUUID
    /// The operations that clients may perform.
    package var properties: CharacteristicProperties
    /// The properties beyond the first eight; a descriptor is added if there are any.
    package var extendedProperties: GATTDescriptor.ExtendedProperties
    /// The value, or who provides it.
    package var value: DefinedValue
    /// The security that clients need.
    package var access: AttributeAccess
    /// Further descriptors.
    package var descriptors: [DescriptorDefinition]

    /// Creates a characteristic.
    package init(
        _ uuid: BluetoothUUID, _ properties: CharacteristicProperties,
        extendedProperties: GATTDescriptor.ExtendedProperties = [], value: DefinedValue,
        access: AttributeAccess = AttributeAccess(), descriptors: [DescriptorDefinition] = []
    ) {
        self.uuid = uuid
        self.properties = properties
        self.extendedProperties = extendedProperties
        self.value = value
        self.access = access
        self.descriptors = descriptors
    }
}

/// A descriptor of a `CharacteristicDefinition`, except for those that the database adds itself.
///
/// Spec: Core Vol 3 Part G, 3.3.3.
package struct DescriptorDefinition: Hashable, Sendable {
    /// The descriptor's UUID.
    package var uuid: BluetoothUUID
    /// The value, or who provides it.
    package var value: DefinedValue
    /// A Boolean value that indicates whether clients may write it.
    package var isWritable: Bool
    /// The security that clients need.
    package var access: AttributeAccess

    /// Creates a descriptor.
    package init(
        _ uuid: BluetoothUUID, value: DefinedValue, isWritable: Bool = false,
        access: AttributeAccess = AttributeAccess()
    ) {
        self.uuid = uuid
        self.value = value
        self.isWritable = isWritable
        self.access = access
    }
}

/// The value of a published characteristic or descriptor.
package enum DefinedValue: Hashable, Sendable {
    /// A value that never changes. The attribute cannot be written.
    case fixed([UInt8])
    /// A value that the database keeps. With a fixed length, a shorter write replaces the beginning only, and a longer
    /// one is refused; otherwise a write replaces the value.
    case stored([UInt8], isFixedLength: Bool = false)
    /// A value that the application returns and takes. It is asked once for all parts of a long value.
    case handled
    /// A value that the application returns and takes. It is asked for each part of a long value.
    case handledInParts
}
