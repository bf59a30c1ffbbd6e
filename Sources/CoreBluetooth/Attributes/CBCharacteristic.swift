internal import BLELinux
internal import BareBLE

/// The kind of a write of a characteristic's value.
public enum CBCharacteristicWriteType: Int, Sendable {
    /// The peripheral acknowledges the write.
    case withResponse = 0
    /// The peripheral does not acknowledge the write.
    case withoutResponse = 1
}

/// The operations that a characteristic declares.
///
/// Spec: Characteristic Properties, Core Vol 3 Part G, 3.3.1.1.
public struct CBCharacteristicProperties: OptionSet, Sendable {
    /// The bits of the declaration, and above them those of this host.
    public let rawValue: UInt

    /// Creates a set from its bits.
    public init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    /// The value can be broadcast in advertisements.
    public static let broadcast = CBCharacteristicProperties(rawValue: 0x01)
    /// The value can be read.
    public static let read = CBCharacteristicProperties(rawValue: 0x02)
    /// The value can be written without a response.
    public static let writeWithoutResponse = CBCharacteristicProperties(rawValue: 0x04)
    /// The value can be written with a response.
    public static let write = CBCharacteristicProperties(rawValue: 0x08)
    /// The value can be notified.
    public static let notify = CBCharacteristicProperties(rawValue: 0x10)
    /// The value can be indicated.
    public static let indicate = CBCharacteristicProperties(rawValue: 0x20)
    /// The value can be written with a signature.
    public static let authenticatedSignedWrites = CBCharacteristicProperties(rawValue: 0x40)
    /// A descriptor declares further properties.
    public static let extendedProperties = CBCharacteristicProperties(rawValue: 0x80)
    /// Only centrals on encrypted links can enable notifications.
    public static let notifyEncryptionRequired = CBCharacteristicProperties(rawValue: 0x100)
    /// Only centrals on encrypted links can enable indications.
    public static let indicateEncryptionRequired = CBCharacteristicProperties(rawValue: 0x200)
}

/// The ways in which centrals may access a value of this program.
public struct CBAttributePermissions: OptionSet, Sendable {
    /// The bits of the set.
    public let rawValue: UInt

    /// Creates a set from its bits.
    public init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    /// The value can be read.
    public static let readable = CBAttributePermissions(rawValue: 1)
    /// The value can be written.
    public static let writeable = CBAttributePermissions(rawValue: 2)
    /// Only centrals on encrypted links can read the value.
    public static let readEncryptionRequired = CBAttributePermissions(rawValue: 4)
    /// Only centrals on encrypted links can write the value.
    public static let writeEncryptionRequired = CBAttributePermissions(rawValue: 8)
}

/// A characteristic of a service.
///
/// One object stands for one characteristic as long as the link lives. `value` and `isNotifying` change on the
/// delegate's queue, in the same block as the callback that reports the change, and just before it.
open class CBCharacteristic: CBAttribute, @unchecked Sendable {
    struct State {
        weak var service: CBService?
        var properties: CBCharacteristicProperties
        var permissions: CBAttributePermissions = []
        var value: Data?
        var descriptors: [CBDescriptor]?
        var isNotifying = false
        var subscribedCentrals: [CBCentral] = []
        var isPublished = false
        /// The value that the system returns to centrals by itself, from the service's publication on.
        var fixedValue: Data?
    }

    fileprivate let state: Lock<State>
    /// The peer's characteristic; `nil` for one of this program.
    let remote: GATTCharacteristic?

    init(type: CBUUID, _ state: sending State, remote: GATTCharacteristic? = nil) {
        self.state = Lock(state)
        self.remote = remote
        super.init(type: type)
    }

    /// The service that the characteristic belongs to.
    open weak var service: CBService? { state.withLock { $0.service } }

    /// The operations that the characteristic declares.
    open var properties: CBCharacteristicProperties { state.withLock { $0.properties } }

    /// The value that was last read or received; `nil` before the first one.
    open var value: Data? { state.withLock { $0.value } }

    /// The descriptors that have been discovered; `nil` before `CBPeripheral.discoverDescriptors(for:)` has succeeded.
    open var descriptors: [CBDescriptor]? { state.withLock { $0.descriptors } }

    /// A Boolean value that indicates whether the peripheral sends the values of this characteristic.
    open var isNotifying: Bool { state.withLock { $0.isNotifying } }

    /// A Boolean value that indicates whether the value is broadcast; always `false`, as on Apple's systems.
    @available(*, deprecated)
    open var isBroadcasted: Bool { false }

    override var owner: CBService? { service }

    /// What the next run of the program needs to publish the characteristic again.
    ///
    /// Only a fixed value belongs to that. What `value` has otherwise is the program's own.
    var storedDefinition:
        (
            properties: CBCharacteristicProperties, permissions: CBAttributePermissions, fixedValue: Data?,
            descriptors: [CBDescriptor]
        )
    {
        state.withLock { ($0.properties, $0.permissions, $0.fixedValue, $0.descriptors ?? []) }
    }

    func setService(_ service: CBService) { state.withLock { $0.service = service } }

    func setValue(_ value: Data?) { state.withLock { $0.value = value } }

    func setNotifying(_ isOn: Bool) { state.withLock { $0.isNotifying = isOn } }

    func setDescriptors(_ descriptors: [CBDescriptor]) { state.withLock { $0.descriptors = descriptors } }

    /// The class, the address, the UUID, the properties and the value of the object, for logs.
    override open var description: String {
        let (properties, value, isNotifying) = state.withLock { ($0.properties, $0.value, $0.isNotifying) }
        let bytes = value.map { "{length = \($0.count)}" } ?? "(null)"
        return
            "<\(objectName(self)), UUID = \(uuid.uuidString), properties = 0x\(String(properties.rawValue, radix: 16)), "
            + "value = \(bytes), notifying = \(isNotifying ? "YES" : "NO")>"
    }
}

/// A characteristic that this program offers, as part of a `CBMutableService`.
open class CBMutableCharacteristic: CBCharacteristic, @unchecked Sendable {
    /// Creates a characteristic.
    ///
    /// - Parameters:
    ///   - uuid: The type of the characteristic.
    ///   - properties: The operations that centrals may perform.
    ///   - value: A value that never changes, which the system returns to centrals by itself; the characteristic must
    ///     only be readable then. `nil` for a value that the program returns and takes, request by request.
    ///   - permissions: The ways in which centrals may access the value. What they lack is refused, also if the
    ///     properties declare it.
    public init(
        type uuid: CBUUID, properties: CBCharacteristicProperties, value: Data?, permissions: CBAttributePermissions
    ) {
        super.init(type: uuid, State(properties: properties, permissions: permissions, value: value))
    }

    /// The operations that centrals may perform. They cannot change once the service was added.
    override open var properties: CBCharacteristicProperties {
        get { super.properties }
        set { change("properties") { $0.properties = newValue } }
    }

    /// The ways in which centrals may access the value. They cannot change once the service was added.
    open var permissions: CBAttributePermissions {
        get { state.withLock { $0.permissions } }
        set { change("permissions") { $0.permissions = newValue } }
    }

    /// The value. For a characteristic with a fixed value, the program sets it before it adds the service; otherwise
    /// the property is the program's own, and nothing reads it.
    override open var value: Data? {
        get { super.value }
        set { setValue(newValue) }
    }

    /// The descriptors. They cannot change once the service was added.
    override open var descriptors: [CBDescriptor]? {
        get { super.descriptors }
        set {
            change("descriptors") { $0.descriptors = newValue }
            for descriptor in newValue ?? [] { descriptor.setCharacteristic(self) }
        }
    }

    /// The centrals that have subscribed to the characteristic; changes on the delegate's queue, just before the
    /// callbacks for subscriptions.
    open var subscribedCentrals: [CBCentral]? { state.withLock { $0.subscribedCentrals } }

    /// What a service declares of the characteristic when it is published, as it is at one moment.
    var declared: (properties: CBCharacteristicProperties, permissions: CBAttributePermissions, value: Data?) {
        state.withLock { ($0.properties, $0.permissions, $0.value) }
    }

    /// Records the value that the system returns to centrals by itself; `nil` if there is none.
    func setFixedValue(_ value: Data?) { state.withLock { $0.fixedValue = value } }

    /// Records that a central has subscribed, or does not subscribe any more.
    func setSubscribed(_ central: CBCentral, _ isOn: Bool) {
        state.withLock { state in
            state.subscribedCentrals.removeAll { $0 === central }
            if isOn { state.subscribedCentrals.append(central) }
        }
    }

    /// Records that no central subscribes any more.
    func removeSubscribers() { state.withLock { $0.subscribedCentrals = [] } }

    /// Records that a peripheral manager has published the characteristic, or has withdrawn it.
    func setPublished(_ isOn: Bool) { state.withLock { $0.isPublished = isOn } }

    /// Whether the permissions let centrals read the value; a requirement of encryption permits it on encrypted links.
    var isReadable: Bool { !permissions.isDisjoint(with: [.readable, .readEncryptionRequired]) }

    /// Whether the permissions let centrals write the value; a requirement of encryption permits it on encrypted links.
    var isWritable: Bool { !permissions.isDisjoint(with: [.writeable, .writeEncryptionRequired]) }

    private func change(_ property: String, _ body: (inout State) -> Void) {
        let isChanged = state.withLock { state in
            if state.isPublished { return false }
            body(&state)
            return true
        }
        guard !isChanged else { return }
        Misuse.log("\(self) was added to a peripheral manager: its \(property) cannot change until it is removed")
    }
}
