package import BLECore
internal import CBluetooth
internal import Glibc

/// The claim of this process to one advertising handle of an adapter, among the processes with this library.
///
/// It is an abstract Unix socket. The kernel releases the name when the process ends, in whatever way, so a handle that
/// can be reserved is one whose set, if there is one, a killed program has left.
/// Any user of the machine can take the names.
package struct HandleReservation: ~Copyable, Sendable {
    /// The reason that a handle is not reserved.
    package enum Failure: Error, Hashable, Sendable {
        /// Another process has it.
        case taken
        /// The process may have no such socket, or no further one: nothing is known of other processes.
        case unknown
    }

    private let socket: OwnedDescriptor

    /// Reserves a handle until the value goes away.
    package init(_ handle: UInt8, of adapter: BluetoothAddress) throws(Failure) {
        let digits = adapter.description.utf8.filter { $0 != 0x3A }
        let name = [0] + Array("bareble-advertising-".utf8) + digits + Array("-\(handle)".utf8)
        let number = unsafe ble_bind_datagrams(name, name.count)
        guard number >= 0 else { throw number == -EADDRINUSE ? .taken : .unknown }
        socket = OwnedDescriptor(number)
    }
}
