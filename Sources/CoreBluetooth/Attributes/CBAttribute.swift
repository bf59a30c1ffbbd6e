/// A service, a characteristic or a descriptor.
open class CBAttribute: NSObject, @unchecked Sendable {
    private let type: CBUUID

    init(type: CBUUID) {
        self.type = type
    }

    /// The type of the attribute.
    open var uuid: CBUUID { type }

    /// The service that the attribute is or belongs to; `nil` once that was dropped.
    var owner: CBService? { nil }

    /// The class, the address and the UUID of the object, for logs.
    override open var description: String { "<\(objectName(self)), UUID = \(type.uuidString)>" }
}

/// Returns the class and the address of an object, such as `CBPeripheral: 0x7f3c80`.
func objectName(_ object: AnyObject) -> String {
    let address = String(UInt(bitPattern: ObjectIdentifier(object)), radix: 16)
    return "\(Swift.type(of: object)): 0x\(address)"
}
