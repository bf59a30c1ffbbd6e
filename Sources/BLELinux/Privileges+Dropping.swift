internal import CBluetooth
internal import Glibc

/// Drops the privileges that a process does not need.
///
/// Capabilities, and the promise that no executed program gets more, belong to threads, and a thread inherits those of
/// its creator. So all of this is for a process with one thread: at the very start of a program.
extension Privileges {
    /// The user who ran this program as root with `sudo`, `run0`, `doas` or `pkexec`.
    package struct Caller: Hashable, Sendable {
        /// The tool, by its variable in the environment; `run0` sets those of `sudo`.
        package enum Tool: String, Hashable, Sendable {
            case sudo, doas, pkexec

            /// The variable that contains the user.
            package var variable: String {
                switch self {
                case .sudo: "SUDO_UID"
                case .doas: "DOAS_USER"
                case .pkexec: "PKEXEC_UID"
                }
            }
        }

        package let user: UInt32
        package let group: UInt32
        package let tool: Tool

        package init(user: UInt32, group: UInt32, tool: Tool = .sudo) {
            self.user = user
            self.group = group
            self.tool = tool
        }

        /// Creates a caller from `SUDO_UID` and `SUDO_GID`; `nil` if they are not numbers, or the user is root.
        package init?(user: String?, group: String?) {
            self.init(number: user.flatMap { UInt32($0) }, group: group.flatMap { UInt32($0) }, tool: .sudo)
        }

        private init?(number user: UInt32?, group: UInt32?, tool: Tool) {
            // The highest number stands for "unchanged" in the kernel.
            guard let user, let group, user != 0, user != .max, group != .max else { return nil }
            self.init(user: user, group: group, tool: tool)
        }

        /// The user who ran such a tool to start this program; `nil` without one, and for root.
        package static var current: Caller? {
            Caller { name in unsafe getenv(name).map { unsafe String(cString: $0) } }
        }

        /// Reads the variables of the first tool that has set any. `doas` sets the user's name, and `pkexec` the
        /// number: the group is taken from the user database.
        ///
        /// Each of these tools removes the variables of the others, unless it is configured not to.
        package init?(variable: (String) -> String?) {
            if let user = variable(Tool.sudo.variable) {
                self.init(user: user, group: variable("SUDO_GID"))
            } else if let name = variable(Tool.doas.variable) {
                let entry = unsafe getpwnam(name)
                unsafe self.init(number: entry?.pointee.pw_uid, group: entry?.pointee.pw_gid, tool: .doas)
            } else if let user = variable(Tool.pkexec.variable).flatMap({ UInt32($0) }) {
                let entry = unsafe getpwuid(user)
                unsafe self.init(number: user, group: entry?.pointee.pw_gid, tool: .pkexec)
            } else {
                return nil
            }
        }
    }

    /// A Boolean value that indicates whether this process is root.
    package static var isRoot: Bool { geteuid() == 0 }

    /// Keeps `capabilities`, as far as the process has them, and drops all others permanently, also for every program
    /// that it executes. Root becomes `caller`, if there is one, with the groups of that user.
    ///
    /// - Throws: `SystemCallError` for the first call that fails; what was dropped before stays so.
    package static func keep(
        only capabilities: [Capability], as caller: Caller? = nil
    ) throws(SystemCallError) {
        let wanted = capabilities.reduce(UInt64(0)) { $0 | 1 << $1.rawValue }
        let kept = current().effective & wanted
        try dropFromBoundingSet(allBut: kept)
        try set(PR_CAP_AMBIENT, UInt(PR_CAP_AMBIENT_CLEAR_ALL))
        if let caller {
            try set(PR_SET_KEEPCAPS, 1)
            try become(caller)
        }
        try SystemCallError.check("capset", ble_set_capabilities(kept))
        try set(PR_SET_KEEPCAPS, 0)
        try set(PR_SET_NO_NEW_PRIVS, 1)
    }

    /// Prevents the capabilities of a file from restoring them. Without CAP_SETPCAP, in a container or the second
    /// time, the other promise suffices: executed programs get no more.
    private static func dropFromBoundingSet(allBut kept: UInt64) throws(SystemCallError) {
        for number in 0..<UInt(64) where kept & 1 << number == 0 {
            guard ble_process_option(PR_CAPBSET_READ, number) >= 0 else { return }
            let result = ble_process_option(PR_CAPBSET_DROP, number)
            if result == -EPERM { return }
            try SystemCallError.check("PR_CAPBSET_DROP", result)
        }
    }

    private static func become(_ caller: Caller) throws(SystemCallError) {
        // A user without an entry in the database, such as one of a container, has one group.
        var groups = [caller.group]
        let result =
            if let user = unsafe getpwuid(caller.user) {
                unsafe initgroups(user.pointee.pw_name, caller.group)
            } else {
                unsafe setgroups(groups.count, &groups)
            }
        guard result == 0 else { throw SystemCallError(call: "setgroups", errno: errno) }
        // For root these set the real, the effective and the saved number, in the C library for all threads.
        guard setgid(caller.group) == 0 else {
            throw SystemCallError(call: "setgid", errno: errno)
        }
        guard setuid(caller.user) == 0 else {
            throw SystemCallError(call: "setuid", errno: errno)
        }
    }

    private static func set(_ option: Int32, _ value: UInt) throws(SystemCallError) {
        try SystemCallError.check("prctl \(option)", ble_process_option(option, value))
    }
}
