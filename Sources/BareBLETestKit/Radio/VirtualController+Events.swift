package import BLECore

// The events of the controller, encoded.

extension VirtualController {
    /// The maximum advertising data of one extended report, in bytes.
    private static let longestPiece = 229

    func complete(_ opcode: HCIOpcode, _ returned: [UInt8]) -> Action {
        .send(Self.commandComplete(opcode, returned))
    }

    func complete(_ opcode: HCIOpcode, _ status: HCIStatus) -> Action {
        .send(Self.commandComplete(opcode, [status.rawValue]))
    }

    func status(_ opcode: HCIOpcode, _ status: HCIStatus) -> Action {
        .send(Self.commandStatus(opcode, status))
    }

    /// Spec: HCI_Command_Complete, Core Vol 4 Part E, 7.7.14.
    package static func commandComplete(_ opcode: HCIOpcode, _ returned: [UInt8]) -> [UInt8] {
        event(0x0E, [1] + opcode.rawValue.littleEndianBytes + returned)
    }

    /// Spec: HCI_Command_Status, Core Vol 4 Part E, 7.7.15.
    package static func commandStatus(_ opcode: HCIOpcode, _ status: HCIStatus) -> [UInt8] {
        event(0x0F, [status.rawValue, 1] + opcode.rawValue.littleEndianBytes)
    }

    /// Spec: HCI_Disconnection_Complete, Core Vol 4 Part E, 7.7.5.
    package static func disconnectionComplete(_ handle: ConnectionHandle, _ reason: HCIStatus) -> [UInt8] {
        event(0x05, [0] + handle.littleEndianBytes + [reason.rawValue])
    }

    /// Spec: HCI_Encryption_Change, Core Vol 4 Part E, 7.7.8.
    package static func encryptionChange(_ handle: ConnectionHandle, _ status: HCIStatus, isOn: Bool) -> [UInt8] {
        event(0x08, [status.rawValue] + handle.littleEndianBytes + [isOn ? 1 : 0])
    }

    /// Spec: HCI_Encryption_Key_Refresh_Complete, Core Vol 4 Part E, 7.7.39.
    package static func encryptionKeyRefresh(_ handle: ConnectionHandle) -> [UInt8] {
        event(0x30, [0] + handle.littleEndianBytes)
    }

    /// Spec: HCI_LE_Connection_Complete and HCI_LE_Enhanced_Connection_Complete, Core Vol 4 Part E, 7.7.65.1 and
    /// 7.7.65.10.
    package static func connectionComplete(
        _ status: HCIStatus, _ handle: ConnectionHandle, _ peer: PeerID, _ parameters: ConnectionParameters,
        isCentral: Bool = true, isEnhanced: Bool
    ) -> [UInt8] {
        let named = status == .unknownConnection ? BluetoothAddress.zero : peer.address
        var writer = ByteWriter()
        writer.u8(isEnhanced ? 0x0A : 0x01)
        writer.u8(status.rawValue)
        writer.u16(handle)
        writer.u8(isCentral ? 0 : 1)
        writer.u8(peer.type == .public ? 0 : 1)
        writer.u48(named.rawValue)
        if isEnhanced { writer.array([UInt8](repeating: 0, count: 12)) }
        writer.u16(parameters.intervalMin)
        writer.u16(parameters.latency)
        writer.u16(parameters.timeout)
        writer.u8(0)
        return event(0x3E, writer.bytes)
    }

    /// Spec: HCI_LE_Advertising_Set_Terminated, Core Vol 4 Part E, 7.7.65.18.
    package static func advertisingSetTerminated(_ advertisement: UInt8, _ handle: ConnectionHandle) -> [UInt8] {
        event(0x3E, [0x12, 0x00, advertisement] + handle.littleEndianBytes + [0])
    }

    /// Spec: HCI_LE_Connection_Update_Complete, Core Vol 4 Part E, 7.7.65.3.
    package static func updateComplete(_ handle: ConnectionHandle, _ parameters: ConnectionParameters) -> [UInt8] {
        var writer = ByteWriter()
        writer.array([0x03, 0x00])
        writer.u16(handle)
        writer.u16(parameters.intervalMin)
        writer.u16(parameters.latency)
        writer.u16(parameters.timeout)
        return event(0x3E, writer.bytes)
    }

    /// Spec: HCI_LE_PHY_Update_Complete, Core Vol 4 Part E, 7.7.65.12.
    package static func phyUpdateComplete(_ handle: ConnectionHandle, _ transmit: PHY, _ receive: PHY) -> [UInt8] {
        event(0x3E, [0x0C, 0x00] + handle.littleEndianBytes + [transmit.rawValue, receive.rawValue])
    }

    /// Encodes a report in the legacy event. Event types: 0 connectable, 2 scannable, 3 nonconnectable, 4 scan
    /// response.
    ///
    /// Spec: HCI_LE_Advertising_Report, Core Vol 4 Part E, 7.7.65.2.
    package static func report(
        of peer: PeerID, eventType: UInt8, data: [UInt8], rssi: Int8
    ) -> [UInt8] {
        var writer = ByteWriter()
        writer.array([0x02, 0x01, eventType, peer.type == .public ? 0 : 1])
        writer.u48(peer.address.rawValue)
        writer.u8(UInt8(truncatingIfNeeded: data.count))
        writer.array(data)
        writer.i8(rssi)
        return event(0x3E, writer.bytes)
    }

    /// Returns the reports for an advertisement that this controller receives: one, or several for long data.
    package func reports(of peer: PeerID, _ advertisement: VirtualAdvertisement, rssi: Int8) -> [[UInt8]] {
        guard reportsExtended else {
            let rssi = personality.rssi ?? rssi
            let type: UInt8 = advertisement.isConnectable ? 0 : advertisement.scanResponse == nil ? 3 : 2
            let report = Self.report(of: peer, eventType: type, data: advertisement.data, rssi: rssi)
            guard isActive, let response = advertisement.scanResponse else { return [report] }
            return [report, Self.report(of: peer, eventType: 4, data: response, rssi: rssi)]
        }
        if advertisement.isLong {
            return extendedReports(of: peer, advertisement.isConnectable ? 0x01 : 0x00, advertisement.data, rssi)
        }
        let isScannable = advertisement.isConnectable || advertisement.scanResponse != nil
        let bits: UInt16 = (advertisement.isConnectable ? 0x01 : 0) | (isScannable ? 0x02 : 0) | 0x10
        let reports = extendedReports(of: peer, bits, advertisement.data, rssi)
        guard isActive, let response = advertisement.scanResponse else { return reports }
        return reports + extendedReports(of: peer, bits | 0x08, response, rssi)
    }

    /// Spec: HCI_LE_Extended_Advertising_Report, Core Vol 4 Part E, 7.7.65.13.
    private func extendedReports(of peer: PeerID, _ eventType: UInt16, _ data: [UInt8], _ rssi: Int8) -> [[UInt8]] {
        var reports: [[UInt8]] = []
        var rest = data[...]
        let reserved: (type: UInt16, phy: UInt8) = personality.setsReservedBits ? (0x2500, 0x20) : (0, 0)
        repeat {
            let piece = rest.prefix(Self.longestPiece)
            rest = rest.dropFirst(piece.count)
            var writer = ByteWriter()
            writer.array([0x0D, 0x01])
            // Bit 5: the next report continues the data.
            writer.u16(eventType | reserved.type | (rest.isEmpty ? 0 : 0x20))
            writer.u8(peer.type == .public ? 0 : 1)
            writer.u48(peer.address.rawValue)
            // Primary PHY 1M; a secondary PHY only if there is an auxiliary packet. No SID, no transmit power.
            let isLegacy = eventType & 0x10 != 0
            writer.array([0x01 | reserved.phy, (isLegacy ? 0x00 : 0x01) | reserved.phy, isLegacy ? 0xFF : 0x00, 0x7F])
            writer.i8(personality.rssi ?? rssi)
            writer.array([UInt8](repeating: 0, count: 9))
            writer.u8(UInt8(truncatingIfNeeded: piece.count))
            writer.array(Array(piece))
            reports.append(Self.event(0x3E, writer.bytes))
        } while !rest.isEmpty
        return reports
    }

    private static func event(_ code: UInt8, _ parameters: [UInt8]) -> [UInt8] {
        [HCIPacketType.event.rawValue, code, UInt8(truncatingIfNeeded: parameters.count)] + parameters
    }
}
