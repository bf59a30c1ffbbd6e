import BLELinux
import BareBLE
import Synchronization

/// The kernel's management interface, opened at the start of the program, before it drops CAP_NET_ADMIN.
///
/// The kernel checks that capability when the socket is opened, and not at its commands.
enum ManagementAccess {
    private static let kept = Mutex<ManagementSocket?>(nil)

    /// Opens the interface; returns `false` if the kernel does not permit it.
    static func open() -> Bool {
        kept.withLock { kept in
            kept = try? ManagementSocket()
            return kept != nil
        }
    }

    /// Returns the interface, which the caller owns from now on.
    ///
    /// - Throws: `SystemCallError` if it was not opened at the start and cannot be opened now.
    static func take() throws(SystemCallError) -> ManagementSocket {
        if let socket = kept.withLock({ $0.take() }) { return socket }
        return try ManagementSocket()
    }
}

extension Central {
    /// A central that manages the adapter, if it is to pair, by the access from the start of the program.
    static func ofCommand(_ configuration: Configuration) -> Central {
        guard configuration.security != nil else { return Central(configuration) }
        var system = AdapterSystem.kernel
        system.openManagement = { () throws(SystemCallError) in try ManagementAccess.take() }
        EventLoop.shared.start()
        return Central(
            configuration,
            adapter: Adapter(
                configuration.adapter, loop: .shared, logger: configuration.logger, trace: configuration.traceHCI,
                security: configuration.security, addressHash: configuration.addressHash, system: system))
    }
}
