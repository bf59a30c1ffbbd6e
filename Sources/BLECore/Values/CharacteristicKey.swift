/// Identifies a characteristic and the type of its value.
///
/// ```swift
/// extension CharacteristicKey where Value == TankLevel {
///     static var tankLevel: Self { Self("c0de0001-8f3b-4a6e-9d2c-5b7e1f0a2d34") }
/// }
/// ```
///
/// A characteristic's identity is its handle, not its UUID: if a peer has several characteristics with one UUID, the
/// service and the index select one.
public struct CharacteristicKey<Value>: Hashable, Sendable {
    /// The characteristic's UUID.
    public let uuid: BluetoothUUID
    /// The UUID of the service that contains it, or `nil` for any.
    public let service: BluetoothUUID?
    /// The index among the matching characteristics, in handle order from 0, or `nil` if there is only one.
    public let index: Int?

    /// Creates a key for the characteristic with this UUID.
    public init(_ uuid: BluetoothUUID, in service: BluetoothUUID? = nil, index: Int? = nil) {
        self.uuid = uuid
        self.service = service
        self.index = index
    }

    /// Returns the same key for one of several matching characteristics, by index in handle order from 0.
    public func at(_ index: Int) -> Self {
        Self(uuid, in: service, index: index)
    }
}
