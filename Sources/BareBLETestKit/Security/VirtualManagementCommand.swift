internal import BLECore

// A command of the management interface, as the kernel checks it before it looks at an adapter: the code, the length,
// who may send it, and whether it names an adapter.

/// A command that a socket has sent.
struct VirtualManagementCommand {
    static let readIndexList = ManagementCommandCode(rawValue: 0x0003)
    static let setSecureSimplePairing = ManagementCommandCode(rawValue: 0x000B)
    static let setClassic = ManagementCommandCode(rawValue: 0x002A)
    /// The commands that anybody may send.
    private static let open: Set<ManagementCommandCode> = [
        .readVersion, readIndexList, .readControllerInformation, .readControllerCapabilities,
    ]
    /// The commands that belong to no adapter.
    private static let general: Set<ManagementCommandCode> = [.readVersion, readIndexList]
    /// The lengths of the parameters; a negative one is the minimum.
    private static let lengths: [ManagementCommandCode: Int] = [
        .readVersion: 0, readIndexList: 0, .readControllerInformation: 0, .setPowered: 1, .setBondable: 1,
        setSecureSimplePairing: 1, .setLowEnergy: 1, .loadLongTermKeys: -2, .disconnect: 7, .getConnections: 0,
        .setIOCapability: 1, .pairDevice: 8, .cancelPairDevice: 7, .unpairDevice: 8, .userConfirmationReply: 7,
        .userConfirmationNegativeReply: 7, .userPasskeyReply: 11, .userPasskeyNegativeReply: 7,
        .addRemoteOutOfBandData: -39, setClassic: 1, .setSecureConnections: 1, .setPrivacy: 17,
        .loadIdentityResolvingKeys: -2, .readLocalOutOfBandData: 1, .setBlockedKeys: -2,
        .readControllerCapabilities: 0, .readAdvertisingFeatures: 0, .removeAdvertising: 1,
        .addExtendedAdvertisingParameters: -18, .addExtendedAdvertisingData: -3,
    ]

    let code: ManagementCommandCode
    /// The adapter; `nil` for a general command.
    let adapter: UInt16?
    let parameters: [UInt8]

    /// Reads a packet; `nil` for one whose length field is wrong, which the kernel refuses to take.
    init?(_ packet: [UInt8]) {
        guard let packet = try? ManagementPacket(packet.span) else { return nil }
        code = ManagementCommandCode(rawValue: packet.code)
        adapter = packet.adapter
        parameters = packet.parameters
    }

    /// Why the kernel refuses the command at once; `nil` if it does not.
    ///
    /// - Parameters:
    ///   - isTrusted: Whether the socket was opened with CAP_NET_ADMIN.
    ///   - exists: Whether there is an adapter with an index.
    func refusal(isTrusted: Bool, whereAdapter exists: (UInt16) -> Bool) -> ManagementStatus? {
        guard let length = Self.lengths[code] else { return .unknownCommand }
        guard isTrusted || Self.open.contains(code) else { return .permissionDenied }
        let isGeneral = Self.general.contains(code)
        guard isGeneral == (adapter == nil), adapter.map(exists) ?? true else { return .invalidIndex }
        let count = parameters.count
        return length >= 0 && count != length || count < -length ? .invalidParameters : nil
    }
}
