internal import CBluetooth
internal import Glibc

/// The kernel's Bluetooth sockets that this process may open: the error number of opening each, 0 for success.
package struct SocketFamilies: Hashable, Sendable {
    /// The sockets beside a controller.
    package let controller: Int32
    /// The management interface.
    package let management: Int32
    /// The sockets of links.
    package let link: Int32

    /// Opens one of each, and closes it again.
    package static func current() -> SocketFamilies {
        SocketFamilies(
            controller: failure { () throws(SystemCallError) in _ = try OwnedDescriptor.hciSocket() },
            management: failure { () throws(SystemCallError) in _ = try HCISocket(channel: .control, adapter: nil) },
            link: failure { () throws(SystemCallError) in
                let type = Int32(SOCK_SEQPACKET.rawValue)
                _ = OwnedDescriptor(
                    try SystemCallError.check("socket", ble_socket(AF_BLUETOOTH, type, BTPROTO_L2CAP)))
            })
    }

    private static func failure(_ open: () throws(SystemCallError) -> Void) -> Int32 {
        do throws(SystemCallError) {
            try open()
            return 0
        } catch {
            return error.errno
        }
    }
}
