internal import BLECore

extension PacketPrinter {
    // MARK: Commands

    mutating func describeCommand(_ packet: CapturedPacket, _ printed: inout PrintedPacket) {
        // Captures of other programs have the keys in it.
        var bytes = packet.bytes
        HCICommandPacket.blankKeys(in: &bytes)
        printed.bytes = bytes
        var reader = ByteReader(bytes.span)
        guard let opcode = reader.u16(), reader.skip(1) else {
            printed.title = "Command without a complete opcode"
            printed.details = PacketNames.dump(packet.bytes)
            return
        }
        sentCommands.sent(opcode, packet)
        printed.title = PacketNames.command(opcode)
        let parameters = reader.rest()
        printed.details = Self.fields(ofCommand: opcode, parameters) ?? PacketNames.dump(parameters)
    }

    /// The fields of the commands for scanning and connecting; `nil` for other commands and for malformed parameters.
    private static func fields(ofCommand opcode: UInt16, _ parameters: [UInt8]) -> [String]? {
        var reader = ByteReader(parameters.span)
        switch HCIOpcode(rawValue: opcode) {
        case .disconnect:
            guard let handle = reader.u16(), let reason = reader.u8() else { return nil }
            return ["link \(PacketNames.hex(handle)): \(HCIStatus(rawValue: reason))"]
        case .leSetScanParameters:
            guard let type = reader.u8(), let interval = reader.u16(), let window = reader.u16() else { return nil }
            return [scan(type, interval, window)]
        case .leSetScanEnable:
            guard let on = reader.u8(), let filters = reader.u8() else { return nil }
            return [switched(on, filters)]
        case .leSetExtendedScanParameters:
            guard reader.skip(2), let phys = reader.u8() else { return nil }
            var lines: [String] = []
            for bit in 0..<8 where phys >> UInt8(bit) & 1 != 0 {
                guard let type = reader.u8(), let interval = reader.u16(), let window = reader.u16() else { return nil }
                lines.append("PHY \(bit == 0 ? "1M" : bit == 2 ? "Coded" : "\(bit)"): " + scan(type, interval, window))
            }
            return lines
        case .leSetExtendedScanEnable:
            guard let on = reader.u8(), let filters = reader.u8(), reader.skip(4) else { return nil }
            return [switched(on, filters)]
        case .leCreateConnection:
            guard reader.skip(5), let type = reader.u8(), let address = reader.address() else { return nil }
            return ["peer \(peer(address, type))"]
        case .leExtendedCreateConnection:
            guard reader.skip(2), let type = reader.u8(), let address = reader.address() else { return nil }
            return ["peer \(peer(address, type))"]
        default:
            return nil
        }
    }

    private static func scan(_ type: UInt8, _ interval: UInt16, _ window: UInt16) -> String {
        let every = milliseconds(.microseconds(625 &* Int64(interval)))
        return
            "\(type == 1 ? "active" : "passive"), \(milliseconds(.microseconds(625 &* Int64(window)))) every \(every)"
    }

    private static func switched(_ on: UInt8, _ filters: UInt8) -> String {
        on == 0 ? "off" : filters == 0 ? "on, duplicates too" : "on, without duplicates"
    }

    private static func peer(_ address: BluetoothAddress, _ type: UInt8) -> String {
        "\(address)/\(type & 1 == 0 ? "public" : "random")"
    }

    /// `7.5 ms`.
    static func milliseconds(_ duration: Duration) -> String {
        let hundredths = (duration.wholeMicroseconds &+ 5) / 10
        let rest = hundredths % 100
        var text = "\(hundredths / 100)"
        if rest != 0 { text += "." + (rest % 10 == 0 ? "\(rest / 10)" : rest < 10 ? "0\(rest)" : "\(rest)") }
        return text + " ms"
    }

    // MARK: Events

    mutating func describeEvent(_ packet: CapturedPacket, _ printed: inout PrintedPacket) {
        do throws(MalformedPacket) {
            describe(try HCIEvent(packet.bytes.span), packet, &printed)
        } catch {
            let code = packet.bytes.first.map { PacketNames.event($0, packet.bytes.dropFirst(2).first) }
            printed.title = "\(code ?? "Event") malformed"
            printed.details = [error.description] + PacketNames.dump(packet.bytes)
        }
    }

    private mutating func describe(_ event: HCIEvent, _ packet: CapturedPacket, _ printed: inout PrintedPacket) {
        if leavesOutAdvertisements, case .advertisingReports = event {
            printed.layer = .advertising
            return
        }
        let code = packet.bytes.first ?? 0
        printed.title = PacketNames.event(code, packet.bytes.dropFirst(2).first)
        switch event {
        case .commandComplete(let event):
            measure(event.opcode, packet, &printed)
            let status = event.status.map { ": \($0)" } ?? ""
            printed.title += " \(PacketNames.command(event.opcode.rawValue))\(status)"
            printed.details = PacketNames.dump(Array(event.returnParameters.dropFirst()))
        case .commandStatus(let event):
            measure(event.opcode, packet, &printed)
            printed.title += " \(PacketNames.command(event.opcode.rawValue)): \(event.status)"
        case .disconnectionComplete(let end):
            printed.title += " link \(PacketNames.hex(end.handle)): \(end.status.isSuccess ? end.reason : end.status)"
            if end.status.isSuccess { forget(Link(controller: packet.controller, connection: end.handle)) }
        case .connectionComplete(let link): describe(link, packet, &printed)
        case .connectionUpdateComplete(let update):
            printed.title += " link \(PacketNames.hex(update.handle)): \(update.status)"
            printed.details = [Self.parameters(update.parameters)]
        case .encryptionChange(let change):
            printed.title += " link \(PacketNames.hex(change.handle)): \(change.isEncrypted ? "on" : "off")"
        case .encryptionKeyRefresh(let refresh):
            printed.title += " link \(PacketNames.hex(refresh.handle)): \(refresh.status)"
        case .readRemoteVersionComplete(let version):
            let company = AssignedNumbers.companyName(version.company) ?? PacketNames.hex(version.company)
            printed.title += " link \(PacketNames.hex(version.handle)): \(version.status)"
            printed.details = ["version \(version.version), \(company), \(PacketNames.hex(version.subversion))"]
        case .hardwareError(let fault): printed.title += " code \(PacketNames.hex(fault))"
        case .numberOfCompletedPackets(let links):
            printed.title +=
                " " + links.map { "link \(PacketNames.hex($0.handle)): \($0.count)" }.joined(separator: ", ")
        case .remoteFeaturesComplete(let features):
            printed.title += " link \(PacketNames.hex(features.handle)): \(features.status)"
        case .dataLengthChange(let change):
            printed.title += " link \(PacketNames.hex(change.handle))"
            printed.details = [
                "\(change.transmitOctets) bytes in \(change.transmitTime) µs out, "
                    + "\(change.receiveOctets) bytes in \(change.receiveTime) µs in"
            ]
        case .phyUpdateComplete(let update):
            printed.title += " link \(PacketNames.hex(update.handle)): \(update.status)"
            printed.details = ["\(update.transmit) out, \(update.receive) in"]
        case .advertisingReports(let batch): describe(batch, &printed)
        case .advertisingSetTerminated(let end):
            let link = end.status.isSuccess ? "link \(PacketNames.hex(end.handle))" : "\(end.status)"
            printed.title += " set \(PacketNames.hex(end.advertisingHandle)): \(link)"
        case .scanRequestReceived(let request):
            let scanner = request.scanner.map { " by \($0)" } ?? ""
            printed.title += " set \(PacketNames.hex(request.advertisingHandle))\(scanner)"
        case .emptyMeta: break
        case .unknownMeta(_, let parameters), .unknown(_, let parameters):
            printed.details = PacketNames.dump(parameters)
        }
    }

    private mutating func describe(
        _ link: LEConnectionComplete, _ packet: CapturedPacket, _ printed: inout PrintedPacket
    ) {
        let peer = link.peer.map { " with \($0)" } ?? ""
        guard link.status.isSuccess else {
            printed.title += "\(peer): \(link.status)"
            return
        }
        forget(Link(controller: packet.controller, connection: link.handle))
        printed.title += " link \(PacketNames.hex(link.handle))\(peer)"
        printed.details = ["\(link.isCentral ? "central" : "peripheral"), \(Self.parameters(link.parameters))"]
    }

    private mutating func measure(_ opcode: HCIOpcode, _ packet: CapturedPacket, _ printed: inout PrintedPacket) {
        if let time = sentCommands.takeTime(of: opcode.rawValue, to: packet) { printed.elapsed = time }
    }

    private static func parameters(_ parameters: ConnectionParameters) -> String {
        "every \(milliseconds(parameters.interval.upperBound)), \(parameters.latency) may be skipped, "
            + "lost after \(milliseconds(parameters.supervisionTimeout))"
    }
}

/// The time at which each command was sent, by controller.
struct SentCommands: Sendable {
    private var times: [UInt32: Duration] = [:]

    /// A command was sent; it replaces an earlier one with the same opcode.
    mutating func sent(_ opcode: UInt16, _ packet: CapturedPacket) {
        times[Self.key(packet, opcode)] = packet.timestamp
    }

    /// Returns the time from a command to the event that reports it; `nil` without a command, or for another event.
    mutating func takeTime(of opcode: UInt16, to event: CapturedPacket) -> Duration? {
        times.removeValue(forKey: Self.key(event, opcode)).map { event.timestamp - $0 }
    }

    private static func key(_ packet: CapturedPacket, _ opcode: UInt16) -> UInt32 {
        UInt32(packet.controller) << 16 | UInt32(opcode)
    }
}
