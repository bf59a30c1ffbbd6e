internal import BLELinux

/// The state of the adapter for a manager.
public enum CBManagerState: Int, Sendable {
    /// The state is not known yet; a callback reports it soon.
    case unknown = 0
    /// The adapter was reset and will be back in a moment.
    case resetting = 1
    /// There is no adapter, or the kernel has no Bluetooth.
    case unsupported = 2
    /// This process may not use the adapter.
    case unauthorized = 3
    /// The adapter is off, or blocked.
    case poweredOff = 4
    /// The adapter can be used.
    case poweredOn = 5
}

/// The former type of a central manager's state.
@available(*, deprecated, renamed: "CBManagerState")
public enum CBCentralManagerState: Int, Sendable {
    /// The state is not known yet.
    case unknown = 0
    /// The adapter was reset.
    case resetting = 1
    /// There is no adapter.
    case unsupported = 2
    /// This process may not use the adapter.
    case unauthorized = 3
    /// The adapter is off.
    case poweredOff = 4
    /// The adapter can be used.
    case poweredOn = 5
}

/// The former type of a peripheral manager's state.
@available(*, deprecated, renamed: "CBManagerState")
public enum CBPeripheralManagerState: Int, Sendable {
    /// The state is not known yet.
    case unknown = 0
    /// The adapter was reset.
    case resetting = 1
    /// There is no adapter.
    case unsupported = 2
    /// This process may not use the adapter.
    case unauthorized = 3
    /// The adapter is off.
    case poweredOff = 4
    /// The adapter can be used.
    case poweredOn = 5
}

/// The permission to use Bluetooth.
public enum CBManagerAuthorization: Int, Sendable {
    /// The user has not decided; it does not occur on Linux.
    case notDetermined = 0
    /// The permission is restricted; it does not occur on Linux.
    case restricted = 1
    /// The process may not use Bluetooth.
    case denied = 2
    /// The process may use Bluetooth.
    case allowedAlways = 3
}

/// The former type of the permission to be a peripheral.
@available(*, deprecated, renamed: "CBManagerAuthorization")
public enum CBPeripheralManagerAuthorizationStatus: Int, Sendable {
    /// The user has not decided.
    case notDetermined = 0
    /// The permission is restricted.
    case restricted = 1
    /// The process may not use Bluetooth.
    case denied = 2
    /// The process may use Bluetooth.
    case authorized = 3
}

/// A central manager or a peripheral manager.
open class CBManager: NSObject, @unchecked Sendable {
    private let managerState = Lock(CBManagerState.unknown)
    let host: CoreBluetoothHost
    let observers = KeyValueObservers()

    init(on host: CoreBluetoothHost) {
        self.host = host
        super.init()
    }

    /// The state of the adapter: `.unknown` at first; each change is reported to the delegate, in the same block of its
    /// queue. Commands are accepted in `.poweredOn` alone.
    open var state: CBManagerState { managerState.withLock { $0 } }

    /// The permission of this process: `.denied` if the kernel refuses its Bluetooth sockets to it, otherwise
    /// `.allowedAlways`.
    open class var authorization: CBManagerAuthorization {
        CoreBluetoothHost.isDenied ? .denied : .allowedAlways
    }

    /// The permission of this process.
    @available(*, deprecated, message: "Use the class property of the same name.")
    open var authorization: CBManagerAuthorization { Self.authorization }

    /// Changes the state, and informs the observers; called on the delegate's queue.
    func setState(_ state: CBManagerState) {
        let old = managerState.withLock { old in
            defer { old = state }
            return old
        }
        observers.changed(.state, on: self, from: old, to: state)
    }

    /// The adapter's state has changed; called on the delegate's queue. Each kind of manager informs its delegate.
    func adapterChanged(_ new: CBManagerState) {
        setState(new)
    }

    /// The class and the address of the object, for logs.
    override open var description: String { "<\(objectName(self))>" }
}
