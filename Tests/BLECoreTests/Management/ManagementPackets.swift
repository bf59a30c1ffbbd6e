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
