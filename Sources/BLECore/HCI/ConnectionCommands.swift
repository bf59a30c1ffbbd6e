/// What the initiator does: how it listens for the peer's advertisement, and how the link is to run.
///
/// Spec: Core Vol 4 Part E, 7.8.12.
public struct LEInitiation: Hashable, Sendable {
    /// The peer to call. An identity type asks the controller to resolve private addresses.
    public let peerAddress: BluetoothAddress
    /// The type of the peer's address.
    public let peerAddressType: AddressType
    /// Whose address the peer sees.
    public let ownAddressType: AddressType
    /// From one listening window's start to the next, in units of 0.625 ms.
    public let scanInterval: UInt16
    /// How long to listen each time, in units of 0.625 ms.
    public let scanWindow: UInt16
    /// How the link is to run.
    public let parameters: ConnectionParameters

    /// Listens all the time (60 ms of every 60 ms) unless told otherwise: the call lasts a moment only.
    public init(
        peer: PeerID, ownAddressType: AddressType = .public, scanInterval: UInt16 = 96, scanWindow: UInt16 = 96,
        parameters: ConnectionParameters = .balanced
    ) {
        self.peerAddress = peer.address
        self.peerAddressType = peer.type
        self.ownAddressType = ownAddressType
        self.scanInterval = scanInterval
        self.scanWindow = min(scanWindow, scanInterval)
        self.parameters = parameters
    }
}

/// Calls a peer on the 1M PHY. One call at a time; the end is LE Connection Complete.
///
///     0x200D | scan interval 2 | window 2 | filter policy 1 | peer type 1 | peer 6 | own type 1 | interval 2, 2
///            | latency 2 | supervision time-out 2 | event length 2, 2      reply: Command Status, later LEConnectionComplete
///
/// Spec: HCI_LE_Create_Connection, Core Vol 4 Part E, 7.8.12.
public struct LECreateConnection: HCICommand {
    /// HCI_LE_Create_Connection.
    public static let opcode = HCIOpcode.leCreateConnection
    /// Whom to call, and how.
    public let initiation: LEInitiation

    /// Calls one peer by its address; the accept list is not used.
    public init(_ initiation: LEInitiation) {
        self.initiation = initiation
    }

    /// Twenty-five bytes.
    public var parameters: [UInt8] {
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

/// Calls a peer on one or several PHYs. One call at a time; the end is LE Enhanced Connection Complete.
///
///     0x2043 | filter policy 1 | own type 1 | peer type 1 | peer 6 | PHYs 1 | for each PHY: scan interval 2 | window 2
///            | interval 2, 2 | latency 2 | supervision time-out 2 | event length 2, 2
///
/// Spec: HCI_LE_Extended_Create_Connection, Core Vol 4 Part E, 7.8.66.
public struct LEExtendedCreateConnection: HCICommand {
    /// HCI_LE_Extended_Create_Connection.
    public static let opcode = HCIOpcode.leExtendedCreateConnection
    /// Whom to call, and how.
    public let initiation: LEInitiation
    /// The PHYs to listen on (1M, coded) and those that the link may begin on (also 2M).
    public let phys: LEPHYs

    /// Calls one peer by its address; the accept list is not used.
    public init(_ initiation: LEInitiation, phys: LEPHYs = .le1M) {
        self.initiation = initiation
        self.phys = phys.intersection([.le1M, .le2M, .coded])
    }

    /// Ten bytes, then sixteen for each PHY, lowest bit first.
    public var parameters: [UInt8] {
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

/// Takes back the call that is out. Its end is a Connection Complete with status 0x02, or with the link, if that was first.
///
///     0x200E | -      reply: status; 0x0C when no call is out
///
/// Spec: HCI_LE_Create_Connection_Cancel, Core Vol 4 Part E, 7.8.13.
public struct LECreateConnectionCancel: HCICommand {
    /// HCI_LE_Create_Connection_Cancel.
    public static let opcode = HCIOpcode.leCreateConnectionCancel
    /// Nothing.
    public var parameters: [UInt8] { [] }

    /// The command.
    public init() {}
}

extension ByteWriter {
    /// Interval, latency, time-out, and an event length that the controller may choose.
    mutating func link(_ parameters: ConnectionParameters) {
        u16(parameters.intervalMin)
        u16(parameters.intervalMax)
        u16(parameters.latency)
        u16(parameters.timeout)
        u16(0)
        u16(0)
    }
}
