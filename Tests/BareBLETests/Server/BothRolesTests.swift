import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// Both roles of one adapter at the same time.
@Suite(.timeLimit(.minutes(5))) struct BothRolesTests {
    private static let minutes = 10

    /// A scan, three links of each role, and an advertisement. Each minute a link of each role ends and is made again:
    /// of the links that come to the listening socket, those that this side has initiated belong to their connects.
    @Test func theyDoNotDisturbEachOther() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let local = LocalPeripheral(on: central)
            try await local.publish(
                LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, [.read, .notify], value: .stored([7]))]))
            let advertising = try await local.advertise([.localName("Both")])
            let isOver = Lock(false)

            var ids: [PeerID] = []
            for _ in 0..<3 { ids.append(try #require(await radio.id(of: await radio.add(.heartRate)))) }
            let beacon = try #require(await radio.id(of: await radio.add(.battery)))
            let reports = Lock(0)
            var settings = try ScanSettings()
            settings.duplicates = .every(.seconds(1))
            let scanned = central.scan(settings.filter, settings)
            let scan = time.task {
                for try await case .updated(let result) in scanned where result.peer == beacon {
                    reports.withLock { $0 += 1 }
                }
            }

            // This side as the client of belts.
            let beats = Lock<[PeerID: Int]>([:])
            let clients = ids.enumerated().map { number, id in
                time.task {
                    for minute in 0..<Self.minutes {
                        let belt = try await central.connect(id)
                        let end = central.clock.now.advanced(by: .seconds(minute % 3 == number ? 55 : 58))
                        for try await value in try await belt.subscribe(to: 0x2A37) {
                            #expect(value.droppedBefore == 0)
                            beats.withLock { $0[id, default: 0] += 1 }
                            if central.clock.now >= end { break }
                        }
                        await belt.disconnect()
                    }
                }
            }
            // Others as clients of this side.
            let values = Lock<[Int: Int]>([:])
            let users = (0..<3).map { number in
                time.task {
                    let phone = await radio.addCentral()
                    for minute in 0..<Self.minutes {
                        try await phone.connect(within: .seconds(30))
                        #expect(try await phone.read(0xFFF1).count == 1)
                        try await phone.subscribe(to: 0xFFF1)
                        let end = central.clock.now.advanced(by: .seconds(minute % 3 == number ? 54 : 57))
                        while central.clock.now < end {
                            _ = try await phone.nextValue(within: .seconds(5))
                            values.withLock { $0[number, default: 0] += 1 }
                        }
                        await phone.disconnect()
                    }
                }
            }
            let sending = time.task {
                var number: UInt8 = 0
                while !isOver.withLock(\.self) {
                    try await central.clock.sleep(for: .seconds(1))
                    number &+= 1
                    try await local.update([number], of: 0xFFF1)
                }
            }
            let begin = time.now
            for task in clients + users { try await task.value }
            #expect(time.now >= begin + .seconds(9 * 60))
            isOver.withLock { $0 = true }
            try await sending.value
            scan.cancel()
            _ = await scan.result

            // A value each second of each link's life, but for the time of connecting.
            #expect(ids.allSatisfy { beats.withLock { $0 }[$0, default: 0] >= 52 * Self.minutes })
            #expect((0..<3).allSatisfy { values.withLock { $0 }[$0, default: 0] >= 50 * Self.minutes })
            #expect(reports.withLock(\.self) > 9 * 60 - 30)
            await time.settle()
            #expect(await local.centrals.isEmpty)
            #expect(await local.outstanding == 0)
            #expect(await radio.advertisements().count == 1)
            await advertising.stop()
            await local.stop()
        }
    }
}
