import BLECore
import BLELinux
import BareBLETestKit
import Testing

@Suite("Virtual peripheral", .timeLimit(.minutes(10)))
struct VirtualPeripheralTests {
    @Test("Responds to raw requests over a socketpair, and notifies as planned")
    func servesHeartRate() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        var client = RawClient(try await peripheral.connect())
        #expect(client.request("02 f700") == "030502")
        // Found by value: the only Heart Rate service.
        let service = client.request("06 0100ffff 0028 0d18")
        #expect(service == "070a001100")
        #expect(client.request("08 0a001100 372a").hasPrefix("010"))
        #expect(client.request("12 0d00 0100") == "13")
        #expect(client.next().hasPrefix("1b0c00" + "1648"))
        #expect(await peripheral.isSubscribed(to: 0x2A37))
        #expect(await peripheral.requestCount == 4)
        #expect(await peripheral.mtu == 247)
        await peripheral.disconnect()
        var last = client.next()
        // On a slow machine the plan may have gone on meanwhile.
        while last.hasPrefix("1b0c00") { last = client.next() }
        #expect(last == "end")
    }

    @Test("The UART sends back what it is sent")
    func theUARTSendsBackWhatItIsSent() async throws {
        let peripheral = VirtualPeripheral(.uart)
        var client = RawClient(try await peripheral.connect())
        #expect(client.request("12 0b00 0100") == "13")
        client.send("52 0800 6869")
        #expect(client.next() == "1b0a006869")
    }

    @Test("A thousand notifications arrive in order")
    func manyNotifications() async throws {
        let values = (0..<1000).map { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
        let device = VirtualDevice(
            name: "Fast",
            services: [
                VirtualService(
                    0xFFF0,
                    [VirtualCharacteristic(0xFFF1, .notify, plan: NotifyPlan(values, every: .zero, count: 1000))])
            ])
        let peripheral = VirtualPeripheral(device)
        var client = RawClient(try await peripheral.connect())
        #expect(client.request("12 0400 0100") == "13")
        for value in values { #expect(client.next() == "1b0300" + Hex.encode(value)) }
    }

    @Test("Stops responding, disconnects, and takes a new link")
    func stopsRespondingDisconnectsAndTakesANewLink() async throws {
        let peripheral = VirtualPeripheral(.battery)
        var client = RawClient(try await peripheral.connect())
        await #expect(throws: TestLinkError.connectedAlready) { try await peripheral.connect() }
        await peripheral.stopResponding()
        client.send("0a 0300")
        while await peripheral.receivedCount < 1, !Task.isCancelled { await Task.yield() }
        await peripheral.disconnect()
        #expect(client.next() == "end")
        var again = RawClient(try await peripheral.connect())
        #expect(again.request("0a 0300").hasPrefix("0b"))
        #expect(await peripheral.connectionCount == 2)
        let transcript = await peripheral.transcript
        #expect(transcript.steps.map(\.event).prefix(2) == [.sent([0x0A, 0x03, 0x00]), .linkLost])
    }

    @Test("Sends a value on request, if the client has subscribed")
    func sendsAValueIfTheClientHasSubscribed() async throws {
        let peripheral = VirtualPeripheral(.battery)
        var client = RawClient(try await peripheral.connect())
        #expect(try await peripheral.notify(0x2A19, [50]) == false)
        #expect(client.request("0a 0800") == "0b32")
        #expect(client.request("12 0900 0100") == "13")
        #expect(try await peripheral.notify(0x2A19, [49]))
        #expect(client.next() == "1b080031")
        await #expect(throws: TestLinkError.noSuchCharacteristic("2a00")) {
            try await VirtualPeripheral(VirtualDevice(name: "", services: [])).notify(0x2A00, [])
        }
    }

    @Test("A client whose packet is longer than the device can receive is disconnected")
    func oversizedPacket() async throws {
        let peripheral = VirtualPeripheral(VirtualDevice(name: "", services: [.battery(level: 1)], maximumMTU: 23))
        var client = RawClient(try await peripheral.connect())
        client.send("12" + String(repeating: "00", count: 23))
        #expect(client.next() == "end")
        #expect(await !peripheral.isConnected)
    }

    @Test("A link keeps its peripheral alive, and leaves nothing")
    func aLinkKeepsItsPeripheralAlive() async throws {
        weak var held: VirtualPeripheral?
        do {
            let descriptor: Int32
            do {
                let peripheral = VirtualPeripheral(.heartRate)
                held = peripheral
                descriptor = try await peripheral.connect()
            }
            var client = RawClient(descriptor)
            #expect(client.request("12 0d00 0100") == "13")
            #expect(client.next().hasPrefix("1b"))
            #expect(held != nil)
        }
        while held != nil, !Task.isCancelled { await Task.yield() }
    }
}
