import BLECore
import BLELinux
import Testing

@testable import BareBLE

@Suite(.virtualTime, .timeLimit(.minutes(10))) struct ChannelOpeningTests {
    private let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0007), type: .random)
    private let request = ChannelRequest(psm: 0x80, receiveMTU: 672, timeout: .seconds(5))

    @Test func aChannelIsOpenedBesideALink() async throws {
        let (bench, controls) = try await connected()
        let channel = try await controls.openChannel(request)
        let isConnecting = channel.isConnecting
        #expect(!isConnecting)
        #expect(bench.kernel.withLock { $0.channels } == 1)
        #expect(await controls.isUp())
    }

    @Test func errorNumbersOfTheKernelHaveTheirCodes() async throws {
        let (bench, controls) = try await connected()
        let codes: [(Int32, BLEError.Code)] = [
            (111, .refusedByPeer), (13, .insufficientSecurity), (52, .insufficientSecurity), (104, .disconnected),
            (107, .disconnected), (113, .adapterDown), (95, .notSupported), (22, .invalidArgument), (24, .system),
            (38, .connectFailed),
        ]
        for (errno, code) in codes {
            bench.kernel.withLock { $0.channelErrors = [errno] }
            await fails(code, controls, request, errno: errno)
        }
    }

    @Test func withoutALinkNoneIsMade() async throws {
        let (bench, controls) = try await connected()
        bench.kernel.withLock { $0.isLinked = false }
        await fails(.disconnected, controls, request)
        bench.kernel.withLock { $0.isLinked = true }
        // The handle belongs to another link by now.
        await controls.disconnect()
        await fails(.disconnected, controls, request)
        #expect(bench.kernel.withLock { $0.channels } == 0)
    }

    /// The program has no bonds, and the kernel reports the refusal by nothing else. At the deadline it is known too.
    @Test(arguments: [Duration.seconds(5), .seconds(1)])
    func aRefusalIsKnownByTheLevelThatTheKernelWants(_ timeout: Duration) async throws {
        let (bench, controls) = try await connected()
        bench.kernel.withLock { kernel in
            kernel.holdsChannels = true
            kernel.wantedLevel = .medium
        }
        let begin = bench.clock.now
        let request = ChannelRequest(psm: 0x80, receiveMTU: 672, timeout: timeout)
        await fails(.insufficientSecurity, controls, request, errno: 13)
        #expect(bench.clock.now - begin < .seconds(3))
        await closed(bench)
    }

    /// Another program may reply to the kernel's questions about the pairing.
    @Test func aRefusedChannelHasSomeTimeToOpen() async throws {
        let (bench, opening) = try await openingHeld(request, wanting: .medium)
        try await bench.clock.sleep(for: .seconds(1))
        bench.kernel.withLock { $0.channelEnd?.drain() }
        #expect(try await opening.value == false)
    }

    /// A pairing has more exchanges than the refusal.
    @Test func aRefusedChannelHasMoreTimeOnASlowLink() async throws {
        let slow = ChannelRequest(psm: 0x80, receiveMTU: 672, timeout: .seconds(30))
        let (bench, opening) = try await openingHeld(slow, wanting: .low)
        try await bench.clock.sleep(for: .seconds(1))
        bench.kernel.withLock { $0.wantedLevel = .medium }
        try await bench.clock.sleep(for: .seconds(8))
        bench.kernel.withLock { $0.channelEnd?.drain() }
        #expect(try await opening.value == false)
    }

    /// The kernel disconnects where the peer fails the pairing, which may be before the level was looked at.
    @Test func aRefusalIsKnownAtTheEndOfTheLink() async throws {
        let (bench, opening) = try await openingHeld(request, wanting: .medium)
        bench.kernel.withLock { kernel in
            kernel.isLinked = false
            kernel.channelEnd = nil
        }
        await #expect(throws: error(.insufficientSecurity)) { try await opening.value }
    }

    /// The peer does not respond.
    @Test func theDeadlineEndsTheAttempt() async throws {
        let (bench, controls) = try await connected()
        bench.kernel.withLock { kernel in
            kernel.holdsChannels = true
            kernel.wantedLevel = .low
        }
        do throws(BLEError) {
            _ = try await controls.openChannel(
                ChannelRequest(psm: 0x80, receiveMTU: 672, timeout: .milliseconds(50)))
            Issue.record("nobody responds")
        } catch {
            #expect(error.code == .timedOut)
            #expect(error.requiredSecurity == nil, "it is not known")
            #expect(error.hint?.contains("`Configuration.security`") == true)
        }
        await closed(bench)
    }

    @Test(arguments: [true, false], [true, false])
    func theHintOfTheDeadlineFitsTheLinkAndTheProgram(_ isEncrypted: Bool, _ isConfigured: Bool) {
        let error = BLEError(
            openingChannelTimedOut: 0x80, peer: peer, isEncrypted: isEncrypted, isPairingConfigured: isConfigured)
        #expect(error.code == .timedOut)
        #expect(error.hint?.contains("better key") == isEncrypted)
        #expect(error.hint?.contains("`Configuration.security`") == (!isEncrypted && !isConfigured))
        #expect(error.hint?.contains("more time") == true)
    }

    @Test func cancellationEndsTheAttempt() async throws {
        let (bench, controls) = try await connected()
        bench.kernel.withLock { $0.holdsChannels = true }
        let opening = testTask {
            let socket = try await controls.openChannel(request)
            return socket.descriptor
        }
        await bench.until { bench.kernel.withLock { $0.channelEnd != nil } }
        opening.cancel()
        await #expect(throws: error(.cancelled)) { try await opening.value }
        await closed(bench)
    }

    /// A peer may take its time, and an adapter may go meanwhile.
    @Test func aLateResponseIsAwaited() async throws {
        let (bench, controls) = try await connected()
        bench.kernel.withLock { $0.holdsChannels = true }
        let opening = testTask {
            let socket = try await controls.openChannel(request)
            return socket.isConnecting
        }
        await bench.until { bench.kernel.withLock { $0.channelEnd != nil } }
        bench.kernel.withLock { $0.channelEnd?.drain() }
        #expect(try await opening.value == false)
        bench.kernel.withLock { $0.channelEnd = nil }
        let refused = testTask {
            let socket = try await controls.openChannel(request)
            return socket.isConnecting
        }
        await bench.until { bench.kernel.withLock { $0.channelEnd != nil } }
        // The link ends first, and the channel with it.
        bench.kernel.withLock { $0.isLinked = false }
        bench.kernel.withLock { $0.channelEnd = nil }
        await #expect(throws: error(.disconnected)) { try await refused.value }
    }

    /// Before the connect was seen to succeed.
    @Test func aChannelThatThePeerClosesWhileItOpensIsRefused() async throws {
        let (bench, controls) = try await connected()
        bench.kernel.withLock { $0.holdsChannels = true }
        let opening = testTask {
            let socket = try await controls.openChannel(request)
            return socket.isConnecting
        }
        await bench.until { bench.kernel.withLock { $0.channelEnd != nil } }
        bench.kernel.withLock { $0.channelEnd = nil }
        await #expect(throws: error(.refusedByPeer)) { try await opening.value }
    }

    /// After the connect; but one that has brought a packet is a channel.
    @Test(arguments: [false, true]) func aChannelThatThePeerClosesUnusedIsRefused(_ hasPacket: Bool) async throws {
        let (bench, controls) = try await connected()
        bench.kernel.withLock { $0.channelLastPackets = [hasPacket ? [7] : []] }
        guard hasPacket else { return await fails(.refusedByPeer, controls, request, errno: 104) }
        var channel = try await controls.openChannel(request)
        let packets = [channel.receivePacket(), channel.receivePacket()]
        #expect(packets == [[7], nil])
    }

    private func connected() async throws -> (AdapterBench, LinkControls) {
        let bench = try await AdapterBench()
        await bench.controller.set { $0.peers = [BluetoothAddress(rawValue: 0xC000_0000_0007): 0x40] }
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
        bench.kernel.withLock { $0.isLinked = true }
        return (bench, link.controls)
    }

    /// Opens a channel that the kernel leaves waiting, at a level that it wants for it; the task returns whether the
    /// channel is still being opened.
    private func openingHeld(
        _ request: ChannelRequest, wanting level: SocketSecurity.Level
    ) async throws -> (AdapterBench, Task<Bool, any Error>) {
        let (bench, controls) = try await connected()
        bench.kernel.withLock { kernel in
            kernel.holdsChannels = true
            kernel.wantedLevel = level
        }
        let opening = testTask {
            let socket = try await controls.openChannel(request)
            return socket.isConnecting
        }
        await bench.until { bench.kernel.withLock { $0.channelEnd != nil } }
        return (bench, opening)
    }

    /// Waits until the socket of an attempt has been released.
    private func closed(_ bench: AdapterBench) async {
        await bench.until { bench.kernel.withLock { $0.channelEnd?.isHungUp } != false }
    }

    private func fails(
        _ code: BLEError.Code, _ controls: LinkControls, _ request: ChannelRequest, errno: Int32? = nil
    ) async {
        do throws(BLEError) {
            _ = try await controls.openChannel(request)
            Issue.record("\(code) was expected")
        } catch {
            #expect(error.code == code, "\(error)")
            if let errno { #expect(error.errorNumber == errno) }
            if code == .refusedByPeer { #expect(error.hint?.contains("PSM") == true) }
        }
    }
}
