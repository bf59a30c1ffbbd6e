import BareBLE
import BareBLETestKit
import Testing

/// Channels of virtual devices, by what users of the test kit have.
@Suite(.timeLimit(.minutes(5)))
struct VirtualChannelTests {
    /// Runs a test with a link to a device that reacts so to channels to the PSM 0x80.
    private func run(
        _ reaction: VirtualChannelReaction?,
        _ body: @Sendable @escaping (VirtualRadio, VirtualPeripheral, Peripheral) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let device = await radio.add(.battery)
            await device.setReaction(toChannels: 0x80, reaction)
            let central = Central(radio: radio)
            let link = try await central.connect(toFirst: .any).peripheral
            try await body(radio, device, link)
            await link.disconnect()
        }
    }

    @Test func packetsGoBothWaysUntilTheDeviceCloses() async throws {
        try await run(.accept) { _, device, link in
            let channel = try await link.openChannel(psm: 0x80)
            let far = try #require(await device.nextChannel())
            #expect(far.psm == 0x80)
            try await channel.send([1, 2])
            #expect(await far.nextPacket() == [1, 2])
            await far.send([3])
            await far.close()
            var packets = channel.packets.makeAsyncIterator()
            #expect(try await packets.next() == [3])
            #expect(try await packets.next() == nil)
            #expect(await !channel.isOpen)
            #expect(await link.isConnected)
        }
    }

    @Test func whatTheProgramHasSentComesBeforeItsEnd() async throws {
        try await run(.accept) { _, device, link in
            let channel = try await link.openChannel(psm: 0x80)
            let long = [UInt8](repeating: 7, count: 8_000)
            try await channel.send(long)
            await channel.close()
            let far = try #require(await device.nextChannel())
            #expect(await far.nextPacket() == long)
            #expect(await far.nextPacket() == nil)
            #expect(await !far.isOpen)
        }
    }

    @Test(
        arguments: [(nil, .refusedByPeer), (.close, .refusedByPeer), (.ignore, .timedOut)]
            as [(VirtualChannelReaction?, BLEError.Code)])
    func aChannelThatTheDeviceDoesNotWantIsNone(reaction: VirtualChannelReaction?, code: BLEError.Code) async throws {
        try await run(reaction) { _, device, link in
            let error = await #expect(throws: BLEError.self) { _ = try await link.openChannel(psm: 0x80) }
            #expect(error?.code == code)
            #expect(await link.isConnected)
            let channel = await device.nextChannel(within: .seconds(1))
            #expect(channel == nil)
        }
    }

    @Test func aChannelEndsWithItsLink() async throws {
        try await run(.accept) { radio, device, link in
            let channel = try await link.openChannel(psm: 0x80)
            let far = try #require(await device.nextChannel())
            await radio.move(device, to: .outOfRange)
            #expect(await far.nextPacket(within: .seconds(60)) == nil)
            #expect(await !far.isOpen)
            var packets = channel.packets.makeAsyncIterator()
            let error = await #expect(throws: BLEError.self) { _ = try await packets.next() }
            #expect(error?.code == .disconnected)
            #expect(await link.disconnected() == .supervisionTimeout)
        }
    }

    @Test func aDeviceThatReadsNothingHoldsTheProgramBack() async throws {
        try await run(.accept) { _, device, link in
            let channel = try await link.openChannel(psm: 0x80)
            let far = try #require(await device.nextChannel())
            await far.pause()
            var code: BLEError.Code?
            for _ in 0..<10_000 where code == nil {
                do throws(BLEError) {
                    try await channel.send([0], timeout: .milliseconds(100))
                } catch {
                    code = error.code
                }
            }
            #expect(code == .timedOut)
            await far.resume()
            #expect(await far.nextPacket() == [0])
            try await channel.send([1])
        }
    }

    /// Runs a test with a local peripheral, and a central that has connected to it.
    private func serve(
        _ body: @Sendable @escaping (VirtualRadio, LocalPeripheral, VirtualCentral) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(.init(name: "Kit"), on: Central(radio: radio))
            let advertising = try await local.advertise([.flags([.generalDiscoverable]), .localName("Kit")])
            let phone = await radio.addCentral()
            try await phone.connect()
            try await body(radio, local, phone)
            await advertising.stop()
            await local.stop()
        }
    }

    @Test func aCentralOpensAChannelToAListener() async throws {
        try await serve { _, local, phone in
            await #expect(throws: VirtualCentralError.channelRefused(psm: 0x80)) {
                _ = try await phone.openChannel(psm: 0x80)
            }
            let listener = try await local.listenForChannels(ChannelListener.Options(maximumChannels: 1))
            var channels = listener.channels.makeAsyncIterator()
            let far = try await phone.openChannel(psm: listener.psm)
            let channel = try #require(try await channels.next()).channel
            #expect(channel.psm == listener.psm)
            await far.send([1])
            var packets = channel.packets.makeAsyncIterator()
            #expect(try await packets.next() == [1])
            try await channel.send([2])
            #expect(await far.nextPacket() == [2])
            // The program closes the one that is too many.
            let second = try await phone.openChannel(psm: listener.psm)
            #expect(await second.nextPacket() == nil)
            #expect(await !second.isOpen)
            #expect(listener.refusedChannels == 1)
            await phone.disconnect()
            #expect(await far.nextPacket() == nil)
            await #expect(throws: VirtualCentralError.notConnected) {
                _ = try await phone.openChannel(psm: listener.psm)
            }
        }
    }

    @Test func aListenerThatDemandsEncryptionRefusesTheOthers() async throws {
        try await serve { radio, local, phone in
            let listener = try await local.listenForChannels(security: .encrypted)
            await #expect(throws: VirtualCentralError.channelRefused(psm: listener.psm)) {
                _ = try await phone.openChannel(psm: listener.psm)
            }
            await radio.encrypt(phone)
            let far = try await phone.openChannel(psm: listener.psm)
            var channels = listener.channels.makeAsyncIterator()
            let channel = try #require(try await channels.next()).channel
            await channel.close()
            #expect(await far.nextPacket() == nil)
            await listener.stop()
            await #expect(throws: VirtualCentralError.channelRefused(psm: listener.psm)) {
                _ = try await phone.openChannel(psm: listener.psm)
            }
        }
    }

    @Test func withoutARadioThereAreNoChannels() async throws {
        let phone = VirtualCentral()
        await #expect(throws: VirtualCentralError.noRadio) { _ = try await phone.openChannel(psm: 0x80) }
    }
}
