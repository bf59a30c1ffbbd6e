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
    private struct Reporting {
        weak var delegate: (any NSObjectProtocol)?
        /// Whether the state was reported while there was no delegate.
        var isUnreported = false
        /// What the run before has left, until the delegate has it.
        var restored: [String: Any]?
    }

    /// The state that was reported last, and whether `.poweredOn` ever was.
    private let known = Lock((state: CBManagerState.unknown, wasOn: false))
    private let reporting = Lock(Reporting())
    let id = ManagerID.next()
    let host: CoreBluetoothHost
    let callbacks: CallbackQueue
    let observers = KeyValueObservers()

    init(on queue: DispatchQueue?) {
        host = CoreBluetoothHost.current
        callbacks = CallbackQueue(queue ?? .main, loop: host.hub.loop)
        super.init()
    }

    deinit {
        let id = id
        host.hub.post { $0.remove(id) }
    }

    /// Adds the manager to the hub. Its calls are accepted, and nothing is reported before `start`.
    func register(powerOn: Any?) {
        let powerOn = (powerOn as? NSNumber)?.boolValue ?? false
        let (weak, id, callbacks) = (WeakManager(self), id, callbacks)
        host.hub.post { $0.add(weak, id, callbacks, powerOn: powerOn) }
    }

    /// Has the state reported from now on; the last step of an initializer.
    func start() {
        let id = id
        host.hub.post { $0.start(id) }
    }

    /// The state of the adapter: `.unknown` at first; each change is reported to the delegate, in the same block of its
    /// queue. Commands are accepted in `.poweredOn` alone.
    open var state: CBManagerState { known.withLock { $0.state } }

    /// The permission of this process: `.denied` if the kernel, or a virtual radio in its place, refuses its Bluetooth
    /// sockets to it, otherwise `.allowedAlways`.
    open class var authorization: CBManagerAuthorization {
        CoreBluetoothHost.isDenied ? .denied : .allowedAlways
    }

    /// The permission of this process.
    @available(*, deprecated, message: "Use the class property of the same name.")
    open var authorization: CBManagerAuthorization { Self.authorization }

    /// The class and the address of the object, for logs.
    override open var description: String { "<\(objectName(self))>" }

    /// Whether commands are accepted; if not, that is logged.
    func isPoweredOn() -> Bool {
        if state == .poweredOn { return true }
        Misuse.log("\(self) can only accept this command while in the powered on state", host: host)
        return false
    }

    // MARK: Delegate

    /// The delegate of either kind of manager. One that is set after the state was reported is notified of it.
    var anyDelegate: (any NSObjectProtocol)? {
        get { reporting.withLock { $0.delegate } }
        set {
            if let newValue { DelegateCheck.warnIfMethodsOfSubclassesAreLost(newValue, host: host) }
            let isUnreported = reporting.withLock { reporting in
                reporting.delegate = newValue
                guard newValue != nil else { return false }
                defer { reporting.isUnreported = false }
                return reporting.isUnreported
            }
            if isUnreported { callbacks.post { [weak self] in self?.report() } }
        }
    }

    /// Has the delegate receive what the run before has left, before it is notified of the first state.
    func setRestored(_ restored: [String: Any]) { reporting.withLock { $0.restored = restored } }

    /// The adapter's state has changed; called on the delegate's queue.
    final func adapterChanged(_ new: CBManagerState) {
        let (old, wasOn) = known.withLock { $0 }
        guard new != old else { return }
        reportRestored()
        // Before the adapter was on there is only what was restored, and that waits for it.
        if new != .poweredOn, wasOn { adapterIsLost(new) }
        known.withLock { $0 = (new, wasOn || new == .poweredOn) }
        observers.changed(.state, on: self, from: old, to: new)
        if new == .poweredOn { adapterIsReady() }
        // In one step, so that a delegate that is set meanwhile is notified here, or when it is set.
        let hasDelegate = reporting.withLock { reporting in
            reporting.isUnreported = reporting.delegate == nil
            return !reporting.isUnreported
        }
        if hasDelegate { report() }
    }

    private func report() {
        reportRestored()
        reportState()
    }

    private func reportRestored() {
        let restored = reporting.withLock { $0.delegate == nil ? nil : $0.restored.take() }
        if let restored { reportRestored(restored) }
    }

    /// The delegate does not implement the method that receives what the run before has left.
    func logUnusedRestoration() {
        Misuse.log("\(self) has a restore identifier, but its delegate does not implement willRestoreState", host: host)
    }

    /// Continues what waits for the adapter. Each kind of manager has its own.
    func adapterIsReady() {}

    /// Ends what needs the adapter, which is in this state now. Each kind of manager has its own.
    func adapterIsLost(_ state: CBManagerState) {}

    /// Notifies the delegate of the state. Each kind of manager has its own.
    func reportState() {}

    /// Gives the delegate what the run before has left. Each kind of manager has its own.
    func reportRestored(_ restored: [String: Any]) {}
}
