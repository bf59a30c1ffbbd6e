package import BLECore
internal import CBluetooth
internal import Glibc

/// The claim of this process to take a step of recovery for an adapter, among the processes with this library: of two
/// that switch one adapter off and on at the same time, each would undo the step of the other.
///
/// It is an abstract Unix socket, because a daemon may have the right to a step and none to a folder of root's. The
/// kernel releases the name when the process ends, in whatever way.
/// Any user of the machine can take the names.
package final class RecoveryClaim: Sendable {
    private let socket: OwnedDescriptor

    private init(_ socket: consuming OwnedDescriptor) {
        self.socket = socket
    }

    /// Returns a claim that lasts until the last reference to it goes away; `nil` if the process may have no such
    /// socket, or no further one: nothing is known of other processes.
    ///
    /// - Parameter machine: The name of a pretended machine, whose adapters are not those of this one.
    /// - Throws: `RecoveryFailure.underWay` while another process has it.
    package static func make(
        for adapter: ControllerInfo, on machine: String = ""
    ) throws(RecoveryFailure) -> RecoveryClaim? {
        let subject = adapter.address == .zero ? adapter.name : adapter.address.description.filter { $0 != ":" }
        let name = [0] + Array("bareble-recovery-\(machine)\(subject)".utf8)
        let number = unsafe ble_bind_datagrams(name, name.count)
        guard number >= 0 else {
            if number == -EADDRINUSE { throw .underWay }
            return nil
        }
        return RecoveryClaim(OwnedDescriptor(number))
    }
}
