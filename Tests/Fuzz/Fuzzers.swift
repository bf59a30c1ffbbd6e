// What libFuzzer calls: one function for every place where bytes of a peer, a controller or a file come in.
//
// `run` compiles this file together with BLECore's sources into one program; BAREBLE_FUZZER names the function to use.
// A trap is a finding; so is a broken promise, which `require` turns into one.

import Glibc

/// Ends the program when a promise about any input is broken.
func require(_ condition: Bool, _ promise: StaticString) {
    if !condition { fatalError("\(promise)") }
}

/// Keeps the optimiser from leaving out what is only read.
@inline(never) func use<Value>(_ value: Value) {}

/// Cuts the input into packets: a length byte, then so many bytes.
func packets(_ input: [UInt8]) -> [[UInt8]] {
    var reader = ByteReader(input.span)
    var result: [[UInt8]] = []
    while let length = reader.u8() {
        result.append(reader.array(min(Int(length), reader.remaining)) ?? [])
    }
    return result
}

func fuzzAdvertisingData(_ input: [UInt8]) {
    let data = AdvertisingData(input)
    let structures = data.structures
    require(structures.reduce(0) { $0 + $1.value.count + 2 } <= input.count, "structures are part of the payload")
    use((data.defects, data.flags, data.localName?.text, data.shortenedLocalName, data.broadcastName))
    use((data.txPowerLevel, data.appearance, data.classOfDevice, data.leRole, data.deviceAddress, data.targetAddresses))
    use((data.uri, data.deviceID, data.meshProvisioning, data.meshMessage, data.meshBeacon, data.transportDiscovery))
    use((data.indoorPositioning, data.threeDInformation, data.electronicShelfLabel, data.outOfBandFlags))
    use((data.securityManagerTKValue, data.resolvableSetIdentifier, data.encryptedData, data.broadcastCode))
    use((data.serviceUUIDs, data.solicitedServiceUUIDs, data.hasIncompleteServiceList))
    use((data.serviceData, data.manufacturerData, data.connectionIntervalRange?.shortest, data.advertisingInterval))
    use((data.leSupportedFeatures, data.channelMapUpdate, data.periodicResponseTiming, data.eddystone, data.iBeacon))
    use((data.altBeacon, data.meanings.map(\.description)))
}

func fuzzHCIEvent(_ input: [UInt8]) {
    var assembler = ReportAssembler()
    var now = BootInstant(nanoseconds: 0)
    for packet in packets(input) {
        guard let event = try? HCIEvent(packet.span) else { continue }
        guard case .advertisingReports(let batch) = event else { continue }
        for report in batch.reports {
            now = now.advanced(by: .milliseconds(5))
            if let whole = assembler.received(report, at: now) { fuzzAdvertisingData(whole.data) }
        }
    }
    use(try? HCIEvent(input.span))
}

func fuzzATTPacket(_ input: [UInt8]) {
    guard let packet = try? ATTPacket(input) else { return }
    require(packet.bytes == input, "what was decoded encodes to the same bytes")
}

/// A peer that answers a discovery and a long read with whatever the input holds.
func fuzzGATTClient(_ input: [UInt8]) {
    var client = GATTClient()
    var now = BootInstant(nanoseconds: 0)
    var finished: [OperationID: Int] = [:]
    var isClosed = false

    func obey(_ first: [GATTClient.Action], _ client: inout GATTClient) {
        var waiting = first
        while !waiting.isEmpty {
            switch waiting.removeFirst() {
            case .finish(let id, _): finished[id, default: 0] += 1
            case .deliver: break
            case .send(let pdu):
                require(pdu.count <= Int(client.mtu), "a packet fits the MTU")
                waiting += client.sent(at: now)
            case .close: isClosed = true
            }
        }
    }

    let discovery = client.nextID()
    let read = client.nextID()
    obey(
        client.start(
            GATTDiscovery(level: .full, mtu: client.mtu), id: discovery, deadline: nil, at: now,
            outcome: { .database($0) }), &client)
    obey(
        client.start(
            ReadLong(handle: 3, mtu: client.mtu), id: read, deadline: nil, at: now, outcome: { .value($0) }), &client)
    for packet in packets(input) where !isClosed {
        now = now.advanced(by: .milliseconds(10))
        obey(client.received(packet, at: now), &client)
    }
    obey(client.linkLost(104, at: now), &client)
    require(finished[discovery] == 1 && finished[read] == 1, "every operation ends exactly once")
}

/// Two bytes of a characteristic's UUID, then a value that claims to be of this kind.
func fuzzValues(_ input: [UInt8]) {
    var reader = ByteReader(input.span)
    guard let uuid = reader.u16() else { return }
    use(ValueDescription.of(uuid: BluetoothUUID(uuid), value: reader.rest())?.text)
}

func fuzzCapture(_ input: [UInt8]) {
    var reader = CaptureReader()
    var reassembler = L2CAPReassembler()
    do throws(CaptureError) {
        // In pieces, so that records are cut at any place.
        var at = 0
        while at < input.count {
            let end = min(at + 37, input.count)
            reader.append(Array(input[at..<end]))
            at = end
            while let packet = try reader.next() {
                if case .frame(let frame) = reassembler.received(packet) { use(try? ATTPacket(frame.payload)) }
            }
        }
        try reader.finish()
    } catch {
        use(error.description)
    }
}

func fuzzDialogue(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    guard let dialogue = try? Dialogue(text) else { return }
    require((try? Dialogue(dialogue.text))?.text == dialogue.text, "a written dialogue reads as itself")
}

func fuzzText(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    if let uuid = BluetoothUUID(text) { require(BluetoothUUID(uuid.description) == uuid, "a UUID reads back") }
    if let peer = PeerID(text) { require(PeerID(peer.description) == peer, "a peer's name reads back") }
    use(BluetoothAddress(text))
}

let fuzzers: [String: @Sendable ([UInt8]) -> Void] = [
    "advertising": fuzzAdvertisingData, "hci": fuzzHCIEvent, "att": fuzzATTPacket, "client": fuzzGATTClient,
    "values": fuzzValues, "capture": fuzzCapture, "dialogue": fuzzDialogue, "text": fuzzText,
]

let chosen: @Sendable ([UInt8]) -> Void = {
    guard let name = getenv("BAREBLE_FUZZER").map({ String(cString: $0) }), let fuzzer = fuzzers[name] else {
        print("BAREBLE_FUZZER must be one of \(fuzzers.keys.sorted())")
        exit(64)
    }
    return fuzzer
}()

/// The entry point that libFuzzer looks for.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    chosen(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}
