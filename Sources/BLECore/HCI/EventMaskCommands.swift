/// The events of a controller that it may send, one bit for each event code.
///
/// Spec: Event_Mask, Core Vol 4 Part E, 7.3.1.
package struct HCIEventMask: OptionSet, Hashable, Sendable {
    /// The 64 bits of the first page.
    package let rawValue: UInt64

    /// Creates a mask from raw bits.
    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// The events that a controller sends after a reset: no LE event is among it.
    package static let initial = HCIEventMask(rawValue: 0x0000_1FFF_FFFF_FFFF)
    /// Every event that the kernel switches on, on a controller of either kind.
    package static let kernel = HCIEventMask(rawValue: 0x3D3F_BFFF_FFFF_FFFF)
    /// LE Meta: every LE event.
    package static let leMeta = HCIEventMask(rawValue: 1 << 61)
}

/// The LE events that a controller may send, one bit for each subevent code.
///
/// Spec: LE_Event_Mask, Core Vol 4 Part E, 7.8.1.
package struct LEEventMask: OptionSet, Hashable, Sendable {
    /// The 64 bits.
    package let rawValue: UInt64

    /// Creates a mask from raw bits.
    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// LE Connection Complete.
    package static let connectionComplete = LEEventMask(rawValue: 1 << 0)
    /// LE Advertising Report.
    package static let advertisingReport = LEEventMask(rawValue: 1 << 1)
    /// LE Connection Update Complete.
    package static let connectionUpdateComplete = LEEventMask(rawValue: 1 << 2)
    /// LE Read Remote Features Complete.
    package static let readRemoteFeaturesComplete = LEEventMask(rawValue: 1 << 3)
    /// LE Long Term Key Request.
    package static let longTermKeyRequest = LEEventMask(rawValue: 1 << 4)
    /// LE Remote Connection Parameter Request.
    package static let remoteConnectionParameterRequest = LEEventMask(rawValue: 1 << 5)
    /// LE Data Length Change.
    package static let dataLengthChange = LEEventMask(rawValue: 1 << 6)
    /// LE Read Local P-256 Public Key Complete.
    package static let readLocalPublicKeyComplete = LEEventMask(rawValue: 1 << 7)
    /// LE Generate DHKey Complete.
    package static let generateDHKeyComplete = LEEventMask(rawValue: 1 << 8)
    /// LE Enhanced Connection Complete.
    package static let enhancedConnectionComplete = LEEventMask(rawValue: 1 << 9)
    /// LE Directed Advertising Report.
    package static let directedAdvertisingReport = LEEventMask(rawValue: 1 << 10)
    /// LE PHY Update Complete.
    package static let phyUpdateComplete = LEEventMask(rawValue: 1 << 11)
    /// LE Extended Advertising Report.
    package static let extendedAdvertisingReport = LEEventMask(rawValue: 1 << 12)
    /// LE Periodic Advertising Sync Established, Report and Sync Lost.
    package static let periodicAdvertising = LEEventMask(rawValue: 0b111 << 13)
    /// LE Advertising Set Terminated.
    package static let advertisingSetTerminated = LEEventMask(rawValue: 1 << 17)
    /// LE Channel Selection Algorithm.
    package static let channelSelectionAlgorithm = LEEventMask(rawValue: 1 << 19)
    /// LE Periodic Advertising Sync Transfer Received.
    package static let periodicSyncTransferReceived = LEEventMask(rawValue: 1 << 23)
    /// LE CIS Established.
    package static let connectedStreamEstablished = LEEventMask(rawValue: 1 << 24)
    /// LE CIS Request.
    package static let connectedStreamRequest = LEEventMask(rawValue: 1 << 25)
    /// The beginnings and ends of broadcast streams, and LE BIGInfo Advertising Report.
    package static let broadcastStreams = LEEventMask(rawValue: 0b1111 << 26 | 1 << 33)
    /// LE Read All Remote Features Complete.
    package static let readAllRemoteFeaturesComplete = LEEventMask(rawValue: 1 << 42)
    /// The events of Channel Sounding.
    package static let channelSounding = LEEventMask(rawValue: 0xFF << 43)
}

/// Sets which events the controller sends.
///
///     0x0C01 | mask 8                reply: status
///
/// Spec: HCI_Set_Event_Mask, Core Vol 4 Part E, 7.3.1.
package struct HCISetEventMask: HCICommand {
    /// HCI_Set_Event_Mask.
    package static let opcode = HCIOpcode.setEventMask
    /// The events.
    package let mask: HCIEventMask

    /// Creates the command.
    package init(_ mask: HCIEventMask) {
        self.mask = mask
    }

    /// The mask.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 8)
        writer.u64(mask.rawValue)
        return writer.bytes
    }
}

/// Sets which LE events the controller sends.
///
///     0x2001 | mask 8                reply: status
///
/// Spec: HCI_LE_Set_Event_Mask, Core Vol 4 Part E, 7.8.1.
package struct LESetEventMask: HCICommand {
    /// HCI_LE_Set_Event_Mask.
    package static let opcode = HCIOpcode.leSetEventMask
    /// The events.
    package let mask: LEEventMask

    /// Creates the command.
    package init(_ mask: LEEventMask) {
        self.mask = mask
    }

    /// The mask.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 8)
        writer.u64(mask.rawValue)
        return writer.bytes
    }
}
