internal import CBluetooth
internal import Glibc

/// The copies of its memory that the kernel makes of a process that crashes.
///
/// They outlive the process, and a collector such as systemd-coredump passes them on. A library does not decide about
/// them: a program that has keys in its memory does.
package enum CoreDumps {
    /// Excludes this process from core dumps until it executes another program, and other processes of its user from
    /// its memory.
    ///
    /// The kernel then ignores RLIMIT_CORE and `/proc/sys/kernel/core_pattern` for this process, and only root may
    /// trace it.
    ///
    /// - Returns: Whether the kernel has done so.
    @discardableResult
    package static func exclude() -> Bool {
        ble_process_option(PR_SET_DUMPABLE, 0) == 0
    }

    /// A Boolean value that indicates whether the kernel may write the memory of this process to a core dump.
    package static var mayBeWritten: Bool { ble_process_option(PR_GET_DUMPABLE, 0) == 1 }
}
