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
    /// Lifts the software's blocks of all Bluetooth radios; a switch on the machine stays what it is. Needs root.
    ///
    /// - Throws: `SystemCallError` for the first switch that cannot be written.
    package static func unblock(root: String = "/sys/class/rfkill") throws(SystemCallError) {
        for entry in SystemFiles.names(in: root) {
            guard SystemFiles.text("\(root)/\(entry)/type") == "bluetooth",
                SystemFiles.text("\(root)/\(entry)/soft") == "1"
            else { continue }
            try SystemFiles.write("0", to: "\(root)/\(entry)/soft")
        }
    }
}
