package import BLECore

/// One attribute of a server: its value and handle, and the device's behavior on access.
package struct ServedAttribute: Sendable {
    /// The role of an attribute, if the server treats it specially.
    package enum Role: Sendable, Hashable {
        case plain
        /// A declaration, with the end of its group.
        case group(end: AttributeHandle)
        /// The client configuration of the characteristic with this value handle.
        case clientConfiguration(value: AttributeHandle)
    }

    package var handle: AttributeHandle
    package var type: BluetoothUUID
    package var value: [UInt8]
    package var role = Role.plain
    /// The error for reads, or `nil` if they are permitted.
    package var readError: ATTErrorCode?
    /// The error for writes, or `nil` if they are permitted.
    package var writeError: ATTErrorCode? = .writeNotPermitted
    package var onRead: ReadAction?
    package var onWrite: WriteAction?
    package var plan: NotifyPlan?
    /// What the link must have for reads and writes.
    package var protection = VirtualProtection.none

    package init(handle: AttributeHandle, type: BluetoothUUID, value: [UInt8]) {
        self.handle = handle
        self.type = type
        self.value = value
    }

    var refusesRead: Bool {
        if case .refuse = onRead { return true }
        return readError != nil
    }

    /// Returns the value that a read returns, before it is truncated to the MTU.
    func read() throws(AttributeServer.Refusal) -> [UInt8] {
        if let readError { throw AttributeServer.Refusal(code: readError, handle: handle) }
        switch onRead {
        case .none: return value
        case .refuse(let code): throw AttributeServer.Refusal(code: code, handle: handle)
        case .compute(let value): return value()
        }
    }
}

/// The attributes of a server, sorted by handle.
package struct AttributeTable: Sendable {
    /// The types that the server handles itself.
    enum Declaration {
        static let primaryService: BluetoothUUID = 0x2800
        static let secondaryService: BluetoothUUID = 0x2801
        static let include: BluetoothUUID = 0x2802
        static let characteristic: BluetoothUUID = 0x2803
        static let clientConfiguration: BluetoothUUID = 0x2902
    }

    package private(set) var attributes: [ServedAttribute]
    private var positions: [AttributeHandle: Int] = [:]

    /// Creates a table of attributes; the later one of two with the same handle is omitted.
    package init(_ attributes: [ServedAttribute]) {
        self.attributes = []
        for attribute in attributes.sorted(by: { $0.handle < $1.handle }) where positions[attribute.handle] == nil {
            positions[attribute.handle] = self.attributes.count
            self.attributes.append(attribute)
        }
    }

    package subscript(handle: AttributeHandle) -> ServedAttribute? {
        get { positions[handle].map { attributes[$0] } }
        set {
            guard let position = positions[handle], let newValue else { return }
            attributes[position] = newValue
        }
    }

    /// Returns the attributes from `start` through `end`.
    func range(_ start: AttributeHandle, _ end: AttributeHandle) -> some Sequence<ServedAttribute> {
        attributes.lazy.drop { $0.handle < start }.prefix { $0.handle <= end }
    }

    /// Returns the handle of the first value with this UUID.
    func valueHandle(of uuid: BluetoothUUID) -> AttributeHandle? {
        attributes.first { $0.type == uuid }?.handle
    }

    /// Returns the handle of the client configuration for this value handle.
    func clientConfiguration(of value: AttributeHandle) -> AttributeHandle? {
        attributes.first { $0.role == .clientConfiguration(value: value) }?.handle
    }
}
