public import BLECore

/// A service that this program offers to centrals.
///
/// ```swift
/// let heartRate = LocalService(
///     0x180D,
///     [
///         LocalCharacteristic(.heartRateMeasurement, .notify),
///         LocalCharacteristic(.bodySensorLocation, .read, value: .fixed([0x01])),
///     ])
/// ```
///
/// `LocalPeripheral.publish(_:)` adds what the specification prescribes: the declarations, the Client Characteristic
/// Configuration of a characteristic that can notify or indicate, and its Extended Properties.
///
/// Spec: Core Vol 3 Part G, 3.1.
public struct LocalService: Sendable {
    /// Writes the values that one reliable write has for a service: all of them, or by throwing none.
    public typealias BatchHandler = @Sendable ([LocalValue.WriteRequest]) async throws -> Void

    /// The service's UUID.
    public var uuid: BluetoothUUID
    /// A Boolean value that indicates whether the service is primary.
    public var isPrimary: Bool
    /// Published services that this one includes.
    public var includes: [PublishedService]
    /// The characteristics, in the order of their handles.
    public var characteristics: [LocalCharacteristic]
    /// Takes the values that a reliable write has for this service, where it has several; `nil` calls the handlers of
    /// their characteristics one after the other. Values of descriptors are not among them: the handlers of those take
    /// them.
    ///
    /// Before the first handler is called, every value of a reliable write is known to be permitted: the properties,
    /// the security of the link, the authorization and the lengths are checked. Handlers are then called one after the
    /// other, in the order in which the central has first named a value of theirs. One that throws ends the write: the
    /// handlers after it are not called, and no stored value of the write is changed. What an earlier handler has taken
    /// stays. So a write is all or nothing for the values of one service with this handler, and for stored values; not
    /// for those of several services with handlers.
    ///
    /// Spec: ATT_EXECUTE_WRITE_REQ, Core Vol 3 Part F, 3.4.6.3.
    public var batchHandler: BatchHandler?

    /// Creates a service.
    public init(
        _ uuid: BluetoothUUID, isPrimary: Bool = true, includes: [PublishedService] = [],
        _ characteristics: [LocalCharacteristic], batchHandler: BatchHandler? = nil
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.includes = includes
        self.characteristics = characteristics
        self.batchHandler = batchHandler
    }
}

/// A characteristic of a `LocalService`.
///
/// Spec: Core Vol 3 Part G, 3.3.
public struct LocalCharacteristic: Sendable {
    /// The characteristic's UUID.
    public var uuid: BluetoothUUID
    /// The operations that centrals may perform.
    public var properties: CharacteristicProperties
    /// The properties beyond the first eight.
    public var extendedProperties: GATTDescriptor.ExtendedProperties
    /// The value, or the handlers that provide and take it.
    public var value: LocalValue
    /// The security that centrals need.
    public var access: AttributeAccess
    /// Further descriptors, except for 0x2900, 0x2902 and 0x2903.
    public var descriptors: [LocalDescriptor]

    /// Creates a characteristic. Without a value it is stored, and empty at first.
    public init(
        _ uuid: BluetoothUUID, _ properties: CharacteristicProperties, value: LocalValue = .stored([]),
        access: AttributeAccess = AttributeAccess(), descriptors: [LocalDescriptor] = [],
        extendedProperties: GATTDescriptor.ExtendedProperties = []
    ) {
        self.uuid = uuid
        self.properties = properties
        self.extendedProperties = extendedProperties
        self.value = value
        self.access = access
        self.descriptors = descriptors
    }

    /// Creates a characteristic with the UUID of a key.
    public init<Value>(
        _ key: CharacteristicKey<Value>, _ properties: CharacteristicProperties, value: LocalValue = .stored([]),
        access: AttributeAccess = AttributeAccess(), descriptors: [LocalDescriptor] = []
    ) {
        self.init(key.uuid, properties, value: value, access: access, descriptors: descriptors)
    }
}

/// A descriptor of a `LocalCharacteristic`.
///
/// Spec: Core Vol 3 Part G, 3.3.3.
public struct LocalDescriptor: Sendable {
    /// The descriptor's UUID.
    public var uuid: BluetoothUUID
    /// The value, or the handlers that provide and take it.
    public var value: LocalValue
    /// A Boolean value that indicates whether centrals may write it.
    public var isWritable: Bool
    /// The security that centrals need.
    public var access: AttributeAccess

    /// Creates a descriptor.
    public init(
        _ uuid: BluetoothUUID, value: LocalValue, isWritable: Bool = false,
        access: AttributeAccess = AttributeAccess()
    ) {
        self.uuid = uuid
        self.value = value
        self.isWritable = isWritable
        self.access = access
    }

    /// The Characteristic User Description, a text.
    public static func description(_ text: String) -> LocalDescriptor {
        LocalDescriptor(0x2901, value: .fixed(Array(text.utf8)))
    }
}

/// The value of a characteristic or descriptor that this program offers.
public struct LocalValue: Sendable {
    /// Returns the whole value; the library sends the parts that a central asks for.
    public typealias ReadHandler = @Sendable (ReadRequest) async throws -> [UInt8]
    /// Takes a value; returning accepts it.
    public typealias WriteHandler = @Sendable (WriteRequest) async throws -> Void

    enum Content: Sendable {
        case fixed([UInt8])
        case stored([UInt8], isFixedLength: Bool)
        case handled(read: ReadHandler?, write: WriteHandler?, isReadInParts: Bool)
    }

    let content: Content

    /// A value that never changes; centrals cannot write it.
    public static func fixed(_ bytes: [UInt8]) -> LocalValue { LocalValue(content: .fixed(bytes)) }

    /// A value that never changes, encoded.
    public static func fixed<Value: GATTWritable>(_ value: Value) -> LocalValue { .fixed(value.valueBytes) }

    /// A value that the library keeps. Centrals read it, and write it if the properties permit; `LocalPeripheral.set`
    /// and `update` change it too. Each write of a central is a `LocalPeripheral.Event.written`.
    ///
    /// - Parameters:
    ///   - bytes: The first value.
    ///   - isFixedLength: Whether a shorter write replaces the beginning only, and a longer one is refused.
    ///     Otherwise a write replaces the value.
    public static func stored(_ bytes: [UInt8], isFixedLength: Bool = false) -> LocalValue {
        LocalValue(content: .stored(bytes, isFixedLength: isFixedLength))
    }

    /// A value that closures provide and take.
    ///
    /// They run on the event loop, one at a time for each central, so they must await and not block. A closure that
    /// throws `ATTRefusal` has the request refused with its code, any other error with Unlikely Error (0x0E), and so
    /// has one that returns more than 512 bytes. A central waits 30 s for a response: after 20 s the request is refused
    /// with that code, and the closure's task is cancelled, as it is when the link ends. A closure must end then: while
    /// 64 more of an attribute run than there are links, its requests are refused with Insufficient Resources (0x11). A
    /// request that reads several values, or that `LocalPeripheral.Settings.authorize` decides about first, has these
    /// 20 s for all. What fails without an `ATTRefusal` is logged.
    public static func handled(read: ReadHandler? = nil, write: WriteHandler? = nil) -> LocalValue {
        LocalValue(content: .handled(read: read, write: write, isReadInParts: false))
    }

    /// A long value that closures provide and take by pieces, with the limits of time of `handled(read:write:)`.
    ///
    /// - Parameters:
    ///   - read: Returns the piece that begins at `LocalValue.ReadRequest.offset`, for each response. A response
    ///     carries `ConnectedCentral.mtu - 1` bytes; what is more is not sent. A central takes a piece of fewer bytes
    ///     for the end of the value, and may read the pieces in any order, or some of them alone. For an offset beyond
    ///     the end of the value, throw `ATTRefusal` with `.invalidOffset`; for one beyond 512, the greatest length, the
    ///     library refuses by itself. A piece that would make the value longer than that is refused with Unlikely Error
    ///     (0x0E).
    ///   - write: Takes a piece that begins at `LocalValue.WriteRequest.offset`. Pieces that a central prepares come
    ///     when it has them executed, those that follow on each other as one. What was taken before a piece that is
    ///     refused stays, unless the service has a `LocalService.batchHandler`.
    ///
    /// Spec: ATT_READ_BLOB_REQ and ATT_PREPARE_WRITE_REQ, Core Vol 3 Part F, 3.4.4.5 and 3.4.6.1.
    public static func pieces(read: ReadHandler? = nil, write: WriteHandler? = nil) -> LocalValue {
        guard let read else { return LocalValue(content: .handled(read: nil, write: write, isReadInParts: true)) }
        let whole: ReadHandler = { request in
            guard request.offset <= ATTLimits.valueLength else { throw ATTRefusal(.invalidOffset) }
            let piece = try await read(request)
            // The server sends only what is asked for.
            return [UInt8](repeating: 0, count: request.offset) + piece
        }
        return LocalValue(content: .handled(read: whole, write: write, isReadInParts: true))
    }
}

extension LocalValue {
    /// A request of a central to read a value.
    public struct ReadRequest: Sendable {
        /// The central.
        public let central: ConnectedCentral
        /// The first byte that the central wants. A handler returns the whole value all the same, unless the value is
        /// one of `LocalValue.pieces(read:write:)`.
        public let offset: Int
    }

    /// A request of a central to write a value.
    public struct WriteRequest: Sendable {
        /// The central.
        public let central: ConnectedCentral
        /// The characteristic; of a descriptor, the one that it belongs to.
        public let characteristic: PublishedCharacteristic
        /// The first byte of the attribute's value to replace; 0 unless the central continues a long value.
        public let offset: Int
        /// The value.
        public let value: [UInt8]
        /// A Boolean value that indicates whether the central waits for no response, so that a refusal has no effect.
        package let isCommand: Bool
    }
}

/// The refusal of a request by a handler.
public struct ATTRefusal: Error, Hashable, Sendable {
    /// The error code that the central receives: one of the protocol's, or 0x80 to 0x9F for those of the application.
    public let code: ATTErrorCode

    /// Creates a refusal.
    public init(_ code: ATTErrorCode) {
        self.code = code
    }
}

/// A service that a `LocalPeripheral` offers.
public struct PublishedService: Identifiable, Hashable, Sendable {
    /// The handle of its declaration.
    public let id: AttributeHandle
    /// The service's UUID.
    public let uuid: BluetoothUUID
    /// The handles of its attributes.
    public let handles: ClosedRange<AttributeHandle>
    /// Its characteristics, in the order in which they were declared.
    public let characteristics: [PublishedCharacteristic]
}

/// A characteristic that a `LocalPeripheral` offers.
public struct PublishedCharacteristic: Identifiable, Hashable, Sendable {
    /// The handle of its value.
    public let id: AttributeHandle
    /// The characteristic's UUID.
    public let uuid: BluetoothUUID
    /// The UUID of its service.
    public let service: BluetoothUUID
    /// The operations that centrals may perform.
    public let properties: CharacteristicProperties
}
