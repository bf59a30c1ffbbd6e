// What other programs and the kernel advertise on an adapter, as far as it is seen.
//
// Duties: read their commands that put advertisements on air and take them off, and the responses, of which there is no
// other sign.
//
// Invariants:
// - What began before the adapter was opened is not known.
// - The kernel's own commands count, so that its advertising instances do.
// - A command has an effect with its response, and its own program alone receives the parameters back. Of two commands
//   that are sent before the first response, the first one is lost here: the last response counts as one to a command
//   that was not seen.

/// Follows the advertisements of other programs on one adapter.
package struct OtherAdvertising: Sendable {
    /// The handles of the sets on air.
    private var handles: Set<UInt8> = []
    /// Whether the advertiser of a controller that has no sets is on air.
    private var isLegacyOnAir = false
    /// The command that has no response yet.
    private var announced: HCICommandPacket?

    package init() {}

    /// A Boolean value that indicates whether another program advertises.
    package var isOnAir: Bool { isLegacyOnAir || !handles.isEmpty }

    /// Another program, or the kernel, sends a command.
    package mutating func received(_ foreign: HCICommandPacket) {
        switch foreign.opcode {
        case .leSetAdvertisingEnable, .leSetExtendedAdvertisingEnable, .leRemoveAdvertisingSet: announced = foreign
        default: break
        }
    }

    /// Another program's command, or the kernel's, has its response.
    ///
    /// - Returns: The sets that the command names; `nil` if it is about all of them, or was not seen.
    @discardableResult
    package mutating func completed(_ opcode: HCIOpcode, _ status: HCIStatus?) -> Set<UInt8>? {
        guard let command = announced, command.opcode == opcode else { return nil }
        announced = nil
        guard status == .success else { return nil }
        var reader = ByteReader(command.parameters.span)
        switch opcode {
        case .leRemoveAdvertisingSet: return reader.u8().map { [$0] }
        case .leSetExtendedAdvertisingEnable: return setsEnabled(&reader)
        default:
            if let flag = reader.u8() { isLegacyOnAir = flag == 1 }
            return nil
        }
    }

    /// Reads the parameters of LE Set Extended Advertising Enable.
    private mutating func setsEnabled(_ reader: inout ByteReader) -> Set<UInt8>? {
        guard let flag = reader.u8(), let count = reader.u8() else { return nil }
        if count == 0 {
            if flag == 0 { handles = [] }
            return nil
        }
        var named: Set<UInt8> = []
        for _ in 0..<count {
            // The handle, then its duration and number of events.
            guard let handle = reader.u8(), reader.skip(3) else { return nil }
            if flag == 1 { handles.insert(handle) } else { handles.remove(handle) }
            named.insert(handle)
        }
        return named
    }

    /// This program has used the one advertiser.
    package mutating func taken(by opcode: HCIOpcode) {
        if opcode == .leSetAdvertisingEnable { isLegacyOnAir = false }
    }

    /// LE Advertising Set Terminated was read.
    package mutating func ended(_ handle: UInt8) { handles.remove(handle) }

    /// LE Connection Complete was read: a central has connected, by the one advertiser where there are no sets, or
    /// directed advertising at a high duty cycle has ended without one.
    package mutating func received(_ event: LEConnectionComplete) {
        let hasEnded = event.status.isSuccess ? !event.isCentral : event.status == .advertisingTimeout
        if hasEnded { isLegacyOnAir = false }
    }
}
