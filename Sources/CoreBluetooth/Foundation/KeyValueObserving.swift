// Observing of `CBManager` and `CBPeripheral` by key path. Foundation for Linux has none; the types here have the names
// of those on Apple's systems, and work for the properties of these classes alone.
//
// Invariants
// - A handler is called on the thread that changes the property: the delegate's queue for what callbacks report, and
//   the caller's thread for `isScanning`, the states `.connecting` and `.disconnecting`, and the end of
//   `canSendWriteWithoutResponse`, which change within a call.
// - No lock is held while a handler runs, so it may read, observe and invalidate. So handlers of changes that different
//   threads make have no order: the last call need not be of the last change.

internal import BLELinux

/// The values that an observer of a property receives, and the times at which it receives them.
public struct NSKeyValueObservingOptions: OptionSet, Sendable {
    /// The bits of the set.
    public let rawValue: UInt

    /// Creates a set from its bits.
    public init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    /// The change has the new value.
    public static let new = NSKeyValueObservingOptions(rawValue: 1)
    /// The change has the old value.
    public static let old = NSKeyValueObservingOptions(rawValue: 2)
    /// The handler is called once with the present value, before `observe` returns.
    public static let initial = NSKeyValueObservingOptions(rawValue: 4)
    /// The handler is also called before the change; without effect on Linux.
    public static let prior = NSKeyValueObservingOptions(rawValue: 8)
}

/// The kind of a change.
public enum NSKeyValueChange: UInt, Sendable {
    /// The property has a new value.
    case setting = 1
    /// Objects were inserted; it does not occur on Linux.
    case insertion = 2
    /// Objects were removed; it does not occur on Linux.
    case removal = 3
    /// Objects were replaced; it does not occur on Linux.
    case replacement = 4
}

/// A change of an observed property.
public struct NSKeyValueObservedChange<Value> {
    /// The kind of a change.
    public typealias Kind = NSKeyValueChange

    /// The kind of the change.
    public let kind: Kind
    /// The new value, with the option `.new`.
    public let newValue: Value?
    /// The old value, with the option `.old`.
    public let oldValue: Value?
    /// The changed indexes; always `nil` on Linux.
    public let indexes: IndexSet?
    /// A Boolean value that indicates whether the change is still to come; always `false` on Linux.
    public let isPrior: Bool
}

/// An observation of a property, which ends with `invalidate()`, or when the last reference to it goes away.
public final class NSKeyValueObservation: NSObject, @unchecked Sendable {
    private let end: Lock<(@Sendable () -> Void)?>

    init(_ end: @escaping @Sendable () -> Void) {
        self.end = Lock(end)
    }

    deinit { invalidate() }

    /// Ends the observation.
    public func invalidate() {
        end.withLock { $0.take() }?()
    }
}

/// A class whose properties can be observed by key path on Linux: `CBCentralManager`, `CBPeripheralManager` and
/// `CBPeripheral`. An object of a subclass is observed by the key paths of these classes.
public protocol CBKeyValueObservable: NSObject {}

extension CBManager: CBKeyValueObservable {}
extension CBPeripheral: CBKeyValueObservable {}

/// A property that can be observed.
enum ObservedProperty: Hashable {
    case state
    case isScanning
    case isAdvertising
    case name
    case services
    case canSendWriteWithoutResponse

    init?(_ keyPath: AnyKeyPath) {
        switch keyPath {
        case \CBManager.state, \CBCentralManager.state, \CBPeripheralManager.state, \CBPeripheral.state: self = .state
        case \CBCentralManager.isScanning: self = .isScanning
        case \CBPeripheralManager.isAdvertising: self = .isAdvertising
        case \CBPeripheral.name: self = .name
        case \CBPeripheral.services: self = .services
        case \CBPeripheral.canSendWriteWithoutResponse: self = .canSendWriteWithoutResponse
        default: return nil
        }
    }
}

extension CBKeyValueObservable {
    /// Calls a handler with each change of a property.
    ///
    /// `state` of a manager, `isScanning`, `isAdvertising`, and `state`, `name`, `services` and
    /// `canSendWriteWithoutResponse` of a peripheral can be observed. The observation of another property logs a line,
    /// and reports no changes.
    ///
    /// - Parameters:
    ///   - keyPath: The property.
    ///   - options: What the handler receives.
    ///   - changeHandler: Called on the queue or the thread that changes the property. Calls of different threads have
    ///     no order: read the property where its present value matters.
    /// - Returns: The observation. It ends when its last reference goes away.
    public func observe<Value>(
        _ keyPath: KeyPath<Self, Value>, options: NSKeyValueObservingOptions = [],
        changeHandler: @escaping (Self, NSKeyValueObservedChange<Value>) -> Void
    ) -> NSKeyValueObservation {
        let observers = (self as? CBManager)?.observers ?? (self as? CBPeripheral)?.observers
        var observation: NSKeyValueObservation?
        if let property = ObservedProperty(keyPath) {
            observation = observers?.add(property, options, changeHandler)
        } else {
            Misuse.log("the property \(keyPath) of \(self) cannot be observed on Linux")
        }
        if options.contains(.initial) {
            let value = options.contains(.new) ? self[keyPath: keyPath] : nil
            changeHandler(
                self,
                NSKeyValueObservedChange(kind: .setting, newValue: value, oldValue: nil, indexes: nil, isPrior: false))
        }
        return observation ?? NSKeyValueObservation {}
    }
}

/// The observers of one object.
final class KeyValueObservers: Sendable {
    /// One observer; `notify` takes the object, and the old and the new value.
    private struct Observer {
        let id: UInt64
        let property: ObservedProperty
        let notify: (AnyObject, Any, Any) -> Void
    }

    private struct State {
        var observers: [Observer] = []
        var lastID: UInt64 = 0
    }

    private let state = Lock(State())

    func add<Root: AnyObject, Value>(
        _ property: ObservedProperty, _ options: NSKeyValueObservingOptions,
        _ handler: @escaping (Root, NSKeyValueObservedChange<Value>) -> Void
    ) -> NSKeyValueObservation {
        let notify: (AnyObject, Any, Any) -> Void = { object, old, new in
            guard let object = object as? Root, let old = old as? Value, let new = new as? Value else { return }
            handler(
                object,
                NSKeyValueObservedChange(
                    kind: .setting, newValue: options.contains(.new) ? new : nil,
                    oldValue: options.contains(.old) ? old : nil, indexes: nil, isPrior: false))
        }
        let id = state.withLock { state in
            state.lastID += 1
            state.observers.append(Observer(id: state.lastID, property: property, notify: notify))
            return state.lastID
        }
        return NSKeyValueObservation { [weak self] in self?.remove(id) }
    }

    private func remove(_ id: UInt64) {
        // What only its handler has kept goes away outside the lock: that may be another observation.
        _ = state.withLock { state in
            state.observers.firstIndex { $0.id == id }.map { state.observers.remove(at: $0) }
        }
    }

    /// Informs the observers of a property that has changed.
    func changed(_ property: ObservedProperty, on object: AnyObject, from old: Any, to new: Any) {
        for observer in state.withLock({ $0.observers }) where observer.property == property {
            // A handler before this one may have ended it.
            guard state.withLock({ $0.observers.contains { $0.id == observer.id } }) else { continue }
            observer.notify(object, old, new)
        }
    }
}
