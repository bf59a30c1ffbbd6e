internal import BLECore
internal import BLELinux

/// The advertising handles that this process has reserved on an adapter.
final class AdvertisingHandles {
    typealias Reserve = @Sendable (UInt8, BluetoothAddress) -> HandleClaim

    private let reserve: Reserve
    private var reserved: [UInt8: HeldReservation] = [:]

    init(_ reserve: @escaping Reserve) {
        self.reserve = reserve
    }

    /// Reserves all handles that no other process has; returns the others.
    func reserveAll(of adapter: BluetoothAddress) -> Set<UInt8> {
        var others: Set<UInt8> = []
        for handle in AdvertiseSession.handles where reserved[handle] == nil {
            switch reserve(handle, adapter) {
            case .reserved(let reservation): reserved[handle] = reservation
            case .taken: others.insert(handle)
            case .unknown: break
            }
        }
        return others
    }

    /// Releases the handles that are not in use.
    func release(except used: Set<UInt8>) {
        reserved = reserved.filter { used.contains($0.key) }
    }
}
