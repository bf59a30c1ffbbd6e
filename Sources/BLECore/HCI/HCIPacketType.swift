/// The indicator that precedes every packet between host and controller.
///
/// Spec: HCI packet indicators, Core Vol 4 Part A, 2.
public enum HCIPacketType: UInt8, Hashable, Sendable {
    /// A command, from host to controller.
    case command = 0x01
    /// ACL data, in both directions.
    case asynchronousData = 0x02
    /// Synchronous (SCO) data, in both directions.
    case synchronousData = 0x03
    /// An event, from controller to host.
    case event = 0x04
    /// Isochronous data, in both directions.
    case isochronousData = 0x05
}
