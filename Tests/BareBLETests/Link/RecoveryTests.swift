import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Security errors, and the hook that may do something about them. The exchanges are the `auto` cases of BlueZ's
/// unit/test-gatt.c, and their like for writes and subscriptions.
@Suite(.timeLimit(.minutes(10))) struct RecoveryTests {
    /// Remembers the requests to the hook, and responds.
    private final class Hook: Sendable {
        let requests = Lock<[Configuration.SecurityRequest]>([])
        let answer: Bool

        init(answers answer: Bool) {
            self.answer = answer
        }

        func asked(_ request: Configuration.SecurityRequest) -> Bool {
            requests.withLock { $0.append(request) }
            return answer
        }
    }

    private func central(_ hook: Hook) -> Central {
        var configuration = Configuration()
        configuration.raiseSecurity = { hook.asked($0) }
        return Central(configuration)
    }

    private func attach(_ hook: Hook, _ script: String) async throws -> (Peripheral, ScriptedPeripheral) {
        let peer = ScriptedPeripheral(try Dialogue(script))
        return (try await central(hook).attach(descriptor: peer.connect(), ConnectOptions(mtu: 23)), peer)
    }

    @Test(
        .row("T26"),
        arguments: [
            ("05", SecurityLevel.authentication), ("08", .authorization), ("0c", .longerKey), ("0f", .encryption),
        ])
    func aReadIsRepeatedOnTheSecuredLink(code: String, level: SecurityLevel) async throws {
        let hook = Hook(answers: true)
        let (device, peer) = try await attach(
            hook,
            """
            < 0a 0300
            > 01 0a 0300 \(code)
            < 0a 0300
            > 0b 010203
            """)
        #expect(try await device.read(.handle(3)) == [1, 2, 3])
        let requests = hook.requests.withLock { $0 }
        #expect(requests.map(\.level) == [level])
        #expect(requests.map(\.attribute) == [3])
        #expect(requests.map(\.operation) == ["read 0x0003"])
        #expect(await peer.report.isComplete)
    }

    @Test(.row("T26")) func aSecondRefusalIsTheEndForThisAttribute() async throws {
        let hook = Hook(answers: true)
        let (device, peer) = try await attach(
            hook,
            """
            < 0a 0300
            > 01 0a 0300 05
            < 0a 0300
            > 01 0a 0300 05
            < 0a 0300
            > 01 0a 0300 05
            < 0a 0400
            > 01 0a 0400 05
            < 0a 0400
            > 0b 07
            """)
        for _ in 0..<2 {
            let error = await #expect(throws: BLEError.self) { try await device.read(.handle(3)) }
            #expect(error?.code == .insufficientSecurity)
            #expect(error?.requiredSecurity == .authentication)
            #expect(error?.attributeHandle == 3)
        }
        #expect(hook.requests.withLock { $0.count } == 1)
        #expect(try await device.read(.handle(4)) == [7])
        #expect(hook.requests.withLock { $0.count } == 2)
        #expect(await peer.report.isComplete)
    }

    @Test(.row("T26")) func nothingIsRetriedWhenTheHookRefuses() async throws {
        let hook = Hook(answers: false)
        let (device, peer) = try await attach(hook, "< 0a 0300\n> 01 0a 0300 0f")
        let error = await #expect(throws: BLEError.self) { try await device.read(.handle(3)) }
        #expect(error?.requiredSecurity == .encryption)
        #expect(hook.requests.withLock { $0.count } == 1)
        #expect(await peer.report.isComplete)
    }

    @Test func otherRefusalsAreNoMatterOfSecurity() async throws {
        let hook = Hook(answers: true)
        let (device, peer) = try await attach(hook, "< 0a 0300\n> 01 0a 0300 02")
        let error = await #expect(throws: BLEError.self) { try await device.read(.handle(3)) }
        #expect(error?.code == .refusedByPeer)
        #expect(error?.requiredSecurity == nil)
        #expect(hook.requests.withLock { $0.isEmpty })
        #expect(await peer.report.isComplete)
    }

    /// The peer has carried out nothing of it, so the write begins again from its first piece.
    @Test func aLongWriteIsRepeatedWhole() async throws {
        let (device, peer) = try await attach(
            Hook(answers: true),
            """
            < 16 0700 0000 000102030405060708090a0b0c0d0e0f1011
            > 17 0700 0000 000102030405060708090a0b0c0d0e0f1011
            < 16 0700 1200 121314
            > 01 16 0700 05
            < 18 00
            > 19
            < 16 0700 0000 000102030405060708090a0b0c0d0e0f1011
            > 17 0700 0000 000102030405060708090a0b0c0d0e0f1011
            < 16 0700 1200 121314
            > 17 0700 1200 121314
            < 18 01
            > 19
            """)
        try await device.write(Array(0...0x14), to: .handle(7))
        #expect(await peer.report.isComplete)
    }

    @Test func aSubscriptionIsRepeated() async throws {
        let (device, peer) = try await attach(
            Hook(answers: true),
            """
            < 10 0100 ffff 0028
            > 11 06 0100 0400 0f18
            < 10 0500 ffff 0028
            > 01 10 0500 0a
            < 08 0200 0400 0328
            > 09 07 0200 10 0300 192a
            < 12 0400 0100
            > 01 12 0400 0f
            < 12 0400 0100
            > 1b 0300 57
            > 13
            """)
        let values = try await device.subscribe(to: 0x2A19)
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next()?.bytes == [0x57])
        let report = await peer.report
        #expect(report.isComplete, "\(report)")
    }

    // MARK: While the hook is asked

    /// A hook that returns when the test lets it, and reports when it was called.
    private final class SlowHook: Sendable {
        private let (asked, askedInput) = AsyncStream.makeStream(of: Void.self)
        private let (answers, answersInput) = AsyncStream.makeStream(of: Bool.self)
        let count = Lock(0)

        func ask() async -> Bool {
            count.withLock { $0 += 1 }
            askedInput.yield()
            var iterator = answers.makeAsyncIterator()
            return await iterator.next() ?? false
        }

        func answer(_ answer: Bool) { answersInput.yield(answer) }

        func waitUntilAsked() async {
            var iterator = asked.makeAsyncIterator()
            await iterator.next()
        }
    }

    private func attach(_ hook: SlowHook, _ device: VirtualDevice) async throws -> (Peripheral, VirtualPeripheral) {
        var configuration = Configuration()
        configuration.raiseSecurity = { _ in await hook.ask() }
        let peripheral = VirtualPeripheral(device)
        return (try await Central(configuration).attach(to: peripheral), peripheral)
    }

    private var locked: VirtualDevice {
        VirtualDevice(
            name: "Locked",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(0xFFF1, .read, onRead: .refuse(.insufficientEncryption)),
                        VirtualCharacteristic(0xFFF2, .read, onRead: .refuse(.insufficientEncryption)),
                        VirtualCharacteristic(0xFFF3, .read, value: [3]),
                    ])
            ])
    }

    @Test func callsThatNeedTheSameShareOneQuestion() async throws {
        let hook = SlowHook()
        let (device, peripheral) = try await attach(hook, locked)
        let one = Task { try await device.read(.handle(3)) }
        let two = Task { try await device.read(.handle(5)) }
        await hook.waitUntilAsked()
        while await peripheral.errorCount < 2, !Task.isCancelled { await Task.yield() }
        // Others are served meanwhile; and when this response is here, the second refusal is as well.
        #expect(try await device.read(.handle(7)) == [3])
        hook.answer(true)
        await #expect(throws: BLEError.self) { _ = try await one.value }
        await #expect(throws: BLEError.self) { _ = try await two.value }
        #expect(hook.count.withLock { $0 } == 1)
        #expect(await peripheral.errorCount == 4)
    }

    /// An attribute that the peer refused permanently may be another one by now.
    @Test func aChangeOfTheServicesIsAReasonToAskAgain() async throws {
        let hook = Hook(answers: true)
        var virtual = locked
        virtual.services.append(.genericAttribute)
        let peripheral = VirtualPeripheral(virtual)
        let device = try await central(hook).attach(to: peripheral)
        let handle = try #require(try await device.discover().characteristics(0x2A05).first?.valueHandle)
        for _ in 0..<2 { await #expect(throws: BLEError.self) { try await device.read(.handle(3)) } }
        #expect(hook.requests.withLock { $0.count } == 1)
        await peripheral.send(raw: [0x1D, UInt8(truncatingIfNeeded: handle), 0, 1, 0, 0xFF, 0xFF])
        while await device.statistics.confirmations == 0, !Task.isCancelled { await Task.yield() }
        await #expect(throws: BLEError.self) { try await device.read(.handle(3)) }
        #expect(hook.requests.withLock { $0.count } == 2)
    }

    /// A call that the hook makes fails as it would without one, and not by waiting for itself.
    @Test(.row("C01")) func theHookMayCallThePeripheral() async throws {
        let device = Lock<Peripheral?>(nil)
        let heard = Lock<[BLEError.Code]>([])
        var configuration = Configuration()
        configuration.raiseSecurity = { _ in
            guard let device = device.withLock({ $0 }) else { return false }
            let open = try? await device.read(.handle(7))
            for handle in [3, 5] as [AttributeHandle] {
                do throws(BLEError) {
                    _ = try await device.read(.handle(handle))
                } catch {
                    heard.withLock { $0.append(error.code) }
                }
            }
            return open == [3]
        }
        let peripheral = VirtualPeripheral(locked)
        let link = try await Central(configuration).attach(to: peripheral)
        device.withLock { $0 = link }
        await #expect(throws: error(.insufficientSecurity)) {
            _ = try await link.read(.handle(3))
        }
        #expect(heard.withLock { $0 } == [.insufficientSecurity, .insufficientSecurity])
        // Refused, twice inside the hook, and once more after it.
        #expect(await peripheral.errorCount == 4)
        device.withLock { $0 = nil }
    }

    @Test func aLostLinkEndsTheWait() async throws {
        let hook = SlowHook()
        let (device, peripheral) = try await attach(hook, locked)
        let value = Task { try await device.read(.handle(3)) }
        await hook.waitUntilAsked()
        await peripheral.disconnect()
        await #expect(throws: error(.disconnected)) { _ = try await value.value }
        hook.answer(true)
    }

    @Test func aCancelledTaskEndsTheWait() async throws {
        let hook = SlowHook()
        let (device, _) = try await attach(hook, locked)
        let task = Task { try await device.read(.handle(3)) }
        await hook.waitUntilAsked()
        task.cancel()
        await #expect(throws: error(.cancelled)) { _ = try await task.value }
        #expect(try await device.read(.handle(7)) == [3])
        hook.answer(false)
    }

    @Test func theDeadlineEndsTheWait() async throws {
        let hook = SlowHook()
        let (device, _) = try await attach(hook, locked)
        // Time enough for the peer to refuse on a busy machine; what is left of it is spent on the hook.
        await #expect(throws: error(.insufficientSecurity)) {
            _ = try await device.read(.handle(3), timeout: .seconds(2))
        }
        hook.answer(false)
    }
}
