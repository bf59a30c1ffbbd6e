import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// Centrals that violate the protocol, take nothing or come and go, as a peripheral manager sees them: what they may
/// not do reaches no program, and other centrals are served.
@Suite(.timeLimit(.minutes(10))) struct PeripheralManagerFaultTests {
    private static func characteristic(
        _ properties: CBCharacteristicProperties, _ permissions: CBAttributePermissions = [.readable, .writeable],
        type: String = "FFF2"
    ) -> CBMutableCharacteristic {
        CBMutableCharacteristic(
            type: CBUUID(string: type), properties: properties, value: nil, permissions: permissions)
    }

    /// A service with a fixed value, FFF1, and these characteristics, on air.
    private func offer(
        _ bench: Bench, _ characteristics: CBMutableCharacteristic...
    ) async throws -> (CBPeripheralManager, CallbackRecorder) {
        let recorder = CallbackRecorder(bench.time)
        let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
        try await recorder.wait(for: "state 5")
        let service = CBMutableService(type: CBUUID(string: "FFF0"), primary: true)
        let fixed = CBMutableCharacteristic(
            type: CBUUID(string: "FFF1"), properties: .read, value: Data([1, 2, 3]), permissions: .readable)
        let offered: [CBMutableCharacteristic] = [fixed] + characteristics
        service.characteristics = offered
        manager.add(service)
        manager.startAdvertising(nil)
        try await recorder.wait(for: "didStartAdvertising nil")
        recorder.clear()
        return (manager, recorder)
    }

    /// A central that knows the services.
    private func connect(_ bench: Bench) async throws -> VirtualCentral {
        let phone = await bench.radio.addCentral()
        try await phone.connect()
        try await phone.discover()
        return phone
    }

    private func bytes(_ handle: AttributeHandle) -> [UInt8] { [UInt8(handle & 0xFF), UInt8(handle >> 8)] }

    private func lateResponses(_ bench: Bench) -> Int {
        bench.log.misuse.count { $0.hasSuffix("was responded to before, or too late") }
    }

    // MARK: Writes

    /// The queue runs nothing meanwhile.
    @Test(.row("P01")) func ofCommandsWithoutEndABoundedNumberWaits() async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await offer(bench, Self.characteristic([.write, .writeWithoutResponse]))
            let (hostile, other) = (try await connect(bench), try await connect(bench))
            recorder.react { _ in
                if let request = recorder.requests.last { manager.respond(to: request, withResult: .success) }
            }
            let handle = try await hostile.characteristic(0xFFF2).value
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                for number in 0..<1_000 {
                    await hostile.command([UInt8(number >> 8), UInt8(number & 0xFF)], at: handle)
                }
                #expect(try await other.read(0xFFF1) == [1, 2, 3])
                // It comes after all of them.
                #expect(try await hostile.read(0xFFF1) == [1, 2, 3])
            }
            try await bench.time.clock.sleep(for: .seconds(1))
            let taken = recorder.requests.compactMap { $0.value.map { Int($0[0]) << 8 | Int($0[1]) } }
            // 256 wait for the queue at most, and 64 for that.
            #expect((64...320).contains(taken.count))
            #expect(taken == taken.sorted() && Set(taken).count == taken.count && taken.first == 0)
            try await hostile.write([9, 9], at: handle)
            #expect(recorder.lines.last == "didReceiveWrite [[9, 9]]")
        }
    }

    @Test(.row("P04", "P05")) func preparedWritesThatCannotBeReachNoProgram() async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await offer(
                bench, Self.characteristic(.write), Self.characteristic(.write, type: "FFF3"))
            let phone = try await connect(bench)
            let one = try await phone.characteristic(0xFFF2).value
            let two = try await phone.characteristic(0xFFF3).value
            // They end with the link.
            for _ in 0..<2 {
                for _ in 0..<64 { try await phone.prepare([1], at: one, from: 0) }
                let refused = await refusal { () async throws(VirtualCentralError) in
                    try await phone.prepare([1], at: one, from: 0)
                }
                #expect(refused == .prepareQueueFull)
                await phone.disconnect()
                try await bench.time.clock.sleep(for: .seconds(1))
                try await phone.connect()
            }
            // The second part of one value begins beyond the first.
            try await phone.prepare([1], at: one, from: 0)
            try await phone.prepare([2], at: two, from: 0)
            try await phone.prepare([3], at: two, from: 5)
            let refused = await refusal { () async throws(VirtualCentralError) in try await phone.execute() }
            #expect(refused == .invalidOffset)
            await bench.time.settle()
            #expect(recorder.lines == [])
            recorder.react { _ in
                if let request = recorder.requests.last { manager.respond(to: request, withResult: .success) }
            }
            try await phone.prepare([4], at: two, from: 0)
            try await phone.execute()
            #expect(recorder.lines == ["didReceiveWrite [[4]]"])
        }
    }

    @Test(.row("P15")) func aConfigurationThatCannotBeIsRefused() async throws {
        try await Bench.run { bench in
            let notified = Self.characteristic(.notify)
            let (manager, recorder) = try await offer(bench, notified)
            let phone = try await connect(bench)
            let configuration = try await phone.characteristic(0xFFF2).value + 1
            let wrong: [([UInt8], ATTErrorCode)] = [
                ([4, 0], .valueNotAllowed), ([2, 0], .valueNotAllowed), ([0, 1], .valueNotAllowed),
                ([1], .invalidAttributeValueLength), ([1, 0, 0], .invalidAttributeValueLength),
            ]
            for (bits, code) in wrong {
                let refused = await refusal { () async throws(VirtualCentralError) in
                    try await phone.write(bits, at: configuration)
                }
                #expect(refused == code, "\(bits)")
                await phone.command(bits, at: configuration)
            }
            await bench.time.settle()
            #expect(recorder.lines == [])
            #expect(notified.subscribedCentrals == [])
            // In prepared parts it is accepted.
            try await phone.prepare([1], at: configuration, from: 0)
            try await phone.prepare([0], at: configuration, from: 1)
            try await phone.execute()
            try await recorder.wait(for: "didSubscribeTo FFF2 20")
            #expect(manager.updateValue(Data([7]), for: notified, onSubscribedCentrals: nil))
            #expect(try await phone.nextValue().bytes == [7])
        }
    }

    // MARK: Requests

    @Test(.row("P07")) func aSecondRequestBeforeTheResponseEndsItsLinkAlone() async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await offer(bench, Self.characteristic(.read))
            let (hostile, other) = (try await connect(bench), try await connect(bench))
            let handle = try await hostile.characteristic(0xFFF2).value
            let request = [0x0A] + bytes(handle)
            await hostile.send(raw: request)
            try await recorder.wait(for: "didReceiveRead FFF2 0")
            await hostile.send(raw: request)
            #expect(await hostile.disconnected() == .remoteUserTerminated)
            #expect(try await other.read(0xFFF1) == [1, 2, 3])
            // The response of the program has nobody to go to.
            manager.respond(to: try #require(recorder.requests.first), withResult: .success)
            #expect(lateResponses(bench) == 1)
            #expect(await hostile.unexpectedResponseCount == 0)
            #expect(recorder.lines == ["didReceiveRead FFF2 0"])
        }
    }

    /// The program keeps the request.
    @Test(.row("P23")) func aRequestWithoutAResponseIsRefusedAfterTwentySeconds() async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await offer(bench, Self.characteristic(.read))
            let (phone, other) = (try await connect(bench), try await connect(bench))
            let begin = bench.time.now
            let reading = bench.time.task {
                await refusal { () async throws(VirtualCentralError) in _ = try await phone.read(0xFFF2) }
            }
            try await recorder.wait(for: "didReceiveRead FFF2 0")
            #expect(try await other.read(0xFFF1) == [1, 2, 3])
            #expect(bench.time.now - begin < .seconds(1))
            #expect(try await reading.value == .unlikelyError)
            #expect((Duration.seconds(20)..<Duration.seconds(21)).contains(bench.time.now - begin))
            manager.respond(to: try #require(recorder.requests.first), withResult: .success)
            #expect(lateResponses(bench) == 1)
            #expect(try await phone.read(0xFFF1) == [1, 2, 3])
        }
    }

    @Test(.row("P22")) func eachValueOfATypeIsAskedForOnce() async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await offer(
                bench, Self.characteristic(.read), Self.characteristic(.read), Self.characteristic(.read))
            let phone = try await connect(bench)
            recorder.react { line in
                guard line.hasPrefix("didReceiveRead"), let request = recorder.requests.last else { return }
                let number = recorder.requests.count
                request.value = Data([UInt8(number)])
                manager.respond(to: request, withResult: number < 3 ? .success : .readNotPermitted)
            }
            // Read By Type Request, FFF2 over all handles. The list ends at the value that is refused.
            let response = try await phone.request([0x08, 1, 0, 0xFF, 0xFF, 0xF2, 0xFF])
            try #require(response.count == 8)
            #expect(response[0] == 0x09 && response[1] == 3)
            #expect(response[4] == 1 && response[7] == 2)
            #expect(recorder.lines == [String](repeating: "didReceiveRead FFF2 0", count: 3))
        }
    }

    @Test(.row("P20")) func noRequestReadsAProtectedValueOnAnOpenLink() async throws {
        try await Bench.run { bench in
            let sealed = Self.characteristic(
                [.read, .write, .notifyEncryptionRequired], [.readEncryptionRequired, .writeEncryptionRequired])
            let (manager, recorder) = try await offer(bench, sealed)
            let phone = try await connect(bench)
            let handle = try await phone.characteristic(0xFFF2).value
            let (value, configuration) = (bytes(handle), bytes(handle + 1))
            let (low, high) = (value[0], value[1])
            // Read, Read Blob, Read By Type, Read Multiple, Read Multiple Variable, Write, Prepare Write; the
            // configuration.
            let requests: [[UInt8]] = [
                [0x0A, low, high], [0x0C, low, high, 0, 0], [0x08, 1, 0, 0xFF, 0xFF, 0xF2, 0xFF],
                [0x0E, low, high, low, high], [0x20, low, high, low, high], [0x12, low, high, 1],
                [0x16, low, high, 0, 0, 1], [0x12, configuration[0], configuration[1], 1, 0],
            ]
            for request in requests {
                let refused = await refusal { () async throws(VirtualCentralError) in
                    _ = try await phone.request(request)
                }
                #expect(refused == .insufficientAuthentication, "\(request)")
            }
            #expect(manager.updateValue(Data([1]), for: sealed, onSubscribedCentrals: nil))
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(await phone.unreadValues.isEmpty)
            #expect(recorder.lines == [])
            #expect(await phone.isConnected)
        }
    }

    @Test(.row("P21")) func aCentralThatDoesNotReadTheHashIsOutOfSyncOnce() async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await offer(bench)
            let phone = try await connect(bench)
            let handle = try await phone.characteristic(0xFFF1).value
            // Client Supported Features: robust caching.
            try await phone.write([1], to: 0x2B29)
            manager.add(CBMutableService(type: CBUUID(string: "FFE0"), primary: true))
            try await recorder.wait(for: "didAdd FFE0 nil")
            let refused = await refusal { () async throws(VirtualCentralError) in
                _ = try await phone.read(at: handle)
            }
            #expect(refused == .databaseOutOfSync)
            for _ in 0..<2 { #expect(try await phone.read(at: handle) == [1, 2, 3]) }
        }
    }

    @Test(.row("P10"), arguments: [(0, 20), (22, 20), (100, 97), (0xFFFF, 512)] as [(UInt16, Int)])
    func theFirstMTUThatCanBeCounts(_ mtu: UInt16, _ length: Int) async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await offer(bench, Self.characteristic(.notify))
            let phone = try await connect(bench)
            try await phone.exchangeMTU(mtu)
            try await phone.exchangeMTU(247)
            try await phone.subscribe(to: 0xFFF2)
            try await recorder.wait(for: "didSubscribeTo FFF2 \(length)")
            _ = manager
        }
    }

    /// Packets that no central sends, to a value with this handle.
    struct Packets: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable (_ handle: [UInt8]) -> [[UInt8]]
    }

    static let meaningless: [Packets] = [
        Packets(testDescription: "P03 confirmations") { _ in [[UInt8]](repeating: [0x1E], count: 1_000) },
        Packets(testDescription: "P24 a command longer than the MTU") { handle in
            [[0x52] + handle + [UInt8](repeating: 7, count: 30)]
        },
        Packets(testDescription: "P25 responses") { handle in
            let opcodes: [UInt8] = [
                0x01, 0x03, 0x05, 0x07, 0x09, 0x0B, 0x0D, 0x0F, 0x11, 0x13, 0x17, 0x19, 0x21,
            ]
            return opcodes.map { [$0] + handle + [0, 0] }
        },
        Packets(testDescription: "P35 no bytes") { _ in [[UInt8]](repeating: [], count: 100) },
    ]

    @Test(.row("P03", "P24", "P25", "P35"), arguments: meaningless)
    func packetsWithoutMeaningReachNoProgram(_ packets: Packets) async throws {
        try await Bench.run { bench in
            let (manager, recorder) = try await offer(bench, Self.characteristic([.write, .writeWithoutResponse]))
            let phone = try await connect(bench)
            let handle = bytes(try await phone.characteristic(0xFFF2).value)
            for packet in packets.make(handle) { await phone.send(raw: packet) }
            #expect(try await phone.read(0xFFF1) == [1, 2, 3])
            await bench.time.settle()
            #expect(recorder.lines == [])
            _ = manager
        }
    }

    // MARK: Links

    @Test(.row("P02")) func anIndicationThatIsNeverConfirmedEndsItsLinkAlone() async throws {
        try await Bench.run { bench in
            let indicated = Self.characteristic(.indicate)
            let (manager, recorder) = try await offer(bench, indicated)
            let (mute, other) = (try await connect(bench), try await connect(bench))
            await mute.confirmIndications(false)
            for phone in [mute, other] { try await phone.subscribe(to: 0xFFF2, isIndicated: true) }
            try await recorder.wait(for: "didSubscribeTo FFF2", count: 2)
            let begin = bench.time.now
            #expect(manager.updateValue(Data([1]), for: indicated, onSubscribedCentrals: nil))
            #expect(try await other.nextValue().bytes == [1])
            #expect(await mute.disconnected() == .remoteUserTerminated)
            #expect((Duration.seconds(30)..<Duration.seconds(31)).contains(bench.time.now - begin))
            try await recorder.wait(for: "didUnsubscribeFrom FFF2")
            #expect(indicated.subscribedCentrals?.count == 1)
            #expect(manager.updateValue(Data([2]), for: indicated, onSubscribedCentrals: nil))
            #expect(try await other.nextValue().bytes == [2])
            #expect(recorder.count(of: "didUnsubscribeFrom FFF2") == 1)
        }
    }

    @Test(.row("P09", "P16")) func centralsThatComeAndGoLeaveNothing() async throws {
        try await Bench.run { bench in
            let notified = Self.characteristic(.notify)
            let (manager, recorder) = try await offer(bench, notified)
            let phone = await bench.radio.addCentral()
            for number in UInt64(0)..<100 {
                let address = BluetoothAddress(rawValue: 0x4000_0000_0000 + number)
                await bench.radio.changeAddress(of: phone, to: PeerID(address: address, type: .random))
                try await phone.connect()
                try await phone.subscribe(to: 0xFFF2)
                await phone.disconnect()
                try await bench.time.clock.sleep(for: .milliseconds(20))
            }
            try await recorder.wait(for: "didUnsubscribeFrom FFF2", count: 100)
            #expect(recorder.count(of: "didSubscribeTo FFF2") == 100)
            #expect(recorder.lines.count == 200)
            #expect(notified.subscribedCentrals == [])
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(manager.isAdvertising)
            #expect(await bench.radio.advertisements().count == 1)
        }
    }
}
