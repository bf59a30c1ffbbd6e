import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// Connects by an address whose type is not known.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct AddressAloneTests {
    private let belt = BluetoothAddress(rawValue: 0xC000_0000_0007)
    private let flags: [UInt8] = [2, 1, 6]
    /// No MTU exchange: the far end of a stand-in link says nothing.
    private let options = ConnectOptions(mtu: 23)
    private let setUp: [HCIOpcode] = [
        .leReadLocalFeatures, .readLocalSupportedCommands, .readAddress, .leSetScanEnable, .leSetScanParameters,
        .leSetScanEnable,
    ]

    private func bench(loop: EventLoop? = nil) async throws -> (AdapterBench, Central) {
        let bench = try await AdapterBench(loop: loop)
        await bench.controller.set { [belt] in $0.peers[belt] = 0x40 }
        return (bench, Central(adapter: bench.adapter))
    }

    private func peer(_ type: AddressType) -> PeerID { PeerID(address: belt, type: type) }

    // MARK: Hearing the type

    @Test(arguments: [AddressType.public, .random]) func theTypeIsHeardAndTheConnectFollows(
        _ type: AddressType
    ) async throws {
        let (bench, central) = try await bench()
        let task = testTask { try await central.connect(belt, options) }
        await begun(bench, scans: 1)
        // Of the other type, and not connectable: event type 3.
        let other: AddressType = type == .public ? .random : .public
        await bench.controller.advertise(belt, flags, type: other, eventType: 3)
        await bench.controller.advertise(belt, flags, type: type)
        let device = try await task.value
        #expect(device.id == peer(type))
        #expect(await bench.sent == setUp + [.leSetScanEnable, .leCreateConnection])
        await device.disconnect()
    }

    @Test func theFirstThatIsHeardWins() async throws {
        let (bench, central) = try await bench()
        let task = testTask { try await central.peer(at: belt, timeout: nil) }
        await begun(bench, scans: 1)
        await bench.controller.advertise(belt, flags, type: .public)
        await bench.controller.advertise(belt, flags, type: .random)
        #expect(try await task.value == peer(.public))
    }

    @Test func whatWasHeardLatelyNeedsNoScan() async throws {
        let (bench, central) = try await bench()
        let scan = testTask { try await central.collect(for: nil, count: 2) }
        await begun(bench, scans: 1)
        await bench.controller.advertise(belt, flags, type: .random)
        await bench.controller.advertise(belt, flags, type: .public)
        _ = try await scan.value
        // The one heard last.
        #expect(try await central.peer(at: belt) == peer(.public))
        let device = try await central.connect(belt, options)
        #expect(device.id == peer(.public))
        #expect(await bench.sent == setUp + [.leSetScanEnable, .leCreateConnection])
        await device.disconnect()
    }

    @Test func oneThatIsNotHeardIsReportedWithItsAddress() async throws {
        try await VirtualTime.run { time in
            let (bench, central) = try await bench(loop: time.loop)
            let start = time.now
            await #expect {
                try await central.connect(belt, ConnectOptions(timeout: .seconds(7), mtu: 23))
            } throws: { error in
                guard let error = error as? BLEError else { return false }
                return error.code == .timedOut && error.subject == "\(belt)" && error.origin == .peer
            }
            #expect(time.now - start >= .seconds(7) && time.now - start < .seconds(8))
            #expect(await bench.sent.last == .leSetScanEnable)
        }
    }

    @Test func theScanAndTheConnectShareTheTimeout() async throws {
        try await VirtualTime.run { time in
            let (bench, central) = try await bench(loop: time.loop)
            await bench.controller.set { $0.peers = [:] }
            let start = time.now
            let task = time.task { try await central.connect(belt, ConnectOptions(timeout: .seconds(10), mtu: 23)) }
            await begun(bench, scans: 1)
            try await time.clock.sleep(for: .milliseconds(9500))
            await bench.controller.advertise(belt, flags)
            await #expect(throws: error(.timedOut)) { try await task.value }
            // Half a second is left; the connect has one all the same.
            #expect(time.now - start >= .milliseconds(10_500) && time.now - start < .seconds(12))
            #expect(await bench.sent.contains(.leCreateConnection))
        }
    }

    @Test func cancellingEndsTheScan() async throws {
        let (bench, central) = try await bench()
        let task = testTask { try await central.connect(belt, ConnectOptions(timeout: nil, mtu: 23)) }
        await begun(bench, scans: 1)
        task.cancel()
        await #expect(throws: error(.cancelled)) { try await task.value }
        await begun(bench, scans: 0)
    }

    // MARK: Without a scan

    @Test(
        arguments: [
            // Top bits 11: static random, if it is random. 00: private, if it is random, and few are.
            (0xC000_0000_0007, AddressType.random), (0x001A_7DDA_7113, .public), (0x4000_0000_0007, .public),
        ] as [(UInt64, AddressType)]) func withoutARightToScanTheTypeIsGuessed(_ number: UInt64, _ type: AddressType)
        async throws
    {
        let (bench, central) = try await bench()
        bench.kernel.withLock { $0.capabilities = 0 }
        let address = BluetoothAddress(rawValue: number)
        let identified = Lock<IdentifiedPeer?>(nil)
        let device = try await central.connect(address, options) { found in identified.withLock { $0 = found } }
        let found = identified.withLock { $0 }
        #expect(found?.peer == PeerID(address: address, type: type) && found?.isGuess == true)
        #expect(device.id == found?.peer)
        await device.disconnect()
        // What is to be stored, or tried forever, is not guessed.
        await #expect(throws: error(.notPermitted)) { try await central.peer(at: address) }
        await #expect(throws: error(.notPermitted)) { _ = try await central.session(with: address) }
    }

    @Test func aGuessThatIsNotHeardNamesTheOtherType() async throws {
        let (bench, central) = try await bench()
        // ETIMEDOUT.
        bench.kernel.withLock {
            $0.capabilities = 0
            $0.connectErrors = [Int32](repeating: 110, count: 50)
        }
        await #expect {
            try await central.connect(belt, ConnectOptions(timeout: .milliseconds(50), mtu: 23))
        } throws: { error in
            guard let error = error as? BLEError else { return false }
            return error.code == .timedOut && error.hint?.contains("\(peer(.public))") == true
        }
    }

    @Test func anAddressThatCannotBeHeardIsRefusedAtOnce() async throws {
        let (bench, central) = try await bench()
        await #expect(throws: error(.invalidArgument)) { try await central.connect(BluetoothAddress.zero) }
        await #expect(throws: error(.invalidArgument)) { try await central.connect(StandInController.ownAddress) }
        await #expect(throws: error(.invalidArgument)) { try await central.connect(belt, ConnectOptions(mtu: 5)) }
        // A link of any program.
        bench.kernel.withLock { $0.isLinked = true }
        await #expect(throws: error(.busy)) { try await central.connect(belt) }
        bench.kernel.withLock { $0.isLinked = false }
        let session = try await central.session(with: peer(.random), Session.Options(connect: options))
        await #expect(throws: error(.busy)) { try await central.connect(belt) }
        await session.disconnect()
        #expect(await !bench.sent.contains(.leSetScanParameters))
    }

    // MARK: As people write it

    @Test func textWithATypeNeedsNoScan() async throws {
        let (bench, central) = try await bench()
        let device = try await central.connect("C0:00:00:00:00:07/public", options)
        #expect(device.id == peer(.public))
        await device.disconnect()
        #expect(await !bench.sent.contains(.leSetScanParameters))
        for text in ["", "belt", "C0:00:00:00:00:07/", "C0:00:00:00:00:07/static", "C0:00:00:00:00"] {
            await #expect(throws: error(.invalidArgument)) { try await central.connect(text) }
            await #expect(throws: error(.invalidArgument)) { _ = try await central.session(with: text) }
        }
    }

    @Test func textWithoutATypeIsHeardFirst() async throws {
        let (bench, central) = try await bench()
        let task = testTask { [options] in
            try await central.withConnection("c0:00:00:00:00:07", options) { $0.id?.description }
        }
        await begun(bench, scans: 1)
        await bench.controller.advertise(belt, flags)
        #expect(try await task.value == "C0:00:00:00:00:07/random")
    }

    @Test func aSessionConnectsByTheTypeThatWasHeard() async throws {
        let (bench, central) = try await bench()
        let task = testTask { [options] in
            try await central.session(with: "C0:00:00:00:00:07", Session.Options(connect: options))
        }
        await begun(bench, scans: 1)
        await bench.controller.advertise(belt, flags, type: .public)
        let session = try await task.value
        #expect(session.id == peer(.public))
        #expect(try await session.ready().id == peer(.public))
        await session.disconnect()
    }
}
