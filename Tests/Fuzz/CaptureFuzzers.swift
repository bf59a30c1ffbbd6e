@testable import BLECapture
@testable import BLECore
@testable import BLEProfiles

/// Two bytes of a characteristic's UUID, then a value that claims to be of this kind.
func fuzzValues(_ input: [UInt8]) {
    var script = FuzzInput(input)
    let uuid = script.word()
    use(ValueDescription.of(uuid: BluetoothUUID(uuid), value: script.rest())?.text)
}

/// A file of recorded packets, of any of the formats, through all that reads captures.
func fuzzCapture(_ input: [UInt8]) {
    var reader = CaptureReader()
    var tools = CaptureTools()
    do throws(CaptureError) {
        // In pieces, so that records are cut at any place.
        var at = 0
        while at < input.count {
            let end = min(at + 37, input.count)
            reader.append(Array(input[at..<end]))
            at = end
            while let packet = try reader.next() { tools.received(packet) }
        }
        try reader.finish()
    } catch {
        use(error.description)
    }
}

/// Packets without a file around them: one byte says what each is, then its length and its bytes.
func fuzzTraffic(_ input: [UInt8]) {
    var script = FuzzInput(input)
    var tools = CaptureTools()
    var air = LinkLayerDecoder()
    var time = Duration.zero
    while !script.isAtEnd {
        let head = script.byte()
        let bytes = script.packet()
        time += .milliseconds(Int64(head))
        let direction: CapturedPacket.Direction = head & 1 == 0 ? .sent : .received
        switch head >> 1 & 7 {
        case 5, 6, 7:
            let types: [AirLinkType] = [.bare, .withRadioHeader, .nordic]
            guard let heard = AirPacket(bytes, types[Int(head >> 1 & 7) - 5]) else { continue }
            if let packet = air.received(heard, at: time) { tools.received(packet) }
        case let kind:
            let kinds: [CapturedPacket.Kind] = [.command, .event, .asynchronousData, .synchronousData, .note(3)]
            tools.received(
                CapturedPacket(
                    direction: direction, kind: kinds[Int(kind)], bytes: bytes, timestamp: time,
                    controller: UInt16(head >> 4 & 1), missingByteCount: Int(head >> 5)))
        }
    }
}

private struct CaptureTools {
    private var reassembler = L2CAPReassembler()
    private var printer = PacketPrinter()
    private var check: CaptureCheck? = CaptureCheck()
    private var writer = BTSnoopWriter()

    mutating func received(_ packet: CapturedPacket) {
        if case .frame(let frame) = reassembler.received(packet) { use(try? ATTPacket(frame.payload)) }
        let printed = printer.print(packet)
        require(printed.text(width: 80).utf8.count < 200_000, "what is printed is bounded")
        use(writer.record(packet))
        // The first disagreement is the last.
        if check?.received(packet) != nil { check = nil }
    }
}

func fuzzDialogue(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    guard let dialogue = try? Dialogue(text) else { return }
    require((try? Dialogue(dialogue.text))?.text == dialogue.text, "a written dialogue reads as itself")
    var check = CaptureCheck(dialogue)
    var printer = PacketPrinter()
    for step in dialogue.steps {
        use(printer.print(step))
        if check.received(step) != nil { break }
    }
}

func fuzzText(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    if let uuid = BluetoothUUID(text) { require(BluetoothUUID(uuid.description) == uuid, "a UUID reads back") }
    if let peer = PeerID(text) { require(PeerID(peer.description) == peer, "a peer's name reads back") }
    use(BluetoothAddress(text))
}
