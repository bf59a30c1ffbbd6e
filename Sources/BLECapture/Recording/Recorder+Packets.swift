internal import BLECore
internal import BareBLE

// Synthesizes the traffic between kernel and controller. ATT packets are seen on a socket and wrapped in frames.
// Connections and disconnections that the controller has not reported become events, with typical values where none are
// known, because readers of the file need them to separate links.

extension Recorder {
    /// HCI_LE_Connection_Complete. Spec: Core Vol 4 Part E, 7.7.65.1.
    static func connection(
        to peer: PeerID?, isInbound: Bool, handle: ConnectionHandle, number: Int, _ time: Duration
    ) -> CapturedPacket {
        // Links without an address get an unused one: static random, numbered.
        let unnamed = PeerID(address: BluetoothAddress(rawValue: 0xC0DE_0000_0000 | UInt64(number)), type: .random)
        let peer = peer ?? unnamed
        let parameters = ConnectionParameters.balanced
        var writer = ByteWriter()
        writer.array([0x3E, 19, 0x01, HCIStatus.success.rawValue])
        writer.u16(handle)
        // The role: central, or peripheral.
        writer.u8(isInbound ? 1 : 0)
        writer.u8(peer.type.rawValue)
        writer.u48(peer.address.rawValue)
        writer.u16(parameters.intervalMax)
        writer.u16(parameters.latency)
        writer.u16(parameters.timeout)
        writer.u8(0)
        return event(writer.bytes, time)
    }

    /// HCI_Disconnection_Complete. Spec: Core Vol 4 Part E, 7.7.5.
    static func disconnection(
        of handle: ConnectionHandle, _ reason: DisconnectReason, _ time: Duration
    ) -> CapturedPacket {
        let status: HCIStatus =
            switch reason {
            case .requested, .detached, .attTimeout, .protocolViolation: .localHostTerminated
            case .byPeer, .other: reason.hciStatus ?? .remoteUserTerminated
            case .supervisionTimeout, .adapterLost: .connectionTimeout
            }
        var writer = ByteWriter()
        writer.array([0x05, 4, HCIStatus.success.rawValue])
        writer.u16(handle)
        writer.u8(status.rawValue)
        return event(writer.bytes, time)
    }

    /// Returns true if this side ended the link.
    static func isOurs(_ reason: DisconnectReason) -> Bool {
        switch reason {
        case .requested, .detached, .attTimeout, .protocolViolation: true
        case .byPeer, .supervisionTimeout, .adapterLost, .other: false
        }
    }

    /// Encodes an ATT PDU as an L2CAP frame in one HCI ACL Data packet. Spec: Core Vol 4 Part E, 5.4.2; Vol 3 Part A,
    /// 3.1.
    static func data(
        _ pdu: [UInt8], isOutgoing: Bool, handle: ConnectionHandle, _ time: Duration
    ) -> CapturedPacket {
        var writer = ByteWriter()
        // The first fragment of a frame: 00 from a host, 10 from a controller.
        writer.u16(handle | (isOutgoing ? 0 : 0x2000))
        writer.u16(UInt16(clamping: pdu.count + 4))
        writer.u16(UInt16(clamping: pdu.count))
        writer.u16(L2CAPFrame.attributeChannel)
        writer.array(pdu)
        return CapturedPacket(
            direction: isOutgoing ? .sent : .received, kind: .asynchronousData, bytes: writer.bytes, timestamp: time)
    }

    /// Returns a traced packet.
    static func packet(_ traced: TracedHCIPacket, _ time: Duration) -> CapturedPacket {
        let kind: CapturedPacket.Kind =
            switch traced.type {
            case .command: .command
            case .asynchronousData: .asynchronousData
            case .synchronousData: .synchronousData
            case .event: .event
            case .isochronousData: .isochronousData
            }
        return CapturedPacket(
            direction: traced.isOutgoing ? .sent : .received, kind: kind, bytes: traced.bytes, timestamp: time)
    }

    private static func event(_ bytes: [UInt8], _ time: Duration) -> CapturedPacket {
        CapturedPacket(direction: .received, kind: .event, bytes: bytes, timestamp: time)
    }

    // MARK: Dialogues

    /// Returns the headers of a link's file.
    static func header(_ link: TracedLink) -> [UInt8] {
        var headers = [Dialogue.Header("origin", "recorded from a live link to \(link.peer)")]
        if link.isInbound { headers.append(Dialogue.Header(RecordedLink.roleHeader, RecordedLink.servedRole)) }
        if let id = link.id { headers.append(Dialogue.Header(RecordedLink.peerHeader, "\(id)")) }
        return Array(Dialogue(headers: headers, steps: []).text.utf8)
    }

    /// Returns the lines of an event. Only the peer's response time is preserved, not the client's.
    static func lines(_ event: Dialogue.Event, after pause: Duration) -> [UInt8] {
        var steps: [Dialogue.Step] = []
        if case .sent = event {
        } else if pause >= .milliseconds(1) {
            steps.append(Dialogue.Step(.wait(min(pause, .seconds(86_400)))))
        }
        let step = Dialogue.Step(event)
        var printer = PacketPrinter()
        let title = event == .linkLost ? "" : printer.print(step).title
        steps.append(Dialogue.Step(event, comment: title))
        return Array(Dialogue(steps: steps).text.utf8)
    }
}
