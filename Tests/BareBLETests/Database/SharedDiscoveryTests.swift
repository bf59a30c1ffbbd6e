import BareBLE
import BareBLETestKit
import Testing

/// Calls that overlap and need the same discovery: the peer counts what it is asked.
@Suite(.timeLimit(.minutes(10))) struct SharedDiscoveryTests {
    private let central = Central()
    private let options = ConnectOptions(observesServiceChanges: false)

    private func attach(_ latency: Duration = .milliseconds(5)) async throws -> (Peripheral, VirtualPeripheral) {
        let peripheral = VirtualPeripheral(.heartRate, latency: latency)
        return (try await central.attach(to: peripheral, options), peripheral)
    }

    private func attach(in time: VirtualTime) async throws -> (Peripheral, VirtualPeripheral) {
        let peripheral = VirtualPeripheral(.heartRate, latency: .milliseconds(5), time: time)
        return (try await Central(time: time).attach(to: peripheral, options), peripheral)
    }

    @Test func twoFirstCallsDiscoverOnce() async throws {
        let (alone, one) = try await attach()
        let kept = (try await alone.subscribe(to: 0x2A37), try await alone.subscribe(to: 0x2A19))
        let (device, both) = try await attach()
        async let beats = device.subscribe(to: 0x2A37)
        async let level = device.subscribe(to: 0x2A19)
        let keptToo = try await (beats, level)
        #expect(await both.transcript.requests == one.transcript.requests)
        // Releasing a sequence unsubscribes.
        withExtendedLifetime((kept, keptToo)) {}
    }

    @Test func twoFirstCallsForOneServiceDiscoverItOnce() async throws {
        let (device, peripheral) = try await attach()
        async let rate = device.read(.uuid(0x2A38, service: 0x180D))
        async let control: Void = device.write([1], to: .uuid(0x2A39, service: 0x180D))
        _ = try await (rate, control)
        #expect(await peripheral.transcript.requests.dropLast(2) == ["02", "06", "06", "08"])
        #expect(await peripheral.requestCount == 6)
    }

    /// A service that is being discovered is not requested again, and others are.
    @Test func aCallDiscoversOnlyServicesThatNoOtherCallDiscovers() async throws {
        let (device, peripheral) = try await attach()
        async let one = device.discover(services: [0x180F], level: .structure)
        async let two = device.discover(services: [0x180F, 0x180A], level: .structure)
        let (first, second) = try await (one, two)
        #expect(first.services.map(\.uuid) == [0x180F])
        #expect(second.services.map(\.uuid) == [0x180F, 0x180A])
        let searched = await peripheral.transcript.requests.filter { $0 == "06" }
        #expect(searched.count == 4)
    }

    /// A caller that shares a discovery does not share its failure.
    @Test func aSharedDiscoveryThatIsCancelledIsMadeByTheOther() async throws {
        try await VirtualTime.run { time in
            let (device, peripheral) = try await attach(in: time)
            let first = time.task { try await device.discover() }
            while await peripheral.receivedCount < 2 { try await time.clock.sleep(for: .milliseconds(1)) }
            let second = time.task { try await device.discover() }
            let third = time.task { try await device.read(.uuid(0x2A19, service: 0x180F)) }
            first.cancel()
            await #expect(throws: error(.cancelled)) { try await first.value }
            #expect(try await second.value.services.count == 5)
            #expect(try await third.value == [87])
        }
    }

    @Test func aCallThatWaitsForASharedDiscoveryTimesOut() async throws {
        let (device, peripheral) = try await attach()
        await peripheral.stopResponding()
        let first = Task { try await device.discover() }
        while await peripheral.receivedCount < 2, !Task.isCancelled { await Task.yield() }
        await #expect(throws: error(.timedOut)) {
            try await device.discover(timeout: .milliseconds(30))
        }
        let second = Task { try await device.discover() }
        second.cancel()
        await #expect(throws: error(.cancelled)) { try await second.value }
        await device.disconnect()
        await #expect(throws: error(.disconnected)) { try await first.value }
    }

    @Test func aDiscoveryThatGoesLessFarReplacesNothing() async throws {
        let (device, peripheral) = try await attach()
        async let structure = device.discover(level: .structure)
        async let full = device.discover(level: .full)
        _ = try await (structure, full)
        let before = await peripheral.requestCount
        let known = try await device.discover(level: .full)
        #expect(await peripheral.requestCount == before)
        #expect(try await device.discover(level: .full, ignoringCache: true) == known)
    }
}
