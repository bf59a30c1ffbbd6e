package import BLECore

/// One attribute of a server: what a client sees under its handle, and what the device does about it.
package struct ServedAttribute: Sendable {
    /// What an attribute is for, as far as the server treats it in its own way.
    package enum Role: Sendable, Hashable {
        case plain
        /// The end of the group that this declaration opens.
        case group(end: AttributeHandle)
        /// The client configuration of the characteristic whose value has this handle.
        case clientConfiguration(value: AttributeHandle)
    }

    package var handle: AttributeHandle
    package var type: BluetoothUUID
    package var value: [UInt8]
    package var role = Role.plain
    /// Why a read is refused; `nil` when it is not.
    package var readError: ATTErrorCode?
    /// Why a write is refused; `nil` when it is not.
    package var writeError: ATTErrorCode? = .writeNotPermitted
    package var onRead: ReadAction?
    package var onWrite: WriteAction?
    package var plan: NotifyPlan?

    package init(handle: AttributeHandle, type: BluetoothUUID, value: [UInt8]) {
        self.handle = handle
        self.type = type
        self.value = value
    }

    var refusesRead: Bool {
        if case .refuse = onRead { return true }
        return readError != nil
    }

    /// What a read gives, before it is cut to the MTU.
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
    /// The types that the server itself deals with.
    enum Declaration {
        static let primaryService: BluetoothUUID = 0x2800
        static let secondaryService: BluetoothUUID = 0x2801
        static let include: BluetoothUUID = 0x2802
        static let characteristic: BluetoothUUID = 0x2803
        static let clientConfiguration: BluetoothUUID = 0x2902
    }

    package private(set) var attributes: [ServedAttribute]
    private var positions: [AttributeHandle: Int] = [:]

    /// A table of these attributes; of two with one handle the later is left out.
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

    /// The attributes from `start` to `end`, both included.
    func range(_ start: AttributeHandle, _ end: AttributeHandle) -> some Sequence<ServedAttribute> {
        attributes.lazy.drop { $0.handle < start }.prefix { $0.handle <= end }
    }

    /// The handle of the first value of that kind.
    func valueHandle(of uuid: BluetoothUUID) -> AttributeHandle? {
        attributes.first { $0.type == uuid }?.handle
    }

    /// The handle of the client configuration that belongs to the value with that handle.
    func clientConfiguration(of value: AttributeHandle) -> AttributeHandle? {
        attributes.first { $0.role == .clientConfiguration(value: value) }?.handle
    }
}
