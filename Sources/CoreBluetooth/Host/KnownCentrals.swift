// The objects of centrals, and their subscriptions as they were reported.

internal import BLECore
internal import BareBLE

/// The objects of the centrals that are connected, one for each link.
struct KnownCentrals {
    private var objects: [ConnectedCentral.ID: CBCentral] = [:]
    private var lastPlaceholder: UInt64 = 0

    /// The number of links that have an object.
    var count: Int { objects.count }

    /// Whether a link has an object.
    func contains(_ link: ConnectedCentral.ID) -> Bool { objects[link] != nil }

    /// Returns the object of a central, which is created at first.
    mutating func object(for central: ConnectedCentral) -> CBCentral {
        if let known = objects[central.id] {
            known.update(central)
            return known
        }
        lastPlaceholder += 1
        let placeholder = PeerID(address: BluetoothAddress(rawValue: lastPlaceholder), type: .random)
        let object = CBCentral(central, placeholder: placeholder)
        objects[central.id] = object
        return object
    }

    /// Drops the object of a link that has ended.
    mutating func remove(_ link: ConnectedCentral.ID) { objects[link] = nil }

    /// Drops the objects of all links but these.
    mutating func keep(only present: [ConnectedCentral]) {
        objects = objects.filter { known in present.contains { $0.id == known.key } }
    }
}

/// The subscriptions that were reported and have not ended.
struct ReportedSubscriptions {
    /// The subscriptions, in their order.
    private(set) var all: [(handle: AttributeHandle, central: CBCentral)] = []

    /// Whether the subscription of a central was reported, and its end was not.
    func contains(_ handle: AttributeHandle, _ central: CBCentral) -> Bool { index(handle, central) != nil }

    /// Records that a subscription, or its end, is reported.
    ///
    /// - Returns: The object of the central: the end has that of the beginning, which the program knows.
    mutating func change(_ handle: AttributeHandle, _ central: CBCentral, isOn: Bool) -> CBCentral {
        let known = index(handle, central).map { all.remove(at: $0).central } ?? central
        if isOn { all.append((handle: handle, central: known)) }
        return known
    }

    /// Drops the subscriptions to a characteristic that was withdrawn.
    mutating func remove(_ handle: AttributeHandle) { all.removeAll { $0.handle == handle } }

    private func index(_ handle: AttributeHandle, _ central: CBCentral) -> Int? {
        all.firstIndex { $0.handle == handle && $0.central.link == central.link }
    }
}
