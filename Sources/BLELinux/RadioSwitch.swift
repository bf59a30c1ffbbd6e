internal import Glibc

/// The kernel's on-off switch of one radio, controlled by `rfkill` and a laptop's flight-mode key.
package struct RadioSwitch: Hashable, Sendable {
    /// The adapter's name, such as `hci0`; the drivers of some machines use other names.
    package let name: String
    /// A Boolean value that indicates whether software blocks the radio: `rfkill unblock bluetooth` reverses that.
    package let isSoftBlocked: Bool
    /// A Boolean value that indicates whether a hardware switch blocks the radio.
    package let isHardBlocked: Bool

    package var isBlocked: Bool { isSoftBlocked || isHardBlocked }

    /// Returns the switches of all Bluetooth radios; empty if the kernel has none.
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

/// The files of the switches of all Bluetooth radios, open for writing: only root may open them, and writing to an
/// open one needs CAP_NET_ADMIN.
package final class RadioSwitches: Sendable {
    private let radios: [Radio]

    /// One switch, and the descriptor of its file, or the reason that there is none.
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

    /// Opens the existing switches.
    package init(root: String = "/sys/class/rfkill") {
        radios = SystemFiles.names(in: root).compactMap { entry in
            SystemFiles.text("\(root)/\(entry)/type") == "bluetooth" ? Radio("\(root)/\(entry)/soft") : nil
        }
    }

    /// Removes the software blocks of those that are blocked.
    ///
    /// - Throws: `SystemCallError` for the first switch that cannot be written.
    package func unblock() throws(SystemCallError) {
        for radio in radios { try radio.unblock() }
    }
}
