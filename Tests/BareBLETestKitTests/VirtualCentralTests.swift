import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// A central of the test kit, on a radio and over descriptors.
@Suite(.timeLimit(.minutes(5)))
struct VirtualCentralTests {
    private static let service = LocalService(
        0xFFF0,
        [
            LocalCharacteristic(0xFFF1, [.read, .write, .notify], value: .stored([1])),
            LocalCharacteristic(0xFFF2, [.read, .indicate], value: .stored([])),
            LocalCharacteristic(
                "6E400001-B5A3-F393-E0A9-E50E24DCCA9E", .read, value: .fixed([7, 7]),
                descriptors: [.description("x")]),
        ])

    /// Runs a test with a local peripheral that is advertised on an adapter.
    private func run(
        isExtended: Bool = true,
        _ body: @Sendable @escaping (VirtualTime, VirtualRadio, LocalPeripheral) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var configuration = Configuration()
            configuration.adapter = .named(await radio.addAdapter(isExtended: isExtended))
            let local = LocalPeripheral(.init(name: "Kit"), on: Central(configuration, radio: radio))
            try await local.publish(Self.service)
            let advertising = try await local.advertise([.flags([.generalDiscoverable]), .localName("Kit")])
            try await body(time, radio, local)
            await advertising.stop()
            await local.stop()
        }
    }

    @Test(arguments: [true, false])
    func anAdvertisedServerIsHeardConnectedToAndUsed(isExtended: Bool) async throws {
        try await run(isExtended: isExtended) { time, radio, local in
            let phone = await radio.addCentral()
            let start = time.now
            let heard = try await phone.connect()
            #expect(heard.adapter == "hci1" && heard.isConnectable && !heard.isExtended)
            #expect(heard.data.localName?.text == "Kit")
            #expect(time.now - start <= heard.interval)
            #expect(try await phone.exchangeMTU(100) == 100)
            let found = try await phone.discover()
            #expect(found.map(\.uuid) == [0x1800, 0x1801, 0xFFF0])
            let service = try #require(found.last)
            let published = await local.publishedServices[0].characteristics
            #expect(service.characteristics.map(\.value) == published.map(\.id))
            #expect(service.characteristics[0].properties == [.read, .write, .notify])
            #expect(service.characteristics.map { $0.descriptors.map(\.uuid) } == [[0x2902], [0x2902], [0x2901]])
            #expect(try await phone.read("6E400001-B5A3-F393-E0A9-E50E24DCCA9E") == [7, 7])
            let long = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
            try await phone.write(long, to: 0xFFF1)
            #expect(try await local.value(of: 0xFFF1) == long)
            #expect(try await phone.read(0xFFF1) == long)
            try await phone.subscribe(to: 0xFFF1)
            try await phone.subscribe(to: 0xFFF2, isIndicated: true)
            try await local.update([5], of: 0xFFF1)
            let confirmed = try await local.update([6], of: 0xFFF2)
            #expect(confirmed.outcomes.values.map { $0 } == [.confirmed])
            #expect(try await phone.nextValue().bytes == [5])
            let indicated = try await phone.nextValue()
            #expect(indicated.bytes == [6] && indicated.isIndication)
            let central = try #require(await local.centrals.first)
            #expect(await central.peer == phone.peer)
            await phone.disconnect()
            #expect(await phone.disconnected() == .localHostTerminated)
            try await time.clock.sleep(for: .seconds(1))
            #expect(await local.centrals.isEmpty)
        }
    }

    @Test func theAdvertisementsOfAnAdapterAreSeen() async throws {
        try await run { time, radio, local in
            let beacon = try await local.advertise(
                Advertisement([.localName("B")], kind: .nonconnectable, usesExtendedPDUs: true))
            let sets = await radio.advertisements(of: "hci1")
            #expect(sets.map(\.isConnectable) == [true, false] && sets.map(\.isExtended) == [false, true])
            #expect(await radio.advertisements(of: "hci0").isEmpty)
            let phone = await radio.addCentral()
            let heard = try await phone.hear { !$0.isConnectable }
            #expect(heard.data.localName?.text == "B" && heard.scanResponse == nil)
            #expect(await radio.advertisements(of: "hci1").count == 2, "hearing changes nothing")
            await beacon.stop()
            #expect(await radio.advertisements(of: "hci1").map(\.set) == [sets[0].set])
            await #expect(throws: VirtualCentralError.notHeard) { try await phone.hear { !$0.isConnectable } }
            await radio.powerOff("hci1")
            #expect(await radio.advertisements(of: "hci1").isEmpty)
        }
    }

    @Test func anAdvertisementIsOffAirWhileACentralConnectsAndComesBack() async throws {
        try await run { time, radio, local in
            let (first, second) = (await radio.addCentral(), await radio.addCentral())
            try await first.connect()
            try await second.connect()
            await time.settle()
            #expect(await local.centrals.count == 2)
            await first.disconnect()
            await second.disconnect()
        }
    }

    @Test func ofTwoCentralsOneIsFaster() async throws {
        try await run { time, radio, local in
            let (first, second) = (await radio.addCentral(), await radio.addCentral())
            async let one = first.connect()
            async let other = second.connect()
            let heard = try await (one, other)
            #expect(heard.0.set == heard.1.set)
            await time.settle()
            #expect(await local.centrals.count == 2)
        }
    }

    @Test func theKernelsConnectTakesAllAdvertisementsOffAir() async throws {
        try await run { time, radio, local in
            // Another program without the right to send commands connects by the kernel.
            await radio.setPermissions([])
            var configuration = Configuration()
            configuration.adapter = .named("hci1")
            let kernels = Central(configuration, radio: radio)
            let absent = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random)
            let attempt = time.task { try await kernels.connect(absent, ConnectOptions(timeout: .seconds(2))) }
            await time.settle()
            #expect(await radio.advertisements(of: "hci1").isEmpty)
            await radio.setPermissions([.commands, .administration])
            try await time.clock.sleep(for: .seconds(5))
            #expect(await radio.advertisements(of: "hci1").count == 1, "the library enables it again")
            _ = await attempt.result
        }
    }

    @Test func aLinkThatNoProgramAcceptsEnds() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let local = LocalPeripheral(on: central)
            let advertising = try await local.advertise([.localName("A")])
            let phone = await radio.addCentral()
            // The program no longer listens, and the advertisement stays.
            let nobody = ServiceEnvironment(variables: ["NOTIFY_SOCKET": "/nobody"], processID: 1)
            _ = await local.suspend(handingOverTo: DescriptorStore(try #require(ServiceNotifier(nobody))))
            try await phone.connect()
            await #expect(throws: VirtualCentralError.disconnected(.remoteUserTerminated)) {
                try await phone.request([0x0A, 3, 0])
            }
            #expect(time.now < .zero + .seconds(6))
            await advertising.stop()
        }
    }

    @Test func aCentralOutOfRangeIsLostAfterTheSupervisionTimeout() async throws {
        try await run { time, radio, local in
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            var events = local.events.makeAsyncIterator()
            let start = time.now
            await radio.move(phone, to: .outOfRange)
            guard case .disconnected(_, let reason)? = try await events.next() else {
                Issue.record("not disconnected")
                return
            }
            #expect(reason == .supervisionTimeout && time.now - start <= .seconds(5))
            #expect(await phone.disconnected() == .connectionTimeout)
            await #expect(throws: VirtualCentralError.notHeard) { try await phone.connect() }
        }
    }

    @Test func aCentralThatContinuesOutOfRangeIsStillOutOfRange() async throws {
        try await run { time, radio, local in
            let phone = await radio.addCentral()
            try await phone.connect()
            let handle = try await phone.characteristic(0xFFF1).value
            await phone.pause()
            await radio.move(phone, to: .outOfRange)
            await phone.resume()
            let count = await phone.receivedCount
            // ATT_READ_REQ
            await phone.send(raw: [0x0A, UInt8(handle & 0xFF), UInt8(handle >> 8)])
            await time.settle()
            #expect(await phone.receivedCount == count)
            await radio.move(phone, to: .near)
            await time.settle()
            #expect(await phone.receivedCount == count + 1)
        }
    }

    @Test func theServerDisconnectsAtOnce() async throws {
        try await run { time, radio, local in
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            let start = time.now
            let id = try #require(await local.centrals.first?.id)
            await local.disconnect(id)
            #expect(await phone.disconnected() == .remoteUserTerminated)
            #expect(time.now - start < .seconds(1))
        }
    }

    @Test func anEncryptedValueIsReadOnceTheLinkIsEncrypted() async throws {
        try await run { time, radio, local in
            try await local.publish(
                LocalService(
                    0xFFE0,
                    [
                        LocalCharacteristic(
                            0xFFE1, .read, value: .fixed([9]),
                            access: AttributeAccess(read: .encrypted, write: .encrypted))
                    ]))
            let phone = await radio.addCentral()
            try await phone.connect()
            let error = await #expect(throws: VirtualCentralError.self) { try await phone.read(0xFFE1) }
            guard case .refused(opcode: 0x0A, _, .insufficientAuthentication)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            await radio.encrypt(phone)
            // The event comes before the kernel's socket knows of it, and the library waits for that.
            try await time.clock.sleep(for: .milliseconds(100))
            #expect(try await phone.read(0xFFE1) == [9])
            await radio.encrypt(phone, .none)
            try await time.clock.sleep(for: .milliseconds(100))
            await #expect(throws: VirtualCentralError.self) { try await phone.read(0xFFE1) }
        }
    }

    @Test func bothRolesShareAnAdapter() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let central = Central(radio: radio)
            let local = LocalPeripheral(on: central)
            try await local.publish(Self.service)
            let advertising = try await local.advertise([.localName("A")])
            let phone = await radio.addCentral()
            try await phone.connect()
            // The socket of this link comes from the listening socket, because the program listens.
            let device = try await central.connect(toFirst: .services(0x180D)).peripheral
            #expect(try await device.read(0x2A38) == [1])
            #expect(try await phone.read(0xFFF1) == [1])
            #expect(await local.centrals.map(\.peer).contains(phone.peer))
            #expect(await belt.isConnected)
            await device.disconnect()
            await advertising.stop()
            await local.stop()
        }
    }

    @Test func overADescriptorItNeedsNoRadio() async throws {
        try await VirtualTime.run { time in
            let local = LocalPeripheral(on: Central(time: time))
            try await local.publish(Self.service)
            let phone = VirtualCentral(time: time)
            try await local.attach(descriptor: phone.open())
            #expect(try await phone.read(0xFFF1) == [1])
            await #expect(throws: VirtualCentralError.connectedAlready) { try await phone.open() }
            await #expect(throws: VirtualCentralError.noRadio) { try await phone.hear() }
            await #expect(throws: VirtualCentralError.noSuchAttribute(0x2A77)) { try await phone.read(0x2A77) }
            await phone.disconnect()
            await #expect(throws: VirtualCentralError.notConnected) { try await phone.read(at: 3) }
            // The transcript is from the server's point of view.
            #expect(await phone.transcript.steps.first?.event == .received([0x10, 1, 0, 0xFF, 0xFF, 0x00, 0x28]))
            await local.stop()
        }
    }

    @Test func aLateResponseIsNotThatOfTheNextRequest() async throws {
        try await run { time, radio, local in
            let phone = await radio.addCentral()
            try await phone.connect()
            try await phone.discover()
            let handle = try await phone.characteristic(0xFFF1).value
            // ATT_READ_REQ
            let request = [0x0A, UInt8(handle & 0xFF), UInt8(handle >> 8)]
            await phone.pause()
            await #expect(throws: VirtualCentralError.timedOut) {
                try await phone.request(request, within: .seconds(1))
            }
            await #expect(throws: VirtualCentralError.requestPending) { try await phone.read(0xFFF2) }
            await phone.resume()
            try await time.clock.sleep(for: .seconds(1))
            #expect(try await phone.read(0xFFF2) == [])
            #expect(await phone.unexpectedResponseCount == 0)
            await phone.disconnect()
        }
    }

    @Test func callsEndWithTheirTimeLimitTheirTaskAndTheLink() async throws {
        try await VirtualTime.run { time in
            let phone = VirtualCentral(time: time)
            var descriptor = try await phone.open()
            let start = time.now
            await #expect(throws: VirtualCentralError.timedOut) { try await phone.request([0x0A, 3, 0]) }
            #expect(time.now - start == .seconds(30))
            await #expect(throws: VirtualCentralError.timedOut) { try await phone.nextValue(within: .seconds(1)) }
            _ = LinkSocket(adopting: descriptor)
            _ = await phone.disconnected()
            descriptor = try await phone.open()
            let cancelled = time.task { try await phone.request([0x0A, 3, 0]) }
            await time.settle()
            await #expect(throws: VirtualCentralError.requestPending) { try await phone.request([0x0A, 3, 0]) }
            cancelled.cancel()
            await #expect(throws: VirtualCentralError.cancelled) { _ = try await cancelled.value }
            let waiting = time.task { try await phone.nextValue() }
            await time.settle()
            _ = LinkSocket(adopting: descriptor)
            await #expect(throws: VirtualCentralError.disconnected(.remoteUserTerminated)) {
                _ = try await waiting.value
            }
        }
    }
}
