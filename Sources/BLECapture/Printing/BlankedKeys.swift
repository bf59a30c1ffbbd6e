internal import BLECore

/// Keys in the packets of captures, which are not printed: captures of other programs have them.
enum BlankedKeys {
    /// Overwrites the key in a packet of the Security Manager with zeros: the whole packet after its code.
    ///
    /// Spec: Core Vol 3 Part H, 3.6.2 (Encryption Information), 3.6.4 (Identity Information), 3.6.6
    /// (Signing Information).
    static func blank(securityManager payload: inout [UInt8]) {
        guard isKey(payload) else { return }
        for index in payload.indices.dropFirst() { payload[index] = 0 }
    }

    /// The same, in the piece of data that has completed the packet.
    static func blank(_ payload: [UInt8], inData data: inout [UInt8]) {
        guard isKey(payload) else { return }
        // Handle and length come before each piece; length and channel before the first one, and then the code.
        for index in data.indices.dropFirst(isFirst(data) ? 9 : 4) { data[index] = 0 }
    }

    /// The same, in the first piece of a packet on one of these channels, whatever it is.
    static func blank(unfinished data: inout [UInt8], of channels: Set<UInt16>) {
        var reader = ByteReader(data.span)
        guard reader.skip(6), let channel = reader.u16(), isFirst(data), channels.contains(channel) else { return }
        for index in data.indices.dropFirst(9) { data[index] = 0 }
    }

    /// Whether data is the first piece of a packet, by the flags in its handle.
    private static func isFirst(_ data: [UInt8]) -> Bool {
        data.dropFirst().first.map { $0 >> 4 & 0b11 != 0b01 } ?? false
    }

    private static func isKey(_ payload: [UInt8]) -> Bool { [0x06, 0x08, 0x0A].contains(payload.first) }

    /// Overwrites the parameters of a management command, or event, that has keys.
    ///
    /// - Parameter record: The cookie of the program, 4 bytes, the code, 2 bytes, and the parameters, as the kernel's
    ///   monitor writes them.
    static func blank(management record: inout [UInt8], isCommand: Bool) {
        var reader = ByteReader(record.span)
        guard reader.skip(4), let code = reader.u16() else { return }
        // Command Complete of Read Local Out Of Band Data, and of its extended form.
        let isLocalData = !isCommand && code == 0x01 && reader.u16().map { $0 == 0x20 || $0 == 0x3B } ?? false
        guard isLocalData || (isCommand ? commands : events).contains(code) else { return }
        for index in record.indices.dropFirst(6) { record[index] = 0 }
    }

    /// Load Link Keys, Load Long Term Keys, PIN Code Reply, User Passkey Reply, Add Remote Out Of Band Data, Set
    /// Privacy, Load Identity Resolving Keys, Set Blocked Keys.
    ///
    /// Spec: BlueZ, doc/mgmt-api.
    private static let commands: Set<UInt16> = [0x12, 0x13, 0x16, 0x1E, 0x21, 0x2F, 0x30, 0x46]
    /// New Link Key, New Long Term Key, Passkey Notify, New Identity Resolving Key, New Signature Resolving Key.
    private static let events: Set<UInt16> = [0x09, 0x0A, 0x17, 0x18, 0x19]
}
