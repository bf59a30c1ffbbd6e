import BLECore
import BLELinux
import BLEProfiles
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// The peripheral role over a socket pair: this library's own client is at the other end.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct LocalPeripheralTests {
    @Test func aCentralFindsWhatIsPublished() async throws {
        try await ServerBench.run { bench in
            let service = try await bench.local.publish(
                LocalService(
                    0x180D,
                    [
                        LocalCharacteristic(.heartRateMeasurement, .notify),
                        LocalCharacteristic(
                            .bodySensorLocation, .read, value: .fixed([1]), descriptors: [.description("chest")]),
                    ]))
            let device = try await bench.connect()
            let database = try await device.discover(level: .full)
            let found = try #require(database.services.first { $0.uuid == 0x180D })
            #expect(found.handles == service.handles)
            #expect(
                database.characteristics.filter { found.handles.contains($0.valueHandle) }.map(\.valueHandle)
                    == service.characteristics.map(\.id))
            #expect(try await device.read(.bodySensorLocation) == .chest)
            #expect(try await device.userDescription(of: 0x2A38) == "chest")
            #expect(try await device.read(0x2A00) == Array("Bench".utf8))
        }
    }

    @Test func handlersReturnAndTakeValues() async throws {
        try await ServerBench.run { bench in
            let written = Lock<[[UInt8]]>([])
            try await bench.local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(
                            0xFFF1, [.read, .write],
                            value: .handled { request in
                                [UInt8](repeating: 7, count: 300)
                            } write: { request in
                                guard request.value != [0xFF] else {
                                    throw ATTRefusal(ATTErrorCode(rawValue: 0x80))
                                }
                                written.withLock { $0.append(request.value) }
                            })
                    ]))
            let device = try await bench.connect()
            #expect(try await device.read(0xFFF1) == [UInt8](repeating: 7, count: 300))
            try await device.write([1, 2, 3], to: 0xFFF1)
            let error = await #expect(throws: BLEError.self) { try await device.write([0xFF], to: 0xFFF1) }
            #expect(error?.attError?.rawValue == 0x80)
            #expect(written.withLock { $0 } == [[1, 2, 3]])
        }
    }

    /// On a link whose MTU is 23 bytes.
    @Test func aLongValueIsReadAndWrittenByPieces() async throws {
        try await ServerBench.run { bench in
            let long = (0..<100).map { UInt8($0) }
            let offsets = Lock<[Int]>([])
            let written = Lock<[String]>([])
            let value = LocalValue.pieces { request in
                offsets.withLock { $0.append(request.offset) }
                guard request.offset <= long.count else { throw ATTRefusal(.invalidOffset) }
                return Array(long.dropFirst(request.offset).prefix(request.central.mtu - 1))
            } write: { request in
                written.withLock { $0.append("\(request.offset) \(Hex.encode(request.value))") }
            }
            try await bench.local.publish(
                LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, [.read, .write], value: value)]))
            let central = try await bench.raw()
            let handle = await bench.handle(0xFFF1).bytes
            func request(_ opcode: UInt8, _ rest: [UInt8] = []) async -> [UInt8]? {
                await central.request([opcode] + handle + rest)
            }
            func response(_ opcode: UInt8, _ part: Range<Int>) -> [UInt8] { [opcode] + Array(long[part]) }
            let beyondTheEnd: [UInt8] = [0x01, 0x0C] + handle + [0x07]
            #expect(await request(0x0A) == response(0x0B, 0..<22))
            #expect(await request(0x0C, [22, 0]) == response(0x0D, 22..<44))
            #expect(await request(0x0C, [90, 0]) == response(0x0D, 90..<100))
            #expect(await request(0x0C, [100, 0]) == [0x0D])
            #expect(await request(0x0C, [101, 0]) == beyondTheEnd)
            #expect(offsets.withLock { $0 } == [0, 22, 90, 100, 101])
            // No value is as long as 513 bytes, so that nobody is asked.
            #expect(await request(0x0C, [1, 2]) == beyondTheEnd)
            #expect(offsets.withLock { $0.count } == 5)

            let pieces: [[UInt8]] = [[10, 0, 1, 2], [12, 0, 3]]
            for piece in pieces {
                let echo: [UInt8] = [0x17] + handle + piece
                #expect(await request(0x16, piece) == echo)
            }
            #expect(written.withLock { $0 }.isEmpty)
            #expect(await central.request([0x18, 1]) == [0x19])
            #expect(written.withLock { $0 } == ["10 010203"], "parts that continue each other are one piece")
        }
    }

    @Test func aPieceBeyondTheGreatestLengthIsRefused() async throws {
        try await ServerBench.run { bench in
            let value = LocalValue.pieces { _ in [UInt8](repeating: 7, count: 20) }
            try await bench.local.publish(LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, .read, value: value)]))
            let central = try await bench.raw()
            let handle = await bench.handle(0xFFF1).bytes
            let piece: [UInt8] = [0x0D] + [UInt8](repeating: 7, count: 20)
            let refusal: [UInt8] = [0x01, 0x0C] + handle + [0x0E]
            // The offsets 492 and 493.
            let (last, next): ([UInt8], [UInt8]) = ([0x0C] + handle + [0xEC, 1], [0x0C] + handle + [0xED, 1])
            #expect(await central.request(last) == piece)
            #expect(await central.request(next) == refusal)
        }
    }

    @Test func aReliableWriteReachesTheBatchHandlerOfEachServiceOnce() async throws {
        try await ServerBench.run { bench in
            let taken = Lock<[String]>([])
            // Both services have the same UUID, as two batteries do.
            let services: [(name: String, uuids: [BluetoothUUID])] = [
                ("first", [0xFFF1, 0xFFF2]), ("second", [0xFFF3, 0xFFF4]),
            ]
            for (name, uuids) in services {
                let characteristics = uuids.map { uuid in
                    LocalCharacteristic(uuid, .write, value: .handled(write: { _ in }))
                }
                try await bench.local.publish(
                    LocalService(0xFFF0, characteristics) { requests in
                        let values = requests.map { "\($0.characteristic.uuid)=\(Hex.encode($0.value))" }
                        taken.withLock { $0.append("\(name) \(values.joined(separator: " "))") }
                    })
            }
            let central = try await bench.raw()
            let values: [(uuid: BluetoothUUID, value: UInt8)] = [(0xFFF1, 1), (0xFFF3, 2), (0xFFF2, 3), (0xFFF4, 4)]
            for (uuid, value) in values { await bench.prepare([value], of: uuid, by: central) }
            #expect(taken.withLock { $0 }.isEmpty)
            #expect(await central.request([0x18, 1]) == [0x19])
            #expect(taken.withLock { $0 } == ["first fff1=01 fff2=03", "second fff3=02 fff4=04"])
        }
    }

    /// Its access may be another one than that of the characteristic.
    @Test func aValueOfADescriptorDoesNotReachTheBatchHandler() async throws {
        try await ServerBench.run { bench in
            let taken = Lock<[String]>([])
            let own = LocalValue.handled(write: { request in
                taken.withLock { $0.append("descriptor \(Hex.encode(request.value))") }
            })
            let descriptor = LocalDescriptor(0xFFD1, value: own, isWritable: true)
            let characteristics = [
                LocalCharacteristic(0xFFF1, .write, value: .handled(write: { _ in }), descriptors: [descriptor]),
                LocalCharacteristic(0xFFF2, .write, value: .handled(write: { _ in })),
            ]
            try await bench.local.publish(
                LocalService(0xFFF0, characteristics) { requests in
                    let values = requests.map { "\($0.characteristic.uuid)=\(Hex.encode($0.value))" }
                    taken.withLock { $0.append("batch \(values.joined(separator: " "))") }
                })
            let central = try await bench.raw()
            // The descriptor follows the value.
            let handle: AttributeHandle = await bench.handle(0xFFF1) + 1
            let part: [UInt8] = handle.bytes + [0, 0, 1]
            let echo: [UInt8] = [0x17] + part
            #expect(await central.request([0x16] + part) == echo)
            await bench.prepare([2], of: 0xFFF1, by: central)
            await bench.prepare([3], of: 0xFFF2, by: central)
            #expect(await central.request([0x18, 1]) == [0x19])
            #expect(taken.withLock { $0 } == ["descriptor 01", "batch fff1=02 fff2=03"])
        }
    }

    @Test func aReliableWriteThatAHandlerRefusesChangesNoStoredValueAndReachesNoLaterHandler() async throws {
        try await ServerBench.run { bench in
            let taken = Lock<[BluetoothUUID]>([])
            func handled(_ uuid: BluetoothUUID) -> LocalCharacteristic {
                LocalCharacteristic(
                    uuid, .write,
                    value: .handled(write: { request in
                        taken.withLock { $0.append(uuid) }
                        if request.value == [0xFF] { throw ATTRefusal(ATTErrorCode(rawValue: 0x80)) }
                    }))
            }
            let stored = LocalCharacteristic(0xFFD1, [.read, .write], value: .stored([9]))
            try await bench.local.publish(LocalService(0xFFD0, [stored]))
            try await bench.local.publish(LocalService(0xFFE0, [handled(0xFFE1)]))
            try await bench.local.publish(LocalService(0xFFF0, [handled(0xFFF1), handled(0xFFF2)]))
            let central = try await bench.raw()
            let values: [(uuid: BluetoothUUID, value: UInt8)] = [
                (0xFFD1, 1), (0xFFE1, 2), (0xFFF1, 0xFF), (0xFFF2, 4),
            ]
            for (uuid, value) in values { await bench.prepare([value], of: uuid, by: central) }
            let refusal: [UInt8] = [0x01, 0x18] + (await bench.handle(0xFFF1).bytes) + [0x80]
            #expect(await central.request([0x18, 1]) == refusal)
            #expect(taken.withLock { $0 } == [0xFFE1, 0xFFF1])
            #expect(try await bench.local.value(of: 0xFFD1) == [9])
        }
    }

    @Test(.row("P23")) func aHandlerThatHangsBlocksItsOwnClientForTwentySeconds() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(
                            0xFFF1, .read,
                            value: .handled { _ in
                                try await Task.sleep(for: .seconds(1_000_000))
                                return []
                            }),
                        LocalCharacteristic(0xFFF2, .read, value: .fixed([5])),
                    ]))
            let (first, second) = (try await bench.connect(), try await bench.connect())
            let hanging = bench.time.task { try await first.read(0xFFF1) }
            #expect(try await second.read(0xFFF2) == [5])
            let error = await #expect(throws: BLEError.self) { _ = try await hanging.value }
            #expect(error?.attError == .unlikelyError)
            #expect(try await first.read(0xFFF2) == [5], "the link goes on")
            #expect(await bench.local.outstanding == 0)
        }
    }

    /// The central connects again after each. Of the links one is up.
    @Test func aHandlerThatNeverEndsIsNotCalledWithoutEnd() async throws {
        try await ServerBench.run { bench in
            let held = Lock<[CheckedContinuation<Void, Never>]>([])
            let stuck = LocalValue.handled { _ in
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    held.withLock { $0.append(continuation) }
                }
                return [1]
            }
            let other = LocalValue.handled { _ in [2] }
            try await bench.local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(0xFFF1, .read, value: stuck),
                        LocalCharacteristic(0xFFF2, .read, value: other),
                    ]))
            let handle = await bench.handle(0xFFF1)
            let request: [UInt8] = [0x0A] + handle.bytes
            let refusal: [UInt8] = [0x01, 0x0A] + handle.bytes + [0x11]
            var refused = 0
            for _ in 0..<100 {
                let central = try await bench.raw()
                central.send(request)
                if await central.receive() == refusal { refused += 1 }
                await bench.local.disconnect(central.id)
            }
            #expect(held.withLock { $0.count } == 65 && refused == 35)
            let central = try await bench.raw()
            let otherRequest: [UInt8] = [0x0A] + (await bench.handle(0xFFF2)).bytes
            #expect(await central.request(otherRequest) == [0x0B, 2])
            for continuation in held.withLock({ $0 }) { continuation.resume() }
            await bench.time.settle()
            central.send(request)
            #expect(await central.receive() == nil)
            #expect(held.withLock { $0.count } == 66, "there is room again")
            held.withLock { $0.last }?.resume()
            #expect(await central.receive() == [0x0B, 1])
        }
    }

    private struct Broken: Error {}

    @Test func aHandlerThatDoesNotWorkIsLogged() async throws {
        let log = KeptLog(detail: "error")
        try await ServerBench.run(log: log) { bench in
            let clock = bench.central.clock
            try await bench.local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(
                            0xFFF1, [.read, .write],
                            value: .handled { _ in
                                throw Broken()
                            } write: { _ in
                                throw ATTRefusal(.insufficientResources)
                            }),
                        LocalCharacteristic(
                            0xFFF2, .read, value: .handled { _ in [UInt8](repeating: 0, count: 513) }),
                        LocalCharacteristic(
                            0xFFF3, .read,
                            value: .handled { _ in
                                try await clock.sleep(for: .seconds(25))
                                return [1]
                            }),
                    ]))
            let device = try await bench.connect()
            for uuid in [0xFFF1, 0xFFF1, 0xFFF2, 0xFFF3] as [BluetoothUUID] {
                let error = await #expect(throws: BLEError.self) {
                    try await device.read(CharacteristicReference.uuid(uuid))
                }
                #expect(error?.attError == .unlikelyError)
            }
            await #expect(throws: BLEError.self) { try await device.write([1], to: 0xFFF1) }
            let lines = log.all.filter { $0.hasPrefix("the handler of ") }
            #expect(
                lines == [
                    "the handler of fff1 has failed: Broken()",
                    "the handler of fff2 has returned more than 512 bytes: ",
                    "the handler of fff3 has not returned in time: ",
                ])
        }
    }

    @Test func whatACentralDoesWrongIsLoggedAtTheEndOfItsLink() async throws {
        let log = KeptLog(detail: "counts")
        try await ServerBench.run(log: log) { bench in
            let central = try await bench.raw()
            for _ in 0..<3 { central.send([0x1E]) }
            await bench.time.settle()
            let id = central.id
            await bench.local.disconnect(id)
            #expect(
                log.all.filter { $0.hasPrefix("problems with a client") } == [
                    "problems with a client: unexpected confirmations: 3"
                ])
        }
    }

    @Test(.row("P23")) func twoSlowHandlersOfARequestHaveTwentySecondsTogether() async throws {
        try await ServerBench.run { bench in
            for _ in 0..<2 { try await bench.publishSlowValue(after: .seconds(16)) }
            let handles = await bench.local.publishedServices.flatMap(\.characteristics).map(\.id)
            let last = try #require(handles.last)
            let central = try await bench.raw()
            central.send([0x0E] + handles.flatMap { $0.bytes })
            try await bench.time.clock.sleep(for: .seconds(21))
            #expect(await central.receive() == [0x01, 0x0E] + last.bytes + [0x0E])
            #expect(await central.request([0x0A, 3, 0]) == [0x0B] + Array("Bench".utf8), "the link goes on")
            #expect(await bench.local.outstanding == 0)
        }
    }

    @Test func whatHappensBeforeTheIterationIsReported() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(
                LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, [.read, .write], value: .stored([0]))]))
            let events = bench.local.events
            let device = try await bench.connect()
            try await device.write([7], to: 0xFFF1)
            // It ends the sequence, which delivers what waits.
            await bench.local.stop()
            var written: [BluetoothUUID] = []
            for try await event in events {
                if case .written(let value) = event { written.append(value.characteristic.uuid) }
            }
            #expect(written == [0xFFF1])
        }
    }

    @Test func eachWriteIsReportedWithTheValueThatItHasLeft() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(
                            0xFFF1, [.read, .write, .writeWithoutResponse],
                            value: .stored([1, 2, 3], isFixedLength: true),
                            descriptors: [LocalDescriptor(0xFFD1, value: .stored([]), isWritable: true)])
                    ]))
            let events = bench.local.events
            let raw = try await bench.raw()
            let handle = await bench.handle(0xFFF1)
            // The commands are executed before the first event is looked at.
            for value: UInt8 in 7...9 { raw.send([0x52] + handle.bytes + [value]) }
            #expect(await raw.request([0x12] + (handle + 1).bytes + [5, 6]) == [0x13])
            await bench.local.stop()
            var written: [LocalPeripheral.WrittenValue] = []
            for try await event in events {
                if case .written(let value) = event { written.append(value) }
            }
            #expect(written.map(\.value) == [[7, 2, 3], [8, 2, 3], [9, 2, 3], [5, 6]])
            #expect(written.map(\.handle) == [handle, handle, handle, handle + 1])
            #expect(written.map(\.descriptor) == [nil, nil, nil, 0xFFD1])
            #expect(written.allSatisfy { $0.characteristic.uuid == 0xFFF1 && $0.central.id == raw.id })
        }
    }

    @Test func aCentralWritesTheName() async throws {
        try await ServerBench.run(isNameWritable: true) { bench in
            let device = try await bench.connect()
            var events = bench.local.events.makeAsyncIterator()
            let name = Array("Kitchen".utf8)
            try await device.write(name, to: 0x2A00)
            guard case .written(let written)? = try await events.next() else {
                Issue.record("not reported")
                return
            }
            let characteristic = written.characteristic
            #expect(written.value == name && written.descriptor == nil)
            #expect(characteristic.uuid == 0x2A00 && characteristic.service == 0x1800)
            #expect(try await bench.local.value(of: 0x2A00) == name)
            #expect(try await bench.local.value(of: .handle(characteristic.id)) == name)
            let long = [UInt8](repeating: 0x41, count: 249)
            let error = await #expect(throws: BLEError.self) { try await device.write(long, to: 0x2A00) }
            #expect(error?.attError == .invalidAttributeValueLength)
            #expect(try await device.read(0x2A00) == name)
            // It is no characteristic of this program, which sets it when it creates the peripheral.
            let refused = await #expect(throws: BLEError.self) { try await bench.local.set(name, of: 0x2A00) }
            #expect(refused?.code == .attributeNotFound)
        }
    }

    @Test func subscribersReceiveUpdatesInOrder() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let device = try await bench.connect()
            var events = bench.local.events.makeAsyncIterator()
            #expect(try await bench.local.update([9], of: 0xFFF1).outcomes.isEmpty, "nobody has subscribed")
            let values = try await device.subscribe(to: 0xFFF1)
            guard case .subscribed(let central, let characteristic, isRestored: false)? = try await events.next() else {
                Issue.record("not subscribed")
                return
            }
            #expect(characteristic.uuid == 0xFFF1 && central.subscriptions == [characteristic])
            for number in UInt8(0)..<50 {
                let result = try await bench.local.update([number], of: 0xFFF1)
                #expect(result.outcomes == [central.id: .notified])
            }
            var received: [UInt8] = []
            for try await value in values {
                received += value.bytes
                if received.count == 50 { break }
            }
            #expect(received == Array(0..<50))
            #expect(try await device.read(0xFFF1) == [49], "it is the stored value as well")
        }
    }

    @Test func indicationsAreConfirmed() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let device = try await bench.connect()
            let values = try await device.subscribe(to: 0xFFF2)
            let result = try await bench.local.update([1], of: 0xFFF2)
            #expect(result.outcomes.values.map { $0 } == [.confirmed] && result.sentCount == 1)
            var iterator = values.makeAsyncIterator()
            #expect(try await iterator.next()?.bytes == [1])
        }
    }

    @Test(.row("P02")) func anIndicationThatIsNeverConfirmedEndsItsLinkAlone() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let device = try await bench.connect()
            let values = try await device.subscribe(to: 0xFFF2)
            let silent = try await bench.raw()
            let id = silent.id
            await silent.configure(bench.handle(0xFFF2), 2)
            let start = bench.time.now
            let result = try await bench.local.update([1], of: 0xFFF2)
            #expect(result.outcomes[id] == .timedOut)
            #expect(result.outcomes.values.contains(.confirmed))
            var iterator = values.makeAsyncIterator()
            #expect(try await iterator.next()?.bytes == [1])
            #expect(bench.time.now - start >= .seconds(30))
            #expect(await bench.local.centrals.count == 1)
            #expect(try await device.read(0x2A00) == Array("Bench".utf8))
        }
    }

    @Test func aValueThatIsTooLongIsNotSent() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let device = try await bench.connect(mtu: 23)
            let values = try await device.subscribe(to: 0xFFF1)
            let error = await #expect(throws: BLEError.self) {
                try await bench.local.update([UInt8](repeating: 1, count: 21), of: 0xFFF1)
            }
            #expect(error?.code == .tooLong)
            try await bench.local.update([UInt8](repeating: 2, count: 20), of: 0xFFF1)
            var iterator = values.makeAsyncIterator()
            #expect(try await iterator.next()?.bytes == [UInt8](repeating: 2, count: 20))
        }
    }

    /// A packet of the largest MTU has room for 514 bytes, and a value has 512 at most.
    @Test func dataInPartsOfTheMaximumUpdateLengthArriveWhole() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let device = try await bench.connect()
            let values = try await device.subscribe(to: 0xFFF1)
            let central = try #require(await bench.local.centrals.first)
            #expect(central.mtu == 517 && central.maximumUpdateLength == 512)
            let data = (0..<2_000).map { UInt8(truncatingIfNeeded: $0) }
            for start in stride(from: 0, to: data.count, by: central.maximumUpdateLength) {
                let part = Array(data[start..<min(start + central.maximumUpdateLength, data.count)])
                #expect(try await bench.local.update(part, of: 0xFFF1).outcomes == [central.id: .notified])
            }
            var received: [UInt8] = []
            for try await value in values {
                received += value.bytes
                if received.count >= data.count { break }
            }
            #expect(received == data)
        }
    }

    @Test func aCentralThatCannotReceiveAValueDoesNotKeepItFromTheOthers() async throws {
        try await ServerBench.run { bench in
            let (values, small) = try await bench.subscribers()
            let id = small.id
            let long = [UInt8](repeating: 1, count: 21)
            let result = try await bench.local.update(long, of: 0xFFF1)
            #expect(result.outcomes[id] == .tooLong(limit: 20))
            #expect(result.outcomes.count == 2 && result.sentCount == 1)
            #expect(try await bench.local.value(of: 0xFFF1) == long)
            let longer = [UInt8](repeating: 2, count: 22)
            #expect(try await bench.local.tryUpdate(longer, of: 0xFFF1))
            var iterator = values.makeAsyncIterator()
            #expect(try await iterator.next()?.bytes == long)
            #expect(try await iterator.next()?.bytes == longer)
            // Among centrals that are named it is an error.
            let all = await bench.local.centrals.map(\.id)
            let error = await #expect(throws: BLEError.self) {
                try await bench.local.update(long, of: 0xFFF1, to: all)
            }
            #expect(error?.code == .tooLong)
            #expect(try await bench.local.value(of: 0xFFF1) == longer, "it is not stored")
            #expect(await small.receive() == nil)
            try await bench.local.update([3], of: 0xFFF1)
            #expect(try await iterator.next()?.bytes == [3], "it was sent to none")
        }
    }

    /// Sends values to a central that does not read, until there is no room, and returns how many.
    private func fill(_ central: RawCentral, _ bench: ServerBench) async throws -> Int {
        var sent = 0
        while try await bench.local.update([1], of: 0xFFF1, whenFull: .fail).outcomes[central.id] != .full {
            sent += 1
        }
        return sent
    }

    @Test func aNotificationThatFindsNoRoomIsReportedAsSentOnlyOnceItIs() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let handle = await bench.handle(0xFFF1)
            let slow = try await bench.raw()
            let id = slow.id
            await slow.configure(handle, 1)
            let sent = try await fill(slow, bench)
            // What has timed out is not sent any more.
            let late = try await bench.local.update([2], of: 0xFFF1, timeout: .seconds(1))
            #expect(late.outcomes[id] == .timedOut)
            for _ in 0..<sent { #expect(await slow.receive() == [0x1B] + handle.bytes + [1]) }
            #expect(await slow.receive() == nil)
            _ = try await fill(slow, bench)
            let waiting = bench.time.task { try await bench.local.update([3], of: 0xFFF1) }
            await bench.time.settle()
            await bench.local.disconnect(id)
            #expect(try await waiting.value.outcomes[id] == .disconnected)
        }
    }

    @Test func valuesThatWaitForRoomEndWithTheirService() async throws {
        try await ServerBench.run { bench in
            let service = try await bench.local.publish(bench.sensor)
            let handle = await bench.handle(0xFFF1)
            let slow = try await bench.raw()
            let id = slow.id
            await slow.configure(handle, 1)
            let sent = try await fill(slow, bench)
            // The first one waits for the kernel, and the second one for the first one.
            let waiting = ([2, 3] as [UInt8]).map { value in
                bench.time.task { try await bench.local.update([value], of: 0xFFF1).outcomes[id] }
            }
            await bench.time.settle()
            try await bench.local.withdraw(service)
            for task in waiting { #expect(try await task.value == .notSubscribed) }
            for _ in 0..<sent { #expect(await slow.receive() == [0x1B] + handle.bytes + [1]) }
            #expect(await slow.receive() == nil)
        }
    }

    @Test func severalValuesGoInOnePacketToACentralThatSupportsThat() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(0xFFF1, [.read, .notify]), LocalCharacteristic(0xFFF2, [.read, .notify]),
                        LocalCharacteristic(0xFFF3, [.read, .indicate]),
                    ]))
            let handles = await bench.local.publishedServices.flatMap(\.characteristics).map { $0.id.bytes }
            let (modern, plain) = (try await bench.raw(), try await bench.raw())
            for central in [modern, plain] {
                await central.configure(bench.handle(0xFFF1), 1)
                await central.configure(bench.handle(0xFFF2), 1)
                await central.configure(bench.handle(0xFFF3), 2)
            }
            // Client Supported Features: Multiple Handle Value Notifications.
            #expect(await modern.request([0x12, 11, 0, 4]) == [0x13])
            let updating = bench.time.task {
                try await bench.local.update([(0xFFF1, [1]), (0xFFF2, [2, 3]), (0xFFF3, [4])])
            }
            let several: [[UInt8]] = [[0x23], handles[0], [1, 0, 1], handles[1], [2, 0, 2, 3]]
            #expect(await modern.receive() == Array(several.joined()))
            #expect(await modern.receive() == [0x1D] + handles[2] + [4])
            #expect(await plain.receive() == [0x1B] + handles[0] + [1])
            #expect(await plain.receive() == [0x1B] + handles[1] + [2, 3])
            #expect(await plain.receive() == [0x1D] + handles[2] + [4])
            for central in [modern, plain] { central.send([0x1E]) }
            let (one, other) = (modern.id, plain.id)
            let outcomes = try await updating.value.map(\.outcomes)
            let notified: [ConnectedCentral.ID: LocalPeripheral.UpdateOutcome] = [one: .notified, other: .notified]
            let confirmed: [ConnectedCentral.ID: LocalPeripheral.UpdateOutcome] = [one: .confirmed, other: .confirmed]
            #expect(outcomes == [notified, notified, confirmed])
            #expect(try await bench.local.value(of: 0xFFF2) == [2, 3])
            // If one cannot be sent, none is.
            let long = [UInt8](repeating: 5, count: 21)
            let error = await #expect(throws: BLEError.self) {
                try await bench.local.update([(0xFFF1, [5]), (0xFFF2, long)])
            }
            #expect(error?.code == .tooLong)
            #expect(await modern.receive() == nil)
            #expect(try await bench.local.value(of: 0xFFF1) == [1])
        }
    }

    @Test func severalValuesWaitForRoomInTheirOrder() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let handle = await bench.handle(0xFFF1)
            let slow = try await bench.raw()
            let id = slow.id
            await slow.configure(handle, 1)
            #expect(await slow.request([0x12, 11, 0, 4]) == [0x13])
            let sent = try await fill(slow, bench)
            let refused = try await bench.local.update([(0xFFF1, [2]), (0xFFF1, [3])], whenFull: .fail)
            #expect(refused.map { $0.outcomes[id] } == [.full, .full])
            let first = bench.time.task { try await bench.local.update([4], of: 0xFFF1) }
            await bench.time.settle()
            let others = bench.time.task { try await bench.local.update([(0xFFF1, [5]), (0xFFF1, [6])]) }
            await bench.time.settle()
            for _ in 0..<sent { #expect(await slow.receive() == [0x1B] + handle.bytes + [1]) }
            for value: UInt8 in 4...6 { #expect(await slow.receive() == [0x1B] + handle.bytes + [value]) }
            #expect(try await first.value.outcomes == [id: .notified])
            #expect(try await others.value.map { $0.outcomes[id] } == [.notified, .notified])
        }
    }

    @Test(.row("P13")) func oneThatDoesNotReadDoesNotDelayTheOthers() async throws {
        try await ServerBench.run { bench in
            let (values, slow) = try await bench.subscribers()
            // Until the socket of the slow one is full.
            var sent = 0
            while try await bench.local.update([1], of: 0xFFF1, whenFull: .fail).outcomes[slow.id] != .full {
                sent += 1
            }
            #expect(try await !bench.local.tryUpdate([2], of: 0xFFF1), "it is sent to all or to none")
            let id = slow.id
            let waiting = bench.time.task { try await bench.local.update([3], of: 0xFFF1) }
            var received = 0
            for try await value in values where value.bytes != [1] {
                #expect(value.bytes == [3])
                received += 1
                break
            }
            #expect(received == 1, "the other central was sent it at once")
            var ready = bench.local.readyToUpdate.makeAsyncIterator()
            _ = try await ready.next()
            // Room comes as it reads, and the value that waited goes first.
            for _ in 0..<sent { #expect(await slow.receive() == [0x1B] + bench.handle(0xFFF1).bytes + [1]) }
            #expect(await slow.receive() == [0x1B] + bench.handle(0xFFF1).bytes + [3])
            #expect(try await waiting.value.outcomes[id] == .notified)
            _ = try await ready.next()
            #expect(try await bench.local.tryUpdate([4], of: 0xFFF1))
        }
    }

    @Test(.row("P13")) func theUpdatesThatWaitForOneCentralAreLimited() async throws {
        try await ServerBench.run { bench in
            let (values, slow) = try await bench.subscribers()
            let id = slow.id
            _ = try await fill(slow, bench)
            // One more than the limit: the first one waits for the kernel.
            let waiting = (0..<1_025).map { _ in
                bench.time.task { try await bench.local.update([2], of: 0xFFF1).outcomes[id] }
            }
            await bench.time.settle()
            let refused = try await bench.local.update([3], of: 0xFFF1, timeout: .seconds(1))
            #expect(refused.outcomes[id] == .full && refused.sentCount == 1, "the other central is sent it")
            let several = try await bench.local.update([(0xFFF1, [4]), (0xFFF1, [5])], timeout: .seconds(1))
            #expect(several.map { $0.outcomes[id] } == [.full, .full])
            for try await value in values where value.bytes == [5] { break }
            // The newest value takes the place of those that wait.
            let newest = bench.time.task {
                try await bench.local.update([6], of: 0xFFF1, whenFull: .replace).outcomes[id]
            }
            await bench.time.settle()
            await bench.local.disconnect(id)
            #expect(try await newest.value == .disconnected)
            var outcomes: [LocalPeripheral.UpdateOutcome?] = []
            for task in waiting { outcomes.append(try await task.value) }
            #expect(outcomes.count { $0 == .replaced } == 1_024 && outcomes.count { $0 == .disconnected } == 1)
        }
    }

    /// The handler of a write without response takes 5 s.
    @Test func aSubscriptionIsReportedAfterTheHandlersOfTheWritesBeforeIt() async throws {
        try await ServerBench.run { bench in
            let clock = bench.central.clock
            try await bench.local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(
                            0xFFF1, [.writeWithoutResponse, .notify],
                            value: .handled(write: { _ in try await clock.sleep(for: .seconds(5)) })),
                        LocalCharacteristic(0xFFF2, .write, value: .stored([0])),
                    ]))
            let raw = try await bench.raw()
            let (handle, stored) = (await bench.handle(0xFFF1), await bench.handle(0xFFF2))
            let events = bench.local.events
            let kinds = Lock<[String]>([])
            let watch = bench.time.task {
                for try await event in events {
                    switch event {
                    case .subscribed: kinds.withLock { $0.append("subscribed") }
                    case .unsubscribed: kinds.withLock { $0.append("unsubscribed") }
                    case .disconnected: kinds.withLock { $0.append("disconnected") }
                    case .written: kinds.withLock { $0.append("written") }
                    case .connected, .writeDropped, .paired, .pairingFailed, .dropped: break
                    }
                }
            }
            raw.send([0x52] + handle.bytes + [1])
            await raw.configure(handle, 1)
            // What is stored at once is reported after it too.
            #expect(await raw.request([0x12] + stored.bytes + [9]) == [0x13])
            #expect(kinds.withLock { $0 } == [])
            try await clock.sleep(for: .seconds(6))
            #expect(kinds.withLock { $0 } == ["subscribed", "written"])
            raw.send([0x52] + handle.bytes + [2])
            await raw.configure(handle, 0)
            #expect(kinds.withLock { $0 } == ["subscribed", "written"])
            // The end of the link waits for no handler.
            await bench.local.disconnect(raw.id)
            await bench.time.settle()
            #expect(kinds.withLock { $0 } == ["subscribed", "written", "unsubscribed", "disconnected"])
            watch.cancel()
        }
    }

    @Test func theEndOfALinkEndsItsSubscriptionsFirst() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            var events = bench.local.events.makeAsyncIterator()
            let device = try await bench.connect()
            let values = try await device.subscribe(to: 0xFFF1)
            await device.disconnect()
            withExtendedLifetime(values) {}
            var kinds: [String] = []
            while kinds.last != "disconnected", let event = try await events.next() {
                switch event {
                case .connected: kinds.append("connected")
                case .subscribed: kinds.append("subscribed")
                case .unsubscribed: kinds.append("unsubscribed")
                case .disconnected: kinds.append("disconnected")
                case .written, .writeDropped, .paired, .pairingFailed, .dropped: kinds.append("other")
                }
            }
            #expect(kinds == ["connected", "subscribed", "unsubscribed", "disconnected"])
            #expect(await bench.local.centrals.isEmpty)
        }
    }

    @Test func servicesAreWithdrawnAndChangesIndicated() async throws {
        try await ServerBench.run { bench in
            let service = try await bench.local.publish(bench.sensor)
            let device = try await bench.connect()
            try await device.discover(level: .full)
            let sequence = try await device.serviceChanges()
            var changes = sequence.makeAsyncIterator()
            try await bench.local.withdraw(service)
            #expect(try await changes.next() != nil)
            await #expect(throws: BLEError.self) { _ = try await device.read(0xFFF1) }
            let later = try await bench.local.publish(bench.sensor)
            #expect(later.handles.lowerBound > service.handles.upperBound, "handles are not used again")
            #expect(try await changes.next() != nil)
            #expect(try await device.read(0xFFF1) == [])
        }
    }

    @Test func allServicesAreWithdrawnAtOnce() async throws {
        try await ServerBench.run { bench in
            let included = try await bench.local.publish(bench.sensor)
            let characteristics = [LocalCharacteristic(0xFFE1, .read)]
            let last = try await bench.local.publish(LocalService(0xFFE0, includes: [included], characteristics))
            // It is included by another one.
            await #expect(throws: error(.invalidArgument)) { try await bench.local.withdraw(included) }
            let device = try await bench.raw()
            // Service Changed is at 8.
            await device.configure(8, 2)
            await bench.local.withdrawAll()
            #expect(await bench.local.publishedServices.isEmpty)
            let (first, end) = (included.handles.lowerBound, last.handles.upperBound)
            #expect(await device.receive() == [0x1D, 8, 0] + first.bytes + end.bytes)
            #expect(await device.request([0x1E]) == nil, "it is one change")
            await bench.local.withdrawAll()
            #expect(await device.receive() == nil)
        }
    }

    @Test func aCentralsLinkIsUsedByTheClientSideToo() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let device = try await bench.connect()
            let id = try #require(await bench.local.centrals.first?.id)
            let back = try await bench.local.peripheral(of: id)
            // The other end serves nothing, and says so.
            let error = await #expect(throws: BLEError.self) { _ = try await back.read(.handle(3)) }
            #expect(error?.attError == .requestNotSupported)
            #expect(try await device.read(0xFFF1) == [])
            let (mtu, otherMTU) = (await back.mtu, await device.mtu)
            #expect(mtu == otherMTU)
        }
    }

    @Test func commandsAreExecutedInTheirOrderThoughTheFirstIsAuthorizedBefore() async throws {
        try await ServerBench.run { bench in
            let taken = Lock<[BluetoothUUID]>([])
            func handled(_ uuid: BluetoothUUID, _ write: AccessRequirement) -> LocalCharacteristic {
                LocalCharacteristic(
                    uuid, .writeWithoutResponse,
                    value: .handled(write: { _ in taken.withLock { $0.append(uuid) } }),
                    access: AttributeAccess(write: write))
            }
            var settings = LocalPeripheral.Settings(name: "Bench")
            settings.authorize = { _ in true }
            let local = LocalPeripheral(settings, on: bench.central)
            let authorized = AccessRequirement(.open, isAuthorized: true)
            let service = try await local.publish(
                LocalService(0xFFF0, [handled(0xFFF1, authorized), handled(0xFFF2, .open)]))
            let (ours, theirs) = try LinkSocket.pair()
            let central = RawCentral(
                id: try await local.attach(descriptor: ours), socket: LinkSocket(adopting: theirs), time: bench.time)
            for characteristic in service.characteristics { central.send([0x52] + characteristic.id.bytes + [1]) }
            #expect(await central.receive() == nil)
            #expect(taken.withLock { $0 } == [0xFFF1, 0xFFF2])
            await local.stop()
        }
    }

    @Test func theApplicationAuthorizesReadsWritesAndSubscriptionsApart() async throws {
        try await ServerBench.run { bench in
            let asked = Lock<[String]>([])
            var settings = LocalPeripheral.Settings(name: "Bench")
            settings.authorize = { request in
                let access = request.isSubscription ? "subscribe" : request.isWrite ? "write" : "read"
                asked.withLock { $0.append("\(access) \(request.characteristic.uuid)") }
                return access != "write"
            }
            let local = LocalPeripheral(settings, on: bench.central)
            let access = AttributeAccess(AccessRequirement(.open, isAuthorized: true))
            let value = LocalCharacteristic(0xFFF1, [.read, .write, .notify], value: .stored([7]), access: access)
            let service = try await local.publish(LocalService(0xFFF0, [value]))
            let handle = try #require(service.characteristics.first).id
            let (ours, theirs) = try LinkSocket.pair()
            let central = RawCentral(
                id: try await local.attach(descriptor: ours), socket: LinkSocket(adopting: theirs), time: bench.time)
            #expect(await central.request([0x0A] + handle.bytes) == [0x0B, 7])
            let refusal: [UInt8] = [0x01, 0x12] + handle.bytes + [0x08]
            #expect(await central.request([0x12] + handle.bytes + [8]) == refusal)
            #expect(try await local.value(of: 0xFFF1) == [7])
            await central.configure(handle, 1)
            #expect(try await local.update([9], of: 0xFFF1).sentCount == 1)
            let notification: [UInt8] = [0x1B] + handle.bytes + [9]
            #expect(await central.receive() == notification)
            #expect(asked.withLock { $0 } == ["read fff1", "write fff1", "subscribe fff1"])
            await local.stop()
        }
    }

    @Test func whatCannotBePublishedIsRefused() async throws {
        try await ServerBench.run { bench in
            let services = [
                LocalService(0x1801, []),
                LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, [.read, .write], value: .fixed([1]))]),
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(
                            0xFFF1, .notify,
                            descriptors: [LocalDescriptor(0x2902, value: .stored([0, 0]), isWritable: true)])
                    ]),
                LocalService(
                    0xFFF0, [LocalCharacteristic(0xFFF1, .read, value: .stored([UInt8](repeating: 0, count: 513)))]),
                LocalService(0xFFF0, [LocalCharacteristic(0x2803, .read, value: .stored([0]))]),
            ]
            for service in services {
                let error = await #expect(throws: BLEError.self) { try await bench.local.publish(service) }
                #expect(error?.code == .invalidArgument)
            }
            #expect(await bench.local.publishedServices.isEmpty)
            let error = await #expect(throws: BLEError.self) { try await bench.local.update([1], of: 0xFFF1) }
            #expect(error?.code == .attributeNotFound)
        }
    }
}
