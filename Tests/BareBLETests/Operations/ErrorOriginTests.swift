import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// Which side a failure comes from is in the error itself, not in its words.
@Suite(.timeLimit(.minutes(10))) struct ErrorOriginTests {
    private func failure(_ body: () async throws -> Void) async -> BLEError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? BLEError
        }
    }

    @Test func aTimeoutOfASilentPeerNamesThePeer() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await Central().attach(to: peripheral)
        await peripheral.stopResponding()
        let read = await failure { _ = try await device.read(.handle(2), timeout: .milliseconds(20)) }
        #expect(read?.code == .timedOut && read?.origin == .peer)
        #expect(read?.hint?.contains("still up") == true)
        await device.disconnect()
    }

    /// The hint is another one where the link has not been used yet: it is given up.
    @Test func aPeerThatIsSilentFromTheStartMayHaveNoServer() async throws {
        let (near, far) = try LinkSocket.pair()
        let peer = LinkSocket(adopting: far)
        let options = ConnectOptions(timeout: .milliseconds(20))
        let connect = await failure { _ = try await Central().attach(descriptor: near, options) }
        #expect(connect?.code == .timedOut && connect?.origin == .peer)
        #expect(connect?.hint?.contains("may not run an ATT server") == true)
        #expect(connect?.operation == "use the link")
        #expect(connect?.reason == "it came up, but the peer did not respond in time")
        #expect(peer.descriptor == far)
    }

    /// Undefined opcodes with the command flag, which get no response (Core Vol 3 Part F, 3.3).
    @Test func packetsInPlaceOfAResponseAreCountedInTheHint() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(.battery, time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            await peripheral.stopResponding()
            await peripheral.send(raw: [0xFF, 0xFE, 0xFD])
            let read = await failure { _ = try await device.read(.handle(2), timeout: .seconds(5)) }
            #expect(read?.code == .timedOut && read?.origin == .peer)
            #expect(read?.hint?.contains("still up") == true)
            #expect(read?.hint?.contains("the peer has sent 1 packet that is no response") == true)
            await peripheral.send(raw: [0x6A])
            let second = await failure { _ = try await device.read(.handle(2), timeout: .seconds(5)) }
            #expect(second?.hint?.contains("the peer has sent 2 packets that are no responses") == true)
            await device.disconnect()
        }
    }

    @Test func packetsInPlaceOfTheFirstResponseAreCountedInTheHint() async throws {
        try await VirtualTime.run { time in
            let (near, far) = try LinkSocket.pair()
            var peer = LinkSocket(adopting: far)
            let outcome = peer.send([0xFF, 0xFE, 0xFD])
            #expect(outcome == .sent)
            let options = ConnectOptions(timeout: .seconds(5))
            let connect = await failure { _ = try await Central(time: time).attach(descriptor: near, options) }
            #expect(connect?.code == .timedOut && connect?.origin == .peer)
            #expect(connect?.hint?.contains("the peer has sent 1 packet that is no response") == true)
            #expect(peer.descriptor == far)
        }
    }

    @Test func theOriginIsThePeerThatIsNotHeardOrTheSilentAdapter() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0007), type: .random)
            let central = Central(adapter: bench.adapter)
            let options = ConnectOptions(timeout: .seconds(5))
            let notHeard = await failure { _ = try await central.connect(peer, options) }
            #expect(notHeard?.code == .timedOut && notHeard?.origin == .peer)
            await bench.controller.set { $0.ignored = [.leCreateConnection] }
            let silent = await failure { _ = try await central.connect(peer, options) }
            #expect(silent?.code == .timedOut && silent?.origin == .adapter)
        }
    }

    @Test func theOriginOfALostLinkIsThePeerThatHasViolatedTheProtocol() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await Central().attach(to: peripheral, ConnectOptions(mtu: 23))
        // A response that is longer than the MTU.
        await peripheral.behave { _, _ in [(delay: .zero, pdu: [0x0B] + [UInt8](repeating: 0, count: 23))] }
        let violated = await failure { _ = try await device.read(.handle(3)) }
        #expect(violated?.code == .disconnected && violated?.origin == .peer)
        let later = await failure { _ = try await device.read(.handle(3)) }
        #expect(later?.code == .disconnected && later?.origin == .peer)
        let another = VirtualPeripheral(.battery)
        let other = try await Central().attach(to: another)
        await another.disconnect()
        let lost = await failure { _ = try await other.read(.handle(3)) }
        #expect(lost?.code == .disconnected && lost?.origin == nil)
    }

    @Test func aRefusalOfThePeerHasItAsItsOriginAndAnArgumentHasNone() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await Central().attach(to: peripheral)
        let argument = await failure {
            try await device.write([UInt8](repeating: 0, count: 516), to: .handle(2), .withoutResponse)
        }
        #expect(argument?.code == .tooLong && argument?.origin == nil)
        let refused = await failure { try await device.write([0], to: .handle(2)) }
        #expect(refused?.code == .refusedByPeer && refused?.origin == .peer)
        // It says nothing about what kind of failure it is.
        #expect(refused == error(.refusedByPeer))
        await device.disconnect()
    }
}
