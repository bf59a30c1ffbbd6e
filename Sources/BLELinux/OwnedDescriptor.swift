internal import CBluetooth
internal import Glibc

/// A descriptor that is closed exactly once, when its owner goes.
struct OwnedDescriptor: ~Copyable, Sendable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit {
        _ = ble_close(number)
    }

    /// A new HCI socket, bound to nothing yet.
    static func hciSocket() throws(SystemCallError) -> OwnedDescriptor {
        OwnedDescriptor(
            try SystemCallError.check("socket", ble_socket(AF_BLUETOOTH, Int32(SOCK_RAW.rawValue), BTPROTO_HCI)))
    }
}
