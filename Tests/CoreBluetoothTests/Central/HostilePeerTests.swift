import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// Peers that respond wrongly, as a program on CoreBluetooth meets them: each call is reported once, or the link ends,
/// which is reported once and last; and the next link works.
@Suite(.timeLimit(.minutes(10))) struct HostilePeerTests {
    /// What a peer does to its responses.
    struct Manner: Sendable, CustomTestStringConvertible {
        let name: String
        /// The opcode of the requests whose responses are changed; `nil` for all.
        var opcode: UInt8?
        /// Whether the link ends.
        var endsLink = false
        let change: @Sendable (_ request: [UInt8], _ responses: [[UInt8]]) -> [[UInt8]]

        var testDescription: String { name }
    }

    private static let read: UInt8 = 0x0A
    private static let types: UInt8 = 0x04
    private static let characteristic: UInt8 = 0x08
    private static let group: UInt8 = 0x10

    static let manners = [
        Manner(name: "T01 a response that nobody asked for") { _, responses in responses + [[0x0B, 9, 9]] },
        Manner(name: "T02 another kind of response", opcode: read, endsLink: true) { _, _ in [[0x13]] },
        Manner(name: "T03 a short Error Response", opcode: read) { _, _ in [[0x01, 0x0A]] },
        Manner(name: "T03 a long Error Response", opcode: read) { request, _ in
            [[0x01, 0x0A, request[1], request[2], 5, 0]]
        },
        Manner(name: "T04 an error of another handle", opcode: read) { _, _ in [[0x01, 0x0A, 0x77, 0x77, 0x0A]] },
        Manner(name: "T05 the code 0x00", opcode: read) { request, _ in [[0x01, 0x0A, request[1], request[2], 0]] },
        Manner(name: "T05 a reserved code", opcode: read) { request, _ in [[0x01, 0x0A, request[1], request[2], 0x5A]]
        },
        Manner(name: "T06 silence", endsLink: true) { _, _ in [] },
        Manner(name: "T10 an empty packet") { _, responses in [[]] + responses },
        Manner(name: "T11 an opcode alone") { _, responses in responses.map { Array($0.prefix(1)) } },
        Manner(name: "T12 an unknown request and an unknown command") { _, responses in
            [[0x3E, 1, 2], [0x7E, 1]] + responses
        },
        Manner(name: "T13 a response longer than the MTU", opcode: read, endsLink: true) { _, _ in
            [[0x0B] + [UInt8](repeating: 1, count: 600)]
        },
        Manner(name: "T14 a long notification") { _, responses in
            [[0x1B, 3, 0] + [UInt8](repeating: 1, count: 513)] + responses
        },
        Manner(name: "T15 a notification without a handle") { _, responses in [[0x1B, 3]] + responses },
        Manner(name: "T16 notifications for no handle and an unknown one") { _, responses in
            [[0x1B, 0, 0, 1], [0x1B, 0xFF, 0xFF, 1]] + responses
        },
        Manner(name: "T18 an indication without a subscription") { _, responses in [[0x1D, 0x77, 0, 1]] + responses },
        Manner(name: "T19 two indications before a confirmation") { request, responses in
            // One pair for each confirmation would be twice as many each time.
            request == [0x1E] ? responses : [[0x1D, 0x77, 0, 1], [0x1D, 0x77, 0, 2]] + responses
        },
        Manner(name: "T21 a list of notifications that does not add up") { _, responses in
            [[0x23, 3, 0, 0xFF, 0xFF, 1]] + responses
        },
        Manner(name: "T24 a request of the peer") { _, responses in [[0x0A, 3, 0]] + responses },
        Manner(name: "T29 a write and a confirmation") { _, responses in [[0x52, 3, 0, 1], [0x1E]] + responses },
        Manner(name: "T31 each response twice") { _, responses in responses.flatMap { [$0, $0] } },
        Manner(name: "G01 entries of no bytes", opcode: group) { _, _ in [[0x11, 0, 1, 0]] },
        Manner(name: "G02 half an entry", opcode: group) { _, _ in [[0x11, 6, 1, 0, 5, 0, 0, 0x18, 6, 0]] },
        Manner(name: "G03 the same handles again", opcode: group) { _, _ in [[0x11, 6, 1, 0, 5, 0, 0, 0x18]] },
        Manner(name: "G04 a handle outside the range", opcode: characteristic) { _, _ in
            [[0x09, 7, 0xF0, 0xFF, 2, 0xF1, 0xFF, 0xF1, 0xFF]]
        },
        Manner(name: "G05 a range that ends ahead of its beginning", opcode: group) { _, _ in
            [[0x11, 6, 9, 0, 5, 0, 0, 0x18]]
        },
        Manner(name: "G06 a service at the last handle", opcode: group) { _, _ in
            [[0x11, 6, 0xFF, 0xFF, 0xFF, 0xFF, 0xF0, 0xFF]]
        },
        Manner(name: "G07 a service without an end", opcode: group) { request, responses in
            request[1] > 1 || request[2] > 0 ? responses : [[0x11, 6, 1, 0, 0xFF, 0xFF, 0xF0, 0xFF]]
        },
        Manner(name: "G08 services out of order that overlap", opcode: group) { request, responses in
            request[1] > 1 || request[2] > 0 ? responses : [[0x11, 6, 5, 0, 9, 0, 0xF0, 0xFF, 1, 0, 6, 0, 0xF1, 0xFF]]
        },
        Manner(name: "G10 a service at each handle", opcode: group) { request, _ in
            [[0x11, 6, request[1], request[2], request[1], request[2], 0xF0, 0xFF]]
        },
        Manner(name: "G12 a value with the handle 0", opcode: characteristic) { request, _ in
            [[0x09, 7, request[1], request[2], 2, 0, 0, 0xF1, 0xFF]]
        },
        Manner(name: "G13 a list of types of format 3", opcode: types) { request, _ in
            [[0x05, 3, request[1], request[2], 2, 0x29]]
        },
    ]

    @Test(
        .row(
            "T01", "T02", "T03", "T04", "T05", "T06", "T10", "T11", "T12", "T13", "T14", "T15", "T16", "T18", "T19",
            "T21", "T24", "T29", "T31", "G01", "G02", "G03", "G04", "G05", "G06", "G07", "G08", "G10", "G12", "G13"),
        arguments: manners)
    func eachCallIsReportedOnceOrTheLinkEnds(_ manner: Manner) async throws {
        try await Bench.run { bench in
            let sensor = VirtualDevice(
                name: "Sensor",
                services: [
                    VirtualService(
                        0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .write, .notify], value: [7])])
                ])
            let device = await bench.radio.add(sensor)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let uuid = CBUUID(string: "FFF1")
            let value = try #require(try await bench.discover(peripheral, recorder)[uuid])
            let service = try #require(value.service)
            await device.behave { request, respond in
                let responses = respond(request)
                guard manner.opcode == nil || manner.opcode == request.first else {
                    return withoutDelay(responses)
                }
                return withoutDelay(manner.change(request, responses))
            }
            await bench.central.makeCalls {
                peripheral.readValue(for: value)
                peripheral.writeValue(Data([8]), for: value, type: .withResponse)
                peripheral.setNotifyValue(true, for: value)
                peripheral.discoverDescriptors(for: value)
                peripheral.discoverCharacteristics(nil, for: service)
                peripheral.discoverIncludedServices(nil, for: service)
                peripheral.discoverServices(nil)
                peripheral.readRSSI()
            }
            try await bench.time.clock.sleep(for: .seconds(300))
            let reports = [
                "didUpdateValueFor FFF1", "didWriteValueFor FFF1", "didUpdateNotificationStateFor FFF1",
                "didDiscoverDescriptorsFor FFF1", "didDiscoverCharacteristicsFor FFF0",
                "didDiscoverIncludedServicesFor FFF0", "didDiscoverServices", "didReadRSSI",
            ]
            let ends = recorder.count(of: "didDisconnect")
            for report in reports {
                let count = recorder.count(of: report)
                #expect(ends == 0 ? count == 1 : count <= 1, "\(report): \(recorder.lines)")
            }
            #expect(ends == (manner.endsLink ? 1 : 0), "\(recorder.lines)")
            if ends > 0 { #expect(recorder.lines.last?.hasPrefix("didDisconnect CB") == true, "\(recorder.lines)") }
            // The next link works.
            await device.behave(nil)
            if ends == 0 {
                manager.cancelPeripheralConnection(peripheral)
                try await recorder.wait(for: "didDisconnect nil")
            }
            recorder.clear()
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect")
            let again = try #require(try await bench.discover(peripheral, recorder)[uuid])
            peripheral.readValue(for: again)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [")
            #expect(recorder.errors.isEmpty)
        }
    }

    /// Services that include themselves, each other, and one of them twice.
    @Test(.row("G11")) func includesInACircleEndNoSearch() async throws {
        try await Bench.run { bench in
            let value = VirtualCharacteristic(0xFFF2, [.read, .notify], value: [7])
            let device = await bench.radio.add(
                VirtualDevice(
                    name: "Circle",
                    services: [
                        VirtualService(0xFFF0, [value]), VirtualService(0xFFF1, includes: [1, 2, 2], []),
                        VirtualService(0xFFF3, includes: [1], []),
                    ]))
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try #require(try await bench.discover(peripheral, recorder)[CBUUID(string: "FFF2")])
            for service in peripheral.services ?? [] {
                peripheral.discoverIncludedServices(nil, for: service)
                try await recorder.wait(for: "didDiscoverIncludedServicesFor \(service.uuid) nil")
            }
            peripheral.setNotifyValue(true, for: found)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF2 true nil")
            #expect(try await device.notify(0xFFF2, [1]))
            try await recorder.wait(for: "didUpdateValueFor FFF2 [1]")
            // What the link had is over with it, circles included.
            weak let included = peripheral.services?.last
            #expect(included != nil)
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil")
            recorder.forget()
            #expect(included == nil)
        }
    }

    @Test(.row("G11")) func includesInACircleEndWithAPeripheralThatIsDropped() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(
                VirtualDevice(
                    name: "Circle",
                    services: [VirtualService(0xFFF1, includes: [1], []), VirtualService(0xFFF3, includes: [0], [])]))
            let (manager, recorder) = try await bench.manager()
            weak var included: CBService?
            do {
                let peripheral = try await bench.connect(manager, recorder)
                _ = try await bench.discover(peripheral, recorder)
                for service in peripheral.services ?? [] {
                    peripheral.discoverIncludedServices(nil, for: service)
                    try await recorder.wait(for: "didDiscoverIncludedServicesFor \(service.uuid) nil")
                }
                included = peripheral.services?.last
                #expect(included?.includedServices?.first?.includedServices?.first === included)
            }
            recorder.forget()
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await !device.isConnected)
            #expect(included == nil)
        }
    }
}
