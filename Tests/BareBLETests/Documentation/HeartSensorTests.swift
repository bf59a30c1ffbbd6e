import BareBLE
import BareBLETestKit
import Testing

/// The heart-sensor program of coming-from.md, against a heart sensor that goes away and comes back.
@Suite(.timeLimit(.minutes(10))) struct HeartSensorTests {
    // in: Docs/users/coming-from.md
    /// Keeps to the first heart sensor that it finds, until `heard` has had enough.
    func followHeart(_ central: Central, heard: @Sendable (UInt16) async -> Bool) async throws {
        let sensor = try await central.first(.services(0x180D), timeout: .seconds(30))
        guard let peer = sensor.peer else { return }
        // Connects, and again whenever the link is lost. This runs first each time, before any other call on the link.
        let session = try await central.session(
            with: peer,
            onReady: { device in
                if try await device.read(.bodySensorLocation) != .wrist {
                    try await device.write(.wrist, to: .bodySensorLocation)
                }
            })
        for try await element in await session.subscribe(to: .heartRateMeasurement) {
            switch element {
            case .began: print("listening")
            case .value(let beat):
                if await !heard(beat.beatsPerMinute) { return await session.disconnect() }
            case .interrupted(let error): print("no beats until it begins again:", error)
            }
        }
    }
    // out

    // in: Docs/users/coming-from.md
    /// Resumes the sensors of the last run, however that ended.
    func resume(_ central: Central, heard: @escaping @Sendable (UInt16) async -> Bool) async throws {
        // What is code cannot be stored. It is passed again, before anything is connected.
        let before = try await central.restore { _ in
            Session.Handlers(onReady: { device in
                if try await device.read(.bodySensorLocation) != .wrist {
                    try await device.write(.wrist, to: .bodySensorLocation)
                }
            })
        }
        // A task for each sensor: the beats of one do not wait for the end of the other.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for subscription in before.subscriptions where subscription.characteristic == 0x2A37 {
                group.addTask {
                    for try await element in subscription.adopt(as: HeartRateMeasurement.self) {
                        if case .value(let beat) = element, await !heard(beat.beatsPerMinute) { break }
                    }
                }
            }
            try await group.waitForAll()
        }
    }
    // out

    /// The virtual heart sensor, with a location that can be written.
    private static var sensor: VirtualDevice {
        var device = VirtualDevice.heartRate
        for (number, service) in device.services.enumerated() where service.uuid == 0x180D {
            for (place, characteristic) in service.characteristics.enumerated() where characteristic.uuid == 0x2A38 {
                device.services[number].characteristics[place].properties = [.read, .write]
            }
        }
        return device
    }

    private actor Listener {
        private(set) var beats: [UInt16] = []

        func add(_ beat: UInt16) -> Int {
            beats.append(beat)
            return beats.count
        }
    }

    @Test func followsThroughALostLink() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let sensor = await radio.add(Self.sensor)
            let listener = Listener()
            try await followHeart(Central(radio: radio)) { beat in
                let count = await listener.add(beat)
                if count == 3 {
                    let location = try? await sensor.value(0x2A38)
                    #expect(location == [0x02])
                    await radio.move(sensor, to: .outOfRange)
                    // Long enough for the link to end, and for some connects without success.
                    try? await time.clock.sleep(for: .seconds(60))
                    await radio.move(sensor, to: .near)
                }
                return count < 6
            }
            // The sensor starts its row of beats again with each link.
            #expect(await listener.beats.suffix(3) == [72, 73, 74])
            #expect(await sensor.connectionCount >= 2)
            #expect(await !sensor.isConnected)
        }
    }

    @Test func goesOnAfterARestart() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let sensor = await bench.radio.add(Self.sensor)
            let listener = Listener()
            try await bench.run { central, _ in
                let task = time.task { try await followHeart(central) { await listener.add($0) > 0 } }
                while await listener.beats.count < 3 { try await time.clock.sleep(for: .seconds(1)) }
                task.cancel()
                try await task.value
            }
            let central = bench.fresh()
            try await resume(central) { await listener.add($0) < 6 }
            #expect(await listener.beats.suffix(3) == [72, 73, 74])
            #expect(try await sensor.value(0x2A38) == [0x02])
            #expect(await sensor.connectionCount == 2)
            await central.suspend()
        }
    }

    @Test func goesOnWithTwoSensorsAtOnce() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let listener = Listener()
            var peers: [PeerID] = []
            for beats in [60, 160] as [UInt8] {
                let plan = NotifyPlan([[0, beats]], every: .seconds(1))
                let service = VirtualService(
                    0x180D,
                    [
                        VirtualCharacteristic(0x2A37, .notify, plan: plan),
                        VirtualCharacteristic(0x2A38, .read, value: [2]),
                    ])
                peers.append(try await bench.add(VirtualDevice(name: "Belt \(beats)", services: [service])).peer)
            }
            try await bench.run { central, _ in
                for peer in peers {
                    _ = await (try await central.session(with: peer)).subscribe(to: .heartRateMeasurement)
                }
                try await time.clock.sleep(for: .seconds(1))
            }
            let central = bench.fresh()
            let task = time.task { try await resume(central) { await listener.add($0) > 0 } }
            try await time.clock.sleep(for: .seconds(60))
            #expect(Set(await listener.beats) == [60, 160])
            task.cancel()
            try await task.value
            await central.suspend()
        }
    }

    @Test func goesOnInTheNextProgram() async throws {
        let sensor = VirtualPeripheral(Self.sensor)
        let device = try await Central().attach(descriptor: sensor.connect())
        let beats = try await device.subscribe(to: .heartRateMeasurement)
        // in: Docs/users/coming-from.md
        // The program that ends:
        let link = try await device.detach()
        // The one that begins; values that came in between are kept.
        let sameDevice = try await Central().adopt(link)
        for subscription in await sameDevice.restoredSubscriptions where subscription.uuid == 0x2A37 {
            for try await beat in try await subscription.adopt(as: HeartRateMeasurement.self) {
                print(beat.beatsPerMinute)
                break
            }
        }
        // out
        #expect(await sensor.connectionCount == 1)
        #expect(beats.droppedInTotal == 0)
        await sameDevice.disconnect()
    }
}
