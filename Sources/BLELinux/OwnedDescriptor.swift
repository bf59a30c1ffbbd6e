internal import CBluetooth
internal import Glibc

/// A descriptor that is closed exactly once, when its owner goes.
struct OwnedDescriptor: ~Copyable, Sendable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit {
        Self.close(number)
    }

    /// Closes a descriptor. One that is not open was closed twice, and the next time its number could have another
    /// owner.
    static func close(_ number: Int32) {
        let result = ble_close(number)
        // Each number has one owner, which cannot be copied and closes it in `deinit`; `EventLoop` does the same with
        // its three. A caller gives up a descriptor that is adopted. Data from a socket does not matter here.
        precondition(result != -EBADF, "a descriptor was closed twice")
    }

    /// Ends a socket at once, and closes it.
    ///
    /// To close it is not enough: a child process of this program has a copy until it executes its own program, and the
    /// other end would not see the end before that.
    static func closeSocket(_ number: Int32) {
        _ = ble_shutdown(number)
        close(number)
    }

    /// Opens a new HCI socket, not bound yet.
    static func hciSocket() throws(SystemCallError) -> OwnedDescriptor {
        OwnedDescriptor(
            try SystemCallError.check("socket", ble_socket(AF_BLUETOOTH, Int32(SOCK_RAW.rawValue), BTPROTO_HCI)))
    }
}
