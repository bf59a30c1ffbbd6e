/// Names a characteristic and the type of its value.
///
/// ```swift
/// extension CharacteristicKey where Value == TankLevel {
///     static var tankLevel: Self { Self("c0de0001-8f3b-4a6e-9d2c-5b7e1f0a2d34") }
/// }
/// ```
///
/// Identity is the handle, not the UUID: where a peer has several characteristics of one UUID, the service and the index
/// say which one is meant.
public struct CharacteristicKey<Value>: Hashable, Sendable {
    /// The characteristic's type.
    public let uuid: BluetoothUUID
    /// The type of the service that it must be in; `nil` for any.
    public let service: BluetoothUUID?
    /// Which one of those that match, in the order of their handles, from 0; `nil` says that there is one only.
    public let index: Int?

    /// A key for the characteristic with this UUID.
    public init(_ uuid: BluetoothUUID, in service: BluetoothUUID? = nil, index: Int? = nil) {
        self.uuid = uuid
        self.service = service
        self.index = index
    }

    /// The same key for one of several that match, counted from 0 in the order of their handles.
    public func at(_ index: Int) -> Self {
        Self(uuid, in: service, index: index)
    }
}
