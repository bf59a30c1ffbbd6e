/// The parameters of a connection attempt: the scan for the peer's advertisement, and the link's parameters.
///
/// Spec: Core Vol 4 Part E, 7.8.12.
package struct LEInitiation: Hashable, Sendable {
    /// The peer to connect to. An identity address type makes the controller resolve private addresses.
    package let peerAddress: BluetoothAddress
    /// The type of the peer's address.
    package let peerAddressType: AddressType
    /// The type of the own address that the peer sees.
    package let ownAddressType: AddressType
    /// The scan interval, in units of 0.625 ms.
    package let scanInterval: UInt16
    /// The scan window, in units of 0.625 ms.
    package let scanWindow: UInt16
    /// The connection parameters.
    package let parameters: ConnectionParameters

    /// Creates initiation parameters. By default, the controller listens half of the time (30 ms of every 60 ms): one
    /// that listens without a break leaves a Wi-Fi radio on the same antenna no time. Where there is one, 15 ms of
    /// every 60 ms (`windowBesideWiFi`) leave it more (row W50).
    package init(
        peer: PeerID, ownAddressType: AddressType = .public, scanInterval: UInt16 = 96,
        scanWindow: UInt16 = usualWindow,
        parameters: ConnectionParameters = .balanced
    ) {
        self.peerAddress = peer.address
        self.peerAddressType = peer.type
        self.ownAddressType = ownAddressType
        self.scanInterval = scanInterval
        self.scanWindow = min(scanWindow, scanInterval)
        self.parameters = parameters
    }

    /// The usual scan window, in units of 0.625 ms.
    package static let usualWindow: UInt16 = 48
    /// The scan window beside a Wi-Fi radio on the same antenna, in units of 0.625 ms.
    package static let windowBesideWiFi: UInt16 = 24
}

/// Initiates a connection on the 1M PHY. Only one attempt may be pending; it ends with LE Connection Complete.
///
///     0x200D | scan interval 2 | window 2 | filter policy 1 | peer type 1 | peer 6 | own type 1 | interval 2, 2
///            | latency 2 | supervision timeout 2
///            | event length 2, 2      reply: Command Status, later LEConnectionComplete
///
/// Spec: HCI_LE_Create_Connection, Core Vol 4 Part E, 7.8.12.
package struct LECreateConnection: HCICommand {
    /// HCI_LE_Create_Connection.
    package static let opcode = HCIOpcode.leCreateConnection
    /// The initiation parameters.
    package let initiation: LEInitiation

    /// Creates a command to connect to one peer by its address; the filter accept list is not used.
    package init(_ initiation: LEInitiation) {
        self.initiation = initiation
    }

    /// The 25 bytes of parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 25)
        writer.u16(initiation.scanInterval)
        writer.u16(initiation.scanWindow)
        writer.u8(0)
        writer.u8(initiation.peerAddressType.rawValue)
        writer.u48(initiation.peerAddress.rawValue)
        writer.u8(initiation.ownAddressType.rawValue)
        writer.link(initiation.parameters)
        return writer.bytes
    }
}

/// Initiates a connection on one or several PHYs. Only one attempt may be pending; it ends with LE Enhanced Connection
/// Complete.
///
///     0x2043 | filter policy 1 | own type 1 | peer type 1 | peer 6 | PHYs 1 | for each PHY: scan interval 2 | window 2
///            | interval 2, 2 | latency 2 | supervision timeout 2 | event length 2, 2
///
/// Spec: HCI_LE_Extended_Create_Connection, Core Vol 4 Part E, 7.8.66.
package struct LEExtendedCreateConnection: HCICommand {
    /// HCI_LE_Extended_Create_Connection.
    package static let opcode = HCIOpcode.leExtendedCreateConnection
    /// The initiation parameters.
    package let initiation: LEInitiation
    /// The PHYs to scan on (1M, Coded), and those with initial connection parameters (also 2M).
    package let phys: LEPHYs

    /// Creates a command to connect to one peer by its address; the filter accept list is not used.
    package init(_ initiation: LEInitiation, phys: LEPHYs = .le1M) {
        self.initiation = initiation
        self.phys = phys.intersection([.le1M, .le2M, .leCoded])
    }

    /// Ten bytes, then 16 bytes for each PHY, lowest bit first.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 58)
        writer.u8(0)
        writer.u8(initiation.ownAddressType.rawValue)
        writer.u8(initiation.peerAddressType.rawValue)
        writer.u48(initiation.peerAddress.rawValue)
        writer.u8(phys.rawValue)
        for _ in 0..<phys.rawValue.nonzeroBitCount {
            writer.u16(initiation.scanInterval)
            writer.u16(initiation.scanWindow)
            writer.link(initiation.parameters)
        }
        return writer.bytes
    }
}

/// Cancels the pending connection attempt. It ends with Connection Complete: status 0x02, or success if the link came
/// first.
///
///     0x200E | -      reply: status; 0x0C if no attempt is pending
///
/// Spec: HCI_LE_Create_Connection_Cancel, Core Vol 4 Part E, 7.8.13.
package struct LECreateConnectionCancel: HCICommand {
    /// HCI_LE_Create_Connection_Cancel.
    package static let opcode = HCIOpcode.leCreateConnectionCancel
    /// Empty.
    package var parameters: [UInt8] { [] }

    /// Creates the command.
    package init() {}
}

extension ByteWriter {
    /// Appends interval, latency, timeout, and an event length that leaves the choice to the controller.
    mutating func link(_ parameters: ConnectionParameters) {
        u16(parameters.intervalMin)
        u16(parameters.intervalMax)
        u16(parameters.latency)
        u16(parameters.timeout)
        u16(0)
        u16(0)
    }
}
