package import BLECore
internal import CBluetooth

/// The packets that the kernel passes to a raw HCI socket; a new socket gets none.
///
/// Without CAP_NET_RAW the kernel silently removes more: no LE events and no data are passed.
package struct HCIFilter: Hashable, Sendable {
    /// A bit for each packet type.
    package private(set) var packetTypes: UInt32 = 0
    /// A bit for each event code; codes above 63 share bits with lower ones.
    package private(set) var events: UInt64 = 0
    /// When set, only the completions of this command pass; other events are not affected.
    package var opcode: HCIOpcode?

    private static let completions: [UInt8] = [0x0E, 0x0F]
    private static let command: UInt8 = 0x01
    private static let event: UInt8 = 0x04
    private static let data: UInt8 = 0x02

    /// Passes the events with these codes, and on request data in both directions and the commands of others.
    package init(events codes: [UInt8], opcode: HCIOpcode? = nil, data: Bool = false, commands: Bool = false) {
        self.opcode = opcode
        packetTypes = 1 << UInt32(Self.event)
        if data { packetTypes |= 1 << UInt32(Self.data) }
        if commands { packetTypes |= 1 << UInt32(Self.command) }
        for code in codes { events |= 1 << UInt64(code & 63) }
    }

    /// For the socket that sends commands: completions, and the ends of links, but no reports.
    ///
    /// LE events are not among them; a socket that waits for connections adds code 0x3E.
    package static let commands = HCIFilter(events: completions + [0x05, 0x08, 0x0C, 0x30])

    /// For the socket that reads LE events: advertising reports, and the beginnings and updates of links.
    package static let reports = HCIFilter(events: [0x3E])

    /// As `reports`, and data both ways: to notice data that comes ahead of its link.
    package static let reportsAndData = HCIFilter(events: [0x3E], data: true)

    /// Passes every event, and data both ways; for recording.
    package static let everything: HCIFilter = {
        var filter = HCIFilter(events: [], data: true)
        filter.events = .max
        filter.packetTypes = .max
        return filter
    }()

    /// The filter in the kernel's form.
    var kernelFilter: hci_filter {
        var result = hci_filter()
        result.type_mask = packetTypes
        result.event_mask = (UInt32(truncatingIfNeeded: events), UInt32(truncatingIfNeeded: events >> 32))
        result.opcode = (opcode?.rawValue ?? 0).littleEndian
        return result
    }
}

extension HCIFilter {
    init(_ kernel: hci_filter) {
        packetTypes = kernel.type_mask
        events = UInt64(kernel.event_mask.0) | UInt64(kernel.event_mask.1) << 32
        opcode = kernel.opcode == 0 ? nil : HCIOpcode(rawValue: UInt16(littleEndian: kernel.opcode))
    }
}
