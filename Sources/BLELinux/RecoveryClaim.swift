package import BLECore
internal import CBluetooth
internal import Glibc

/// The claim of this process to take a step of recovery for an adapter, among the processes with this library: of two
/// that switch one adapter off and on at the same time, each would undo the step of the other. A self-test claims its
/// adapters in the same way.
///
/// It is an abstract Unix socket, because a daemon may take a step without access to a folder of root. The kernel
/// releases the name when the process ends, in whatever way.
/// Any user of the machine can take the names.
package final class RecoveryClaim: Sendable {
    /// What an adapter is claimed for. Claims for different purposes are not in each other's way.
    package enum Purpose: String, Sendable {
        /// A step of recovery, or another change of its power.
        case recovery
        /// A self-test, for all of its time: it restores what it has found, which must not be the state of another one.
        case selfTest = "selftest"
    }

    private let socket: OwnedDescriptor?
    private let release: (@Sendable () -> Void)?

    private init(_ socket: consuming OwnedDescriptor) {
        self.socket = .some(socket)
        release = nil
    }

    /// Creates a claim among the programs of a simulated machine.
    ///
    /// - Parameter release: Called when the last reference to it goes away.
    package init(releasedBy release: @escaping @Sendable () -> Void) {
        socket = nil
        self.release = release
    }

    deinit { release?() }

    /// Returns a claim that lasts until the last reference to it goes away; `nil` if the process may have no such
    /// socket, or no further one: nothing is known of other processes.
    ///
    /// - Throws: `RecoveryFailure.underWay` while another process has it.
    package static func make(
        for adapter: ControllerInfo, purpose: Purpose = .recovery
    ) throws(RecoveryFailure) -> RecoveryClaim? {
        let subject = adapter.address == .zero ? adapter.name : adapter.address.description.filter { $0 != ":" }
        let name = [0] + Array("bareble-\(purpose.rawValue)-\(subject)".utf8)
        let number = unsafe ble_bind_datagrams(name, name.count)
        guard number >= 0 else {
            if number == -EADDRINUSE { throw .underWay }
            return nil
        }
        return RecoveryClaim(OwnedDescriptor(number))
    }
}
