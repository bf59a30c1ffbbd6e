/// Packets that bluetoothd and btmgmt exchanged with a kernel, as btmon recorded them.
///
/// From `mauricelam_btsnoop-rs__btsnoop_btmon:record` of shared/vectors/captures. The recording has the code and the
/// parameters; the length field of the header is added by hand.
enum ManagementPackets {
    /// 181
    static let readInformation = bytes("04000000 0000")
    /// 182: E8:48:B8:C8:20:00, Bluetooth 5.1, Realtek.
    static let information =
        bytes("01000000 1b01 0400 00 0020c8b848e8 0a 5d00 ffbf0300 d00a0000 000000")
        + bytes("42726967687441492d33343536") + [UInt8](repeating: 0, count: 249 - 13 + 11)
    /// 507: Read Advertising Features, refused.
    static let refusal = bytes("02000000 0300 4c00 0d")
    /// 135: Read Version, which belongs to no adapter.
    static let version = bytes("0100ffff 0600 0100 00 01 1600")
    /// 27: New Settings.
    static let newSettings = bytes("06000000 0400 d00a0000")
    /// 7: bluetoothd has the management interface open.
    static let controlOpen =
        bytes("0e00ffff 1e00 01000000 0200 011600 01000000 10") + Array("bluetoothd".utf8)
        + [UInt8](repeating: 0, count: 6)
    /// 93: Control Close.
    static let controlClose = bytes("0f00ffff 0400 01000000")
}

/// Commands of bluetoothd, and the kernel's responses to them, from the same recording; the numbers are its records'.
extension ManagementPackets {
    /// 348 and 450: Set Powered.
    static let setPowered = bytes("05000000 0100 01")
    static let powered = bytes("01000000 0700 0500 00 d10a0000")
    /// 318 and 319: Set Privacy, off.
    static let setPrivacy = bytes("2f000000 1100 00") + [UInt8](repeating: 0, count: 16)
    static let privacyIsOff = bytes("01000000 0700 2f00 00 d00a0000")
    /// 515 and 516: Load Long Term Keys, none.
    static let loadNoKeys = bytes("13000000 0200 0000")
    static let noKeysLoaded = bytes("01000000 0300 1300 00")
    /// 520: Load Identity Resolving Keys, none.
    static let loadNoIdentities = bytes("30000000 0200 0000")
    /// 546: Set Blocked Keys, the two that Google's security keys had in common.
    static let setBlockedKeys = bytes(
        "46000000 2400 0200 01bf01fb9d4ef3bc36d874f5394138684c 02a599bae4e17ca618228e0756b4e85f01")
    /// 551 and 552: Set IO Capability.
    static let setCapability = bytes("18000000 0100 04")
    /// 339 and 340: Read Controller Capabilities.
    static let readCapabilities = bytes("48000000 0000")
    static let capabilities = bytes("01000000 1000 4800 00 0b00 02010e 03031000 0304ed17")
}
