internal import BLELinux
internal import BareBLE

/// A descriptor of a characteristic.
open class CBDescriptor: CBAttribute, @unchecked Sendable {
    struct State {
        weak var characteristic: CBCharacteristic?
        var value: Any?
    }

    private let state: Lock<State>
    /// The peer's descriptor; `nil` for one of this program.
    let remote: GATTDescriptor?

    init(type: CBUUID, _ state: sending State, remote: GATTDescriptor? = nil) {
        self.state = Lock(state)
        self.remote = remote
        super.init(type: type)
    }

    /// The characteristic that the descriptor belongs to.
    open weak var characteristic: CBCharacteristic? { state.withLock { $0.characteristic } }

    /// The value that was last read; `nil` before.
    ///
    /// Its class depends on the type: an `NSNumber` for 2900, 2902 and 2903, an `NSString` for 2901, otherwise
    /// `NSData`. A value that does not fit its type, such as text that is not UTF-8, is `NSData` too.
    open var value: Any? { state.withLock { $0.value } }

    override var owner: CBService? { characteristic?.owner }

    func setCharacteristic(_ characteristic: CBCharacteristic) { state.withLock { $0.characteristic = characteristic } }

    func setValue(bytes: [UInt8]) {
        let type = uuid.value.short
        state.withLock { $0.value = Self.value(bytes, type: type) }
    }

    private static func value(_ bytes: [UInt8], type: UInt16?) -> Any {
        switch type {
        case 0x2900?, 0x2902?, 0x2903?:
            guard bytes.count == 2 else { return NSData(data: Data(bytes)) }
            return NSNumber(value: UInt16(bytes[0]) | UInt16(bytes[1]) << 8)
        case 0x2901?:
            guard let text = String(validating: bytes, as: UTF8.self) else { return NSData(data: Data(bytes)) }
            return NSString(string: text)
        default: return NSData(data: Data(bytes))
        }
    }
}

/// A descriptor that this program offers, as part of a `CBMutableCharacteristic`.
open class CBMutableDescriptor: CBDescriptor, @unchecked Sendable {
    /// Creates a descriptor with a value that never changes.
    ///
    /// - Parameters:
    ///   - uuid: The type: Characteristic User Description (2901) or Characteristic Presentation Format (2904). The
    ///     system creates the others itself.
    ///   - value: A `String` for 2901, and `Data` for 2904.
    public init(type uuid: CBUUID, value: Any?) {
        let text = value as? String
        let bytes = text.map { Data($0.utf8) } ?? value as? Data
        let kept: Any? = text.map { NSString(string: $0) } ?? bytes.map { NSData(data: $0) }
        self.bytes = bytes.map { [UInt8]($0) } ?? []
        super.init(type: uuid, State(value: kept))
    }

    /// The value, encoded.
    let bytes: [UInt8]
}
