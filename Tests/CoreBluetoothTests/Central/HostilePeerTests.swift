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
        /// Lines that are reported, where the fault determines them.
        var expects: [String] = []
        let change: @Sendable (_ request: [UInt8], _ responses: [[UInt8]]) -> [[UInt8]]

        var testDescription: String { name }
    }

    private static let read: UInt8 = 0x0A
    private static let types: UInt8 = 0x04
    private static let characteristic: UInt8 = 0x08
    private static let group: UInt8 = 0x10

    /// The reports of calls that the fault leaves alone.
    private static let unharmed = ["didUpdateValueFor FFF1 [7]", "didWriteValueFor FFF1 nil"]

    /// A peer that refuses the read with `code`, and names `handle`, or else that of the request.
    private static func refusal(_ name: String, _ code: UInt8, naming handle: [UInt8]? = nil) -> Manner {
        Manner(name: name, opcode: read, expects: ["didUpdateValueFor FFF1 ATT \(code)"]) { request, _ in
            let named = handle ?? [request[1], request[2]]
            return [[0x01, 0x0A, named[0], named[1], code]]
        }
    }

    /// A peer whose response to the discovery of services is always `response`, which fails it.
    private static func services(_ name: String, _ response: [UInt8]) -> Manner {
        Manner(name: name, opcode: group, expects: ["didDiscoverServices CB 0"]) { _, _ in [response] }
    }

    /// A peer whose response to the discovery of descriptors begins with the handle that was requested, after `head`,
    /// and fails it.
    private static func descriptors(_ name: String, _ head: [UInt8], _ rest: [UInt8]) -> Manner {
        Manner(name: name, opcode: types, expects: ["didDiscoverDescriptorsFor FFF1 CB 0"]) { request, _ in
            [head + [request[1], request[2]] + rest]
        }
    }

    /// A peer with a characteristic at each handle whose value has an impossible handle: `handle`, or else that of the
    /// characteristic itself. It is dropped; as a list of included services the response is malformed.
    private static func characteristics(_ name: String, valueAt handle: [UInt8]?) -> Manner {
        let expects = ["didDiscoverCharacteristicsFor FFF0 nil", "didDiscoverIncludedServicesFor FFF0 CB 0"]
        return Manner(name: name, opcode: characteristic, expects: expects) { request, _ in
            let own = [request[1], request[2]]
            let value = handle ?? own
            return [[0x09, 7, own[0], own[1], 2, value[0], value[1], 0xF1, 0xFF]]
        }
    }

    static let manners: [Manner] =
        strays + values + peerRequests + serviceLengths + characteristicLengths + formats + ranges

    private static let strays: [Manner] = [
        Manner(name: "T01 a response that nobody asked for") { _, responses in responses + [[0x0B, 9, 9]] },
        Manner(
            name: "T02 another kind of response", opcode: read, endsLink: true, expects: ["didDisconnect CB 6 false 0"]
        ) { _, _ in [[0x13]] },
        Manner(name: "T03 a short Error Response", opcode: read, expects: ["didUpdateValueFor FFF1 CB 0"]) { _, _ in
            [[0x01, 0x0A]]
        },
        Manner(name: "T03 a long Error Response", opcode: read, expects: ["didUpdateValueFor FFF1 CB 0"]) {
            request, _ in
            [[0x01, 0x0A, request[1], request[2], 5, 0]]
        },
        refusal("T04 an error of another handle", 0x0A, naming: [0x77, 0x77]),
        refusal("T05 the code 0x00", 0x00),
        refusal("T05 a reserved code", 0x5A),
        Manner(name: "T06 silence", endsLink: true, expects: ["didDisconnect CB 6 false 0"]) { _, _ in [] },
        Manner(name: "T10 an empty packet", expects: unharmed) { _, responses in [[]] + responses },
        Manner(
            name: "T11 an opcode alone",
            expects: ["didUpdateValueFor FFF1 []", "didDiscoverDescriptorsFor FFF1 CB 0", "didDiscoverServices CB 0"]
        ) { _, responses in responses.map { Array($0.prefix(1)) } },
        Manner(
            name: "T13 a response longer than the MTU", opcode: read, endsLink: true,
            expects: ["didDisconnect CB 0 false 0"]
        ) { _, _ in [[0x0B] + [UInt8](repeating: 1, count: 600)] },
        // Nothing here pairs.
        refusal("refused for lack of authorization", 0x08),
        refusal("refused for a short key", 0x0C),
        refusal("refused for lack of encryption", 0x0F),
        Manner(name: "T31 each response twice", expects: unharmed) { _, responses in responses.flatMap { [$0, $0] } },
    ]

    private static let values: [Manner] = [
        Manner(name: "T14 a long notification", expects: unharmed) { _, responses in
            [[0x1B, 3, 0] + [UInt8](repeating: 1, count: 513)] + responses
        },
        Manner(name: "T15 a notification without a handle", expects: unharmed) { _, responses in
            [[0x1B, 3]] + responses
        },
        Manner(
            name: "T15 sixteen values without a handle", opcode: read, endsLink: true,
            expects: ["didDisconnect CB 0 false 0"]
        ) { _, responses in
            [[UInt8]](repeating: [0x1B, 3], count: 16) + responses
        },
        Manner(name: "T16 notifications for no handle and an unknown one", expects: unharmed) { _, responses in
            [[0x1B, 0, 0, 1], [0x1B, 0xFF, 0xFF, 1]] + responses
        },
        Manner(name: "T18 an indication without a subscription", expects: unharmed) { _, responses in
            [[0x1D, 0x77, 0, 1]] + responses
        },
        Manner(name: "T19 two indications before a confirmation", expects: unharmed) { request, responses in
            // One pair for each confirmation would be twice as many each time.
            request == [0x1E] ? responses : [[0x1D, 0x77, 0, 1], [0x1D, 0x77, 0, 2]] + responses
        },
        Manner(name: "T21 a list of notifications that does not add up", expects: unharmed) { _, responses in
            [[0x23, 3, 0, 0xFF, 0xFF, 1]] + responses
        },
    ]

    private static let peerRequests: [Manner] = [
        Manner(name: "T12 an unknown request and an unknown command", expects: unharmed) { _, responses in
            [[0x3E, 1, 2], [0x7E, 1]] + responses
        },
        Manner(name: "T24 a request of the peer", expects: unharmed) { _, responses in [[0x0A, 3, 0]] + responses },
        Manner(name: "T29 a write and a confirmation", expects: unharmed) { _, responses in
            [[0x52, 3, 0, 1], [0x1E]] + responses
        },
    ]

    private static let serviceLengths: [Manner] = ([0, 1, 3, 5, 7, 19, 21, 255] as [UInt8]).map { length in
        let entries = [UInt8](repeating: 1, count: Int(length))
        return services("G01 services of \(length) bytes", [0x11, length] + entries)
    }

    private static let characteristicLengths: [Manner] = ([0, 1, 3, 5, 19, 255] as [UInt8]).map { length in
        let expects = ["didDiscoverCharacteristicsFor FFF0 CB 0", "didDiscoverIncludedServicesFor FFF0 CB 0"]
        let entries = [UInt8](repeating: 1, count: Int(length))
        let name = "G01 characteristics of \(length) bytes"
        return Manner(name: name, opcode: characteristic, expects: expects) { _, _ in
            [[0x09, length] + entries]
        }
    }

    private static let formats: [Manner] = [
        services("G02 half an entry", [0x11, 6, 1, 0, 5, 0, 0, 0x18, 6, 0]),
        descriptors("G13 a list of types of format 0", [0x05, 0], [2, 0x29]),
        descriptors("G13 a list of types of format 3", [0x05, 3], [2, 0x29]),
        descriptors("G13 half a type", [0x05, 1], [2]),
    ]

    private static let ranges: [Manner] = [
        services("G03 the same handles again", [0x11, 6, 1, 0, 5, 0, 0, 0x18]),
        Manner(name: "G03 lower handles", opcode: group, expects: ["didDiscoverServices CB 0"]) { request, _ in
            // The second request begins at the handle 11.
            [[0x11, 6, request[1] > 1 ? 1 : 5, 0, 10, 0, 0, 0x18]]
        },
        Manner(
            name: "G04 a handle outside the range", opcode: characteristic,
            expects: ["didDiscoverCharacteristicsFor FFF0 CB 0"]
        ) { _, _ in
            [[0x09, 7, 0xF0, 0xFF, 2, 0xF1, 0xFF, 0xF1, 0xFF]]
        },
        services("G05 a range that ends ahead of its beginning", [0x11, 6, 9, 0, 5, 0, 0, 0x18]),
        services("G05 a range that begins at 0", [0x11, 6, 0, 0, 5, 0, 0, 0x18]),
        Manner(name: "G06 a service at the last handle", opcode: group, expects: ["didDiscoverServices nil"]) {
            _, _ in
            [[0x11, 6, 0xFF, 0xFF, 0xFF, 0xFF, 0xF0, 0xFF]]
        },
        Manner(name: "G07 a service without an end", opcode: group, expects: ["didDiscoverServices nil"]) {
            request, responses in
            request[1] > 1 || request[2] > 0 ? responses : [[0x11, 6, 1, 0, 0xFF, 0xFF, 0xF0, 0xFF]]
        },
        Manner(name: "G08 services out of order that overlap", opcode: group, expects: ["didDiscoverServices nil"]) {
            request, responses in
            request[1] > 1 || request[2] > 0
                ? responses : [[0x11, 6, 5, 0, 9, 0, 0xF0, 0xFF, 1, 0, 6, 0, 0xF1, 0xFF]]
        },
        Manner(name: "G10 a service at each handle", opcode: group, expects: ["didDiscoverServices ATT 13"]) {
            request, _ in
            // Many in each response: with one, the time of a discovery would end first.
            let first = Int(request[1]) | Int(request[2]) << 8
            let entries = (first..<first + 80).flatMap { handle -> [UInt8] in
                let bytes = [UInt8(handle & 0xFF), UInt8(handle >> 8)]
                return bytes + bytes + [0xF0, 0xFF]
            }
            return [[0x11, 6] + entries]
        },
        characteristics("G12 a value with the handle 0", valueAt: [0, 0]),
        characteristics("G12 a value with the handle of its declaration", valueAt: nil),
        characteristics("G12 a value outside its service", valueAt: [0xF1, 0xFF]),
    ]

    @Test(
        .row(
            "T01", "T02", "T03", "T04", "T05", "T06", "T10", "T11", "T12", "T13", "T14", "T15", "T16", "T18", "T19",
            "T21", "T24", "T29", "T31", "G01", "G02", "G03", "G04", "G05", "G06", "G07", "G08", "G10", "G12",
            "G13"),
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
            let changes = Lock(0)
            await device.behave { request, respond in
                let responses = respond(request)
                guard manner.opcode == nil || manner.opcode == request.first else {
                    return withoutDelay(responses)
                }
                let changed = manner.change(request, responses)
                if changed != responses { changes.withLock { $0 += 1 } }
                return withoutDelay(changed)
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
            #expect(changes.withLock { $0 } > 0)
            for line in manner.expects { #expect(recorder.lines.contains(line), "\(line): \(recorder.lines)") }
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
