/// What the kernel has logged about the identity of one adapter's controller while it set it up.
///
/// An index is used again: the last line counts, and a line of another adapter that had the name before may remain.
struct ControllerLog {
    /// The messages that name the adapter.
    let messages: [String]

    /// Creates the log of an adapter such as `hci0`.
    init(_ messages: [String], adapter: String) {
        self.messages = messages.filter { Self.isAbout(adapter, $0) }
    }

    /// Returns whether a message names an adapter such as `hci1`, rather than `hci10`.
    static func isAbout(_ adapter: String, _ message: String) -> Bool {
        message.ranges(of: adapter).contains { range in
            range.upperBound == message.endIndex || !message[range.upperBound].isNumber
        }
    }

    /// Returns whether a message identifies a controller or its firmware.
    ///
    /// The texts are those of btrtl.c, btbcm.c, btusb.c, btmtk.c, btintel.c and btqca.c of the kernel.
    static func isIdentity(_ message: String) -> Bool {
        message.contains(/\bhci\d/) && (firmware(in: message) != nil || identities.contains { message.contains($0) })
    }

    /// The firmware that runs, in the driver's words.
    var firmware: String? { messages.lazy.reversed().compactMap(Self.firmware).first }

    /// The maker's name of a Realtek controller, such as `rtl8761bu`.
    var realtekChip: String? {
        messages.lazy.reversed().compactMap { $0.firstMatch(of: /RTL: loading rtl_bt\/(rtl\w+?)_fw/)?.output.1 }.first
            .map { String($0) }
    }

    /// Whether it is one of Intel's controllers from 8260 to AX201, on which btintel.c does not use the coded PHY
    /// (W13).
    ///
    /// The name of their firmware begins with the number of the variant: SfP, WsP, JfP, ThP, HrP or CcP.
    var isOlderIntel: Bool {
        messages.last { $0.contains("Found device firmware: ") }?.contains(/intel\/ibt-(11|12|17|18|19|20)-/) ?? false
    }

    /// The versions that a controller with the USB identifier of CSR has reported; newer kernels log them in two lines.
    var versionOfCSR: VersionFacts? {
        let hci = messages.lazy.reversed().compactMap { $0.firstMatch(of: /HCI ver=\w+ rev=(\w+)/)?.output.1 }.first
        let link = messages.lazy.reversed().compactMap {
            $0.firstMatch(of: /LMP ver=\w+ subver=(\w+); manufacturer=(\d+)/)?.output
        }.first
        guard let revision = hci.flatMap({ UInt16($0, radix: 16) }), let link,
            let subversion = UInt16(link.1, radix: 16), let company = UInt16(link.2)
        else { return nil }
        return VersionFacts(hciRevision: revision, company: company, linkSubversion: subversion)
    }

    /// Returns the last message about a failure of one of these kinds.
    func last(_ troubles: KernelTrouble...) -> (message: String, trouble: KernelTrouble)? {
        messages.lazy.reversed().compactMap { message in
            KernelTrouble(message).flatMap { troubles.contains($0) ? (message, $0) : nil }
        }.first
    }

    func count(_ trouble: KernelTrouble) -> Int { messages.count { KernelTrouble($0) == trouble } }

    private static func firmware(in message: String) -> String? {
        let texts = [
            /RTL: fw version 0x\w+/, /BCM\w* \([\d.]+\) build \w+/, /HW\/SW Version: .+/, /Firmware Version: .+/,
            /Firmware revision .+/, /QCA controller version 0x\w+/,
        ]
        return texts.lazy.compactMap { message.firstMatch(of: $0).map { String($0.output) } }.first
    }

    private static let identities = [
        "RTL: loading rtl_bt/", "CSR: Setting up dongle", "LMP ver=", "Found device firmware: ",
    ]
}
