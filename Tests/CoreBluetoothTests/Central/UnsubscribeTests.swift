import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// The ends of subscriptions: what the device sends before it has responded is reported, in its place, and nothing after
/// that.
@Suite(.timeLimit(.minutes(10))) struct UnsubscribeTests {
    private static let uuid = CBUUID(string: "FFF1")

    private static let sensor = VirtualDevice(
        name: "Sensor",
        services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .notify], value: [7])])])

    /// What the device sends when it is asked to stop.
    private enum Packet: Sendable {
        case value(UInt8)
        case response
        case refusal
    }

    private struct Link {
        let device: VirtualPeripheral
        let manager: CBCentralManager
        let recorder: CallbackRecorder
        let peripheral: CBPeripheral
        let value: CBCharacteristic
    }

    /// Connects a device, and subscribes to its value.
    private func subscribe(_ bench: Bench, options: [String: Any]? = nil) async throws -> Link {
        let device = await bench.radio.add(Self.sensor, latency: .zero)
        let (manager, recorder) = try await bench.manager()
        let peripheral = try await bench.connect(manager, recorder, options: options)
        let value = try await subscribe(peripheral, bench, recorder)
        return Link(device: device, manager: manager, recorder: recorder, peripheral: peripheral, value: value)
    }

    private func subscribe(
        _ peripheral: CBPeripheral, _ bench: Bench, _ recorder: CallbackRecorder
    ) async throws -> CBCharacteristic {
        let value = try #require(try await bench.discover(peripheral, recorder)[Self.uuid])
        peripheral.setNotifyValue(true, for: value)
        try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
        // What the system requests by itself after that.
        try await bench.time.clock.sleep(for: .seconds(5))
        recorder.clear()
        return value
    }

    /// Connects a device by two managers, and subscribes to its value by the first one.
    private func share(_ bench: Bench) async throws -> (VirtualPeripheral, Bench.Sharer, Bench.Sharer, CBCharacteristic)
    {
        let device = await bench.radio.add(Self.sensor, latency: .zero)
        let (one, other) = try await bench.sharers()
        for sharer in [one, other] {
            sharer.peripheral.delegate = sharer.recorder
            sharer.manager.connect(sharer.peripheral)
            try await sharer.recorder.wait(for: "didConnect 2")
            sharer.recorder.clear()
        }
        let value = try await subscribe(one.peripheral, bench, one.recorder)
        return (device, one, other, value)
    }

    /// Has the device send packets, each after its delay, when it is asked to stop.
    private func react(_ device: VirtualPeripheral, by packets: [(Duration, Packet)]) async {
        await device.behave { pdu, respond in
            let responses = respond(pdu)
            // ATT_WRITE_REQ with notifications disabled; the handle of the value is the one before.
            guard pdu.count == 5, pdu[0] == 0x12, pdu[3...] == [0, 0] else {
                return withoutDelay(responses)
            }
            var reactions: [(delay: Duration, pdu: [UInt8])] = []
            for (delay, packet) in packets {
                switch packet {
                // ATT_HANDLE_VALUE_NTF
                case .value(let number): reactions.append((delay: delay, pdu: [0x1B, pdu[1] - 1, pdu[2], number]))
                case .response: for response in responses { reactions.append((delay: delay, pdu: response)) }
                // ATT_ERROR_RSP: Unlikely Error.
                case .refusal: reactions.append((delay: delay, pdu: [0x01, 0x12, pdu[1], pdu[2], 0x0E]))
                }
            }
            return reactions
        }
    }

    /// The packets of the device come one by one, or all at once.
    @Test(.row("G24"), arguments: [Duration.milliseconds(50), .zero])
    func valuesBeforeTheResponseAreReportedAndNoneAfterIt(_ pause: Duration) async throws {
        try await Bench.run { bench in
            let link = try await subscribe(bench)
            await react(
                link.device,
                by: [(.zero, .value(1)), (pause, .value(2)), (pause * 2, .response), (pause * 3, .value(3))])
            link.peripheral.readValue(for: link.value)
            link.peripheral.setNotifyValue(false, for: link.value)
            link.peripheral.readValue(for: link.value)
            try await link.recorder.wait(for: "didUpdateValueFor FFF1 [7]", count: 2)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(
                link.recorder.lines == [
                    "didUpdateValueFor FFF1 [7]", "didUpdateValueFor FFF1 [1]", "didUpdateValueFor FFF1 [2]",
                    "didUpdateNotificationStateFor FFF1 false nil", "didUpdateValueFor FFF1 [7]",
                ])
        }
    }

    @Test func aRefusalToStopEndsTheReportsToo() async throws {
        try await Bench.run { bench in
            let link = try await subscribe(bench)
            let pause = Duration.milliseconds(50)
            await react(link.device, by: [(.zero, .value(1)), (pause, .refusal), (pause * 2, .value(2))])
            link.peripheral.setNotifyValue(false, for: link.value)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(
                link.recorder.lines == [
                    "didUpdateValueFor FFF1 [1]", "didUpdateNotificationStateFor FFF1 false ATT 14",
                ])
        }
    }

    @Test func aSubscriptionThatBeginsAgainAtOnceHasItsOwnValues() async throws {
        try await Bench.run { bench in
            let link = try await subscribe(bench)
            await link.device.behave { pdu, respond in
                var sent = respond(pdu)
                // ATT_WRITE_REQ of a configuration; the handle of the value is the one before.
                if pdu.count == 5, pdu[0] == 0x12 {
                    let value = [0x1B, pdu[1] - 1, pdu[2]]
                    sent = [value + [pdu[3]]] + sent
                    if pdu[3] == 1 { sent.append(value + [2]) }
                }
                return withoutDelay(sent)
            }
            link.peripheral.setNotifyValue(false, for: link.value)
            link.peripheral.setNotifyValue(true, for: link.value)
            try await link.recorder.wait(for: "didUpdateValueFor FFF1 [2]")
            #expect(
                link.recorder.lines == [
                    "didUpdateValueFor FFF1 [0]", "didUpdateNotificationStateFor FFF1 false nil",
                    "didUpdateNotificationStateFor FFF1 true nil", "didUpdateValueFor FFF1 [1]",
                    "didUpdateValueFor FFF1 [2]",
                ])
        }
    }

    /// The device does not respond, and the link is lost.
    @Test(arguments: [false, true])
    func aLinkThatIsLostBeforeTheResponseHasOneReport(_ reconnects: Bool) async throws {
        try await Bench.run { bench in
            let options: [String: Any]? = reconnects ? [CBConnectPeripheralOptionEnableAutoReconnect: true] : nil
            let link = try await subscribe(bench, options: options)
            let value = link.value
            await react(link.device, by: [(.zero, .value(1))])
            link.peripheral.setNotifyValue(false, for: value)
            try await link.recorder.wait(for: "didUpdateValueFor FFF1 [1]")
            #expect(value.isNotifying)
            let wasNotifying = Lock<Bool?>(nil)
            link.recorder.react { line in
                if line.hasPrefix("didDisconnect") { wasNotifying.withLock { $0 = value.isNotifying } }
            }
            await bench.radio.disconnect(link.device)
            try await link.recorder.wait(for: "didDisconnect CB 7 \(reconnects)")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(link.recorder.count(of: "didUpdateNotificationStateFor") == 0, "\(link.recorder.lines)")
            #expect(link.recorder.count(of: "didUpdateValueFor") == 1)
            #expect(wasNotifying.withLock { $0 } == false)
            link.recorder.react { _ in }
        }
    }

    @Test func theLastOfTwoManagersGetsTheValuesBeforeTheResponse() async throws {
        try await Bench.run { bench in
            let (device, one, other, here) = try await share(bench)
            let there = try await subscribe(other.peripheral, bench, other.recorder)
            await react(device, by: [(.zero, .value(1)), (.milliseconds(50), .response)])
            one.peripheral.setNotifyValue(false, for: here)
            try await one.recorder.wait(for: "didUpdateNotificationStateFor FFF1 false nil")
            #expect(try await device.notify(0xFFF1, [5]))
            try await other.recorder.wait(for: "didUpdateValueFor FFF1 [5]")
            other.peripheral.setNotifyValue(false, for: there)
            try await other.recorder.wait(for: "didUpdateNotificationStateFor FFF1 false nil")
            #expect(one.recorder.lines == ["didUpdateNotificationStateFor FFF1 false nil"])
            #expect(
                other.recorder.lines == [
                    "didUpdateValueFor FFF1 [5]", "didUpdateValueFor FFF1 [1]",
                    "didUpdateNotificationStateFor FFF1 false nil",
                ])
        }
    }

    /// The other manager subscribes before the device has responded to the request to stop.
    @Test func aManagerThatSubscribesMeanwhileGoesOnReceiving() async throws {
        try await Bench.run { bench in
            let (device, one, other, here) = try await share(bench)
            let found = try await bench.discover(other.peripheral, other.recorder)
            let there = try #require(found[Self.uuid])
            await react(device, by: [(.milliseconds(50), .value(1)), (.milliseconds(100), .response)])
            one.peripheral.setNotifyValue(false, for: here)
            other.peripheral.setNotifyValue(true, for: there)
            try await one.recorder.wait(for: "didUpdateNotificationStateFor FFF1 false nil")
            try await other.recorder.wait(for: "didUpdateNotificationStateFor FFF1 true nil")
            #expect(try await device.notify(0xFFF1, [2]))
            try await other.recorder.wait(for: "didUpdateValueFor FFF1 [2]")
            #expect(
                one.recorder.lines == [
                    "didUpdateValueFor FFF1 [1]", "didUpdateNotificationStateFor FFF1 false nil",
                ])
            #expect(other.recorder.lines.first == "didUpdateNotificationStateFor FFF1 true nil")
        }
    }

    /// The other manager keeps the link.
    @Test func aManagerThatLeavesBeforeTheResponseHasNoFurtherReports() async throws {
        try await Bench.run { bench in
            let (device, one, other, here) = try await share(bench)
            let pause = Duration.milliseconds(50)
            await react(device, by: [(.zero, .value(1)), (pause, .value(2)), (pause * 2, .response)])
            one.peripheral.setNotifyValue(false, for: here)
            try await one.recorder.wait(for: "didUpdateValueFor FFF1 [1]")
            one.manager.cancelPeripheralConnection(one.peripheral)
            try await one.recorder.wait(for: "didDisconnect nil")
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(one.recorder.lines == ["didUpdateValueFor FFF1 [1]", "didDisconnect nil false 0"])
            #expect(other.peripheral.state == .connected)
            #expect(await !device.isSubscribed(to: 0xFFF1))
        }
    }
}
