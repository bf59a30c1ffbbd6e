/// Kernel messages about a failing controller, those that explain others first.
///
/// The numbers are the rows in Docs/users/adapters.md; the texts are those of the kernel's sources.
enum KernelTrouble: CaseIterable, Hashable, Sendable {
    /// btusb.c: a controller with the USB identifier of CSR is none (W54).
    case imitation
    /// The loader of firmware, and the drivers that need it.
    case firmware
    /// btmtk.c: the response of a MediaTek controller is shorter than the kernel expects (W31).
    case shortResponse
    /// hci_uart: what arrives is no packet (W34).
    case lostBytes
    /// btusb.c: a transfer cannot be repeated (W48).
    case failedTransfers
    /// btusb.c: the kernel resets the USB device, which comes back with its firmware lost (W03, W17).
    case usbReset
    /// hci_core.c: the controller takes no more commands, and the kernel pretends a hardware error (W16).
    case noCredits
    /// hci_core.c: a command without a response (W30).
    case noResponse
    /// hci_event.c: the controller reports an error of its own (W64).
    case hardware
    /// hci_sync.c: a command of the kernel meets that of another program (W02, W07).
    case refused
    /// hci_core.c: data of a link before the event of its connection (W44).
    case earlyData
    /// hci_sync.c: commands that the controller lists and does not have (W04, W54).
    case absentCommands

    init?(_ message: String) {
        let text = message.lowercased()
        guard text.contains("bluetooth") || text.contains(/\bhci\d/) else { return nil }
        guard let trouble = Self.allCases.first(where: { $0.isIn(text) }) else { return nil }
        self = trouble
    }

    private func isIn(_ text: String) -> Bool {
        switch self {
        case .imitation: text.contains("unbranded csr clone")
        case .firmware:
            text.contains("firmware") && !text.contains("-110") && (text.contains("fail") || text.contains("not found"))
        // The other errors of this command are those of all commands.
        case .shortResponse: text.contains("wmt func ctrl (-22)")
        case .lostBytes: text.contains("frame reassembly failed")
        case .failedTransfers: text.contains("failed to resubmit")
        case .usbReset: text.contains("resetting usb device")
        case .noCredits: text.contains("not accepting commands anymore")
        case .noResponse: text.contains("tx timeout") || text.contains("(-110)") || text.contains("failed: -110")
        case .hardware: text.contains("hardware error 0x")
        case .refused: text.contains("failed: -16")
        case .earlyData:
            text.firstMatch(of: /\bacl packet for unknown connection handle (\d+)/).map {
                // MediaTek's controllers send the log of their firmware on this handle (W63).
                $0.output.1 != "3837"
            } ?? false
        // That one is about voice, and healthy controllers have it.
        case .absentCommands:
            text.contains("advertised, but not supported") && !text.contains("enhanced setup synchronous connection")
        }
    }

    /// Why the kernel logs it.
    var cause: String {
        switch self {
        case .imitation: "a USB adapter imitates one of CSR"
        case .firmware: "the firmware of the controller was not loaded"
        case .shortResponse: "this kernel refuses a short response of MediaTek controllers, and leaves them off"
        case .lostBytes: "the serial line to the controller loses bytes, and with them events"
        case .failedTransfers: "USB transfers to the controller fail: it hangs, sleeps or is gone"
        case .usbReset: "the controller hung, and the kernel reset its USB device: links, scans and the index were lost"
        case .noCredits: "the controller accepts no more commands"
        case .noResponse: "the controller hung"
        case .hardware: "the controller's firmware failed"
        case .refused: "two programs sent scan commands"
        case .earlyData:
            "data came outside of its link, likely before the event of the connection, and was dropped: the peer waits"
        case .absentCommands: "the controller lists commands that it does not have, as imitations do"
        }
    }

    /// Returns what helps after this message.
    func remedy(for message: String) -> String {
        switch self {
        case .imitation: "use another adapter"
        case .firmware:
            if let file = message.firstMatch(of: /(rtl_bt|intel|qca|mediatek|brcm)\/[\w.,+-]*\w/)?.output,
                let package = Self.packages[String(file.1)]
            {
                "install the firmware \(file.0) (Debian: \(package)), then plug the adapter in again or restart"
            } else {
                "install the adapter's firmware (Debian: firmware-* packages), then plug it in again"
            }
        case .shortResponse:
            "boot another kernel, the one before the last update or a newer one: 6.18.32 and 7.0.9 are known for it"
        case .lostBytes: "check the line's speed and flow control, and update the firmware"
        case .failedTransfers, .usbReset:
            "use another USB port or a hub with power of its own, and another kernel if it began with an update; if it "
                + "goes on, another adapter"
        case .noCredits, .noResponse:
            "unplug it and plug it in again, or switch the machine off and on"
        case .hardware: "update the firmware, or plug the adapter in again"
        case .refused: "let one program scan"
        case .earlyData:
            "connect again; if it goes on: echo options btusb enable_poll_sync=1 | sudo tee "
                + "/etc/modprobe.d/btusb.conf, restart, and else use another adapter"
        case .absentCommands: "none where Low Energy works; else use another adapter"
        }
    }

    private static let packages = [
        "rtl_bt": "firmware-realtek", "intel": "firmware-iwlwifi", "qca": "firmware-atheros",
        "mediatek": "firmware-mediatek, or firmware-misc-nonfree before 13", "brcm": "bluez-firmware",
    ]
}
