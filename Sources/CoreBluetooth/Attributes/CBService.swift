internal import BLELinux
internal import BareBLE

/// A service of a peripheral.
///
/// One object stands for one service as long as the link lives. After the link has ended, and after
/// `peripheral(_:didModifyServices:)` has named it, calls with it or its characteristics only log a line.
open class CBService: CBAttribute, @unchecked Sendable {
    private struct State {
        weak var peripheral: CBPeripheral?
        var includedServices: [CBService]?
        var characteristics: [CBCharacteristic]?
        var isValid = true
    }

    private let state: Lock<State>
    private let isPrimaryService: Bool
    /// The peer's service; `nil` for a service of this program.
    let remote: GATTService?

    init(type: CBUUID, isPrimary: Bool, remote: GATTService? = nil, peripheral: CBPeripheral? = nil) {
        isPrimaryService = isPrimary
        self.remote = remote
        state = Lock(State(peripheral: peripheral))
        super.init(type: type)
    }

    /// The peripheral that has the service; `nil` for a service of this program, and after the peripheral was dropped.
    open weak var peripheral: CBPeripheral? { state.withLock { $0.peripheral } }

    /// A Boolean value that indicates whether the service is primary, and not only part of others.
    open var isPrimary: Bool { isPrimaryService }

    /// The included services that have been discovered; `nil` before
    /// `CBPeripheral.discoverIncludedServices(_:for:)` has succeeded.
    open var includedServices: [CBService]? { state.withLock { $0.includedServices } }

    /// The characteristics that have been discovered, in the order of their handles; `nil` before
    /// `CBPeripheral.discoverCharacteristics(_:for:)` has succeeded.
    open var characteristics: [CBCharacteristic]? { state.withLock { $0.characteristics } }

    override var owner: CBService? { self }

    /// Whether the peer still has the service as it was discovered.
    var isValid: Bool { state.withLock { $0.isValid } }

    /// Ends the use of a service whose link has ended, or which the peer has changed: its handles may stand for
    /// something else.
    func invalidate() {
        let (_, characteristics) = state.withLock { state in
            state.isValid = false
            // Services that include each other would keep each other for good.
            return (state.includedServices.take(), state.characteristics ?? [])
        }
        for characteristic in characteristics { characteristic.setNotifying(false) }
    }

    func setIncludedServices(_ services: [CBService]?) {
        state.withLock { state in
            guard state.isValid else { return }
            state.includedServices = services
        }
    }

    func setCharacteristics(_ characteristics: [CBCharacteristic]?) {
        state.withLock { $0.characteristics = characteristics }
    }

    /// The class, the address, the kind and the UUID of the object, for logs.
    override open var description: String {
        "<\(objectName(self)), isPrimary = \(isPrimary ? "YES" : "NO"), UUID = \(uuid.uuidString)>"
    }
}

/// A service that this program offers, for `CBPeripheralManager.add(_:)`.
open class CBMutableService: CBService, @unchecked Sendable {
    private let isPublished = Lock(false)

    /// Creates a service without characteristics.
    ///
    /// - Parameters:
    ///   - uuid: The type of the service.
    ///   - isPrimary: A Boolean value that indicates whether the service is primary.
    public init(type uuid: CBUUID, primary isPrimary: Bool) {
        super.init(type: uuid, isPrimary: isPrimary)
    }

    /// The services that this one includes; they must have been added before. It cannot change once the service was
    /// added.
    override open var includedServices: [CBService]? {
        get { super.includedServices }
        set {
            guard !refusesChange(of: "includedServices") else { return }
            setIncludedServices(newValue)
        }
    }

    /// The characteristics of the service. It cannot change once the service was added.
    override open var characteristics: [CBCharacteristic]? {
        get { super.characteristics }
        set {
            guard !refusesChange(of: "characteristics") else { return }
            setCharacteristics(newValue)
            for characteristic in newValue ?? [] { characteristic.setService(self) }
        }
    }

    /// Records that a peripheral manager has published the service, or has withdrawn it.
    func setPublished(_ isOn: Bool) { isPublished.withLock { $0 = isOn } }

    private func refusesChange(of property: String) -> Bool {
        guard isPublished.withLock({ $0 }) else { return false }
        Misuse.log("\(self) was added to a peripheral manager: its \(property) cannot change until it is removed")
        return true
    }
}
