/// The byte in front of every packet between host and controller.
///
/// Spec: HCI packet indicators, Core Vol 4 Part A, 2.
public enum HCIPacketType: UInt8, Hashable, Sendable {
    /// A command, host to controller.
    case command = 0x01
    /// Data of a link, both ways.
    case asynchronousData = 0x02
    /// Audio of a BR/EDR link, both ways.
    case synchronousData = 0x03
    /// An event, controller to host.
    case event = 0x04
    /// Isochronous data, both ways.
    case isochronousData = 0x05
}
