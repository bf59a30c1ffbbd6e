internal import Glibc

/// The kernel's on-off switch of one radio, which `rfkill` and a laptop's flight-mode key throw.
package struct RadioSwitch: Hashable, Sendable {
    /// The adapter's name, such as `hci0`; drivers of a whole machine use names of their own.
    package let name: String
    /// Blocked by software: `rfkill unblock bluetooth` undoes it.
    package let isSoftBlocked: Bool
    /// Blocked by a switch on the machine.
    package let isHardBlocked: Bool

    package var isBlocked: Bool { isSoftBlocked || isHardBlocked }

    /// The switches of all Bluetooth radios; empty where the kernel has none.
    package static func bluetooth(root: String = "/sys/class/rfkill") -> [RadioSwitch] {
        SystemFiles.names(in: root).compactMap { entry in
            guard SystemFiles.text("\(root)/\(entry)/type") == "bluetooth" else { return nil }
            return RadioSwitch(
                name: SystemFiles.text("\(root)/\(entry)/name") ?? entry,
                isSoftBlocked: SystemFiles.text("\(root)/\(entry)/soft") == "1",
                isHardBlocked: SystemFiles.text("\(root)/\(entry)/hard") == "1")
        }
    }
}

/// The files of the switches of all Bluetooth radios, open for writing: only root may open them, and who has them open needs
/// CAP_NET_ADMIN to write.
package final class RadioSwitches: Sendable {
    private let radios: [Radio]

    /// One switch, and the descriptor of its file, or why there is none.
    private final class Radio: Sendable {
        let path: String
        let file: OwnedDescriptor?
        /// The same as a number, for as long as this object lives.
        let number: Int32
        let failure: SystemCallError?

        init(_ path: String) {
            self.path = path
            number = SystemCallError.repeated { unsafe open(path, O_WRONLY | O_CLOEXEC) }
            failure = number >= 0 ? nil : SystemCallError(call: "open", errno: errno)
            file = number < 0 ? nil : OwnedDescriptor(number)
        }

        func unblock() throws(SystemCallError) {
            guard SystemFiles.text(path) == "1" else { return }
            if let failure { throw failure }
            let count = SystemCallError.repeated { unsafe pwrite(number, "0", 1, 0) }
            guard count == 1 else { throw SystemCallError(call: "write", errno: errno) }
        }
    }

    /// Opens the switches that are there.
    package init(root: String = "/sys/class/rfkill") {
        radios = SystemFiles.names(in: root).compactMap { entry in
            SystemFiles.text("\(root)/\(entry)/type") == "bluetooth" ? Radio("\(root)/\(entry)/soft") : nil
        }
    }

    /// Lifts the software's blocks of those that are blocked.
    ///
    /// - Throws: `SystemCallError` for the first switch that cannot be written.
    package func unblock() throws(SystemCallError) {
        for radio in radios { try radio.unblock() }
    }
}
