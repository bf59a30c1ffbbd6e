internal import BLELinux
internal import Logging

/// A warning about delegates whose methods are not all called.
///
/// On Apple's systems a subclass may add a method of a delegate protocol that its superclass, which conforms, lacks.
/// Without the Objective-C runtime the conformance is that of the superclass, and such a method is never called.
/// Nothing can be done about it here; the warning names the class, once.
enum DelegateCheck {
    private static let warned = Lock<Set<ObjectIdentifier>>([])

    static func warnIfMethodsOfSubclassesAreLost(_ delegate: AnyObject, host: CoreBluetoothHost) {
        let type: AnyClass = Swift.type(of: delegate)
        guard let superclass = _getSuperclass(type),
            superclass is any CBCentralManagerDelegate.Type || superclass is any CBPeripheralDelegate.Type
                || superclass is any CBPeripheralManagerDelegate.Type,
            warned.withLock({ $0.insert(ObjectIdentifier(type)).inserted })
        else { return }
        host.logger.warning(
            """
            The delegate \(type) inherits its conformance from \(superclass). On Linux, only delegate methods that \
            \(superclass) declares are called: declare the others there too, and override them.
            """)
    }
}
