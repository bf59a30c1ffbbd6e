import BareBLE
import BareBLETestKit
import Glibc
import Provisioning
import Synchronization
import SystemService
import Testing

/// The provisioning, with centrals in virtual time.
@Suite(.timeLimit(.minutes(10))) struct WiFiProvisioningTests {
    private static let good: [UInt8] = [4] + Array("home".utf8) + Array("correct horse".utf8)

    private func run(
        requiring requirement: AccessRequirement = .open, apply: @escaping WiFiProvisioning.Apply,
        _ body: @Sendable @escaping (VirtualTime, ServingBench, Peripheral) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let bench = ServingBench(time)
            let provisioning = try await WiFiProvisioning(
                bench.peripheral, for: .seconds(600), requiring: requirement, clock: time.clock, apply: apply
            ) { bench.lines.write($0) }
            let running = time.task { try await provisioning.run() }
            try await body(time, bench, try await bench.connect().client)
            try await running.value
            #expect(await bench.peripheral.centrals.isEmpty)
            #expect(!bench.lines.all.contains { $0.contains("horse") })
        }
    }

    @Test func credentialsAreAppliedAndTheStatusIsIndicated() async throws {
        let applied = Mutex<WiFiCredentials?>(nil)
        try await run { credentials in
            applied.withLock { $0 = credentials }
            return true
        } _: { time, bench, client in
            #expect(try await client.read(.uuid(WiFiProvisioning.status)) == [0])
            let states = try await client.subscribe(to: .uuid(WiFiProvisioning.status))
            // Longer than a packet of the smallest MTU has room for.
            try await client.write(Self.good, to: .uuid(WiFiProvisioning.credentials))
            var seen: [[UInt8]] = []
            do {
                for try await state in states { seen.append(state.bytes) }
            } catch let error as BLEError {
                #expect(error.code == .disconnected)
            }
            #expect(seen == [[1], [2]], "the last one has come before the link ended")
        }
        #expect(applied.withLock { $0 } == WiFiCredentials(Self.good))
        #expect(applied.withLock { $0?.passphrase } == "correct horse")
    }

    @Test func aFailureLeavesTimeForAnotherTry() async throws {
        let tries = Mutex(0)
        try await run { _ in
            tries.withLock { $0 += 1 }
            if tries.withLock({ $0 }) == 1 { throw WaitTimeout(what: "a network is there", seen: []) }
            return true
        } _: { time, bench, client in
            var states = try await client.subscribe(to: .uuid(WiFiProvisioning.status)).makeAsyncIterator()
            for expected in [[1], [3], [1], [2]] as [[UInt8]] {
                if expected == [1] { try await client.write(Self.good, to: .uuid(WiFiProvisioning.credentials)) }
                #expect(try await states.next()?.bytes == expected)
            }
        }
    }

    @Test func theTimeIsLimited() async throws {
        try await run { _ in
            true
        } _: { time, bench, client in
            let begin = time.now
            _ = await client.disconnected()
            #expect(begin.duration(to: time.now) <= .seconds(600))
            #expect(bench.lines.all == ["the time is over"])
        }
    }

    @Test func credentialsAreTakenOverAnEncryptedLinkAloneAndNeverRead() async throws {
        try await run(requiring: .encrypted) { _ in
            true
        } _: { time, bench, client in
            let refused = await #expect(throws: BLEError.self) {
                try await client.write(Self.good, to: .uuid(WiFiProvisioning.credentials))
            }
            #expect(refused?.code == .insufficientSecurity)
            #expect(refused?.attError == .insufficientAuthentication)
            let unread = await #expect(throws: BLEError.self) {
                _ = try await client.read(.uuid(WiFiProvisioning.credentials))
            }
            #expect(unread?.code == .notSupported || unread?.attError == .readNotPermitted)
        }
    }

    @Test func aCentralPairsAndThenWritesCredentials() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: .inMemory)
            let central = Central(configuration, radio: radio)
            let peripheral = LocalPeripheral(on: central)
            let provisioning = try await WiFiProvisioning(peripheral, for: .seconds(600), clock: time.clock) {
                $0 == WiFiCredentials(Self.good)
            } report: { _ in
            }
            let advertising = try await ServingPlace.adapter.open(
                peripheral, of: central, WiFiProvisioning.advertisement, pairing: .justWorks)
            let running = time.task { try await provisioning.run() }
            let phone = await radio.addCentral()
            try await phone.connect()
            let refused = await #expect(throws: VirtualCentralError.self) {
                try await phone.write(Self.good, to: WiFiProvisioning.credentials)
            }
            if case .refused(_, _, let code) = refused {
                #expect(code == .insufficientAuthentication)
            } else {
                Issue.record("not refused: \(String(describing: refused))")
            }
            // As phones do then.
            await radio.pair(phone)
            try await time.clock.sleep(for: .seconds(1))
            try await phone.write(Self.good, to: WiFiProvisioning.credentials)
            try await running.value
            await advertising?.stop()
        }
    }

    @Test(
        arguments: [
            [], [0], [4], [4] + Array("hom".utf8), [4] + Array("home".utf8) + Array("1234567".utf8),
            [4] + Array("home".utf8) + Array("12345678\n".utf8), [4] + Array("ho\ne".utf8), [2, 0xC3, 0x28],
            [33] + [UInt8](repeating: 0x61, count: 33), [1, 0x61] + [UInt8](repeating: 0x61, count: 64),
        ] as [[UInt8]])
    func malformedCredentialsAreRefused(_ value: [UInt8]) async throws {
        #expect(WiFiCredentials(value) == nil)
        try await run { _ in
            true
        } _: { time, bench, client in
            let error = await #expect(throws: BLEError.self) {
                try await client.write(value, to: .uuid(WiFiProvisioning.credentials))
            }
            #expect(error?.attError == .valueNotAllowed)
        }
    }

    @Test func anOpenNetworkHasNoPassphrase() {
        #expect(WiFiCredentials([4] + Array("home".utf8))?.passphrase == "")
        #expect(WiFiCredentials([1, 0x61] + [UInt8](repeating: 0x61, count: 63))?.passphrase.count == 63)
    }
}

/// Programs of the machine as hooks, in its time.
@Suite(.timeLimit(.minutes(10))) struct HookTests {
    private func script(_ text: String) throws -> (folder: Folder, path: String) {
        let folder = try Folder()
        let path = folder.path + "/hook"
        let file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0o700)
        let bytes = Array("#!/bin/sh\n\(text)\n".utf8)
        #expect(write(file, bytes, bytes.count) == bytes.count)
        close(file)
        return (folder, path)
    }

    @Test(arguments: [("home", 0), ("else", 3)] as [(String, Int32)])
    func aProgramGetsItsLinesAndItsStatusCounts(name: String, status: Int32) async throws {
        let (folder, path) = try script(
            #"read -r name; read -r secret; [ "$name" = home ] && [ "$secret" = "a  b" ] || exit 3"#)
        let hook = Hook(path, clock: Central().clock)
        #expect(try await hook.run([name, "a  b"]) == status)
        _ = folder
    }

    @Test func aProgramThatTakesTooLongIsKilledWithItsChildren() async throws {
        let (folder, path) = try script("sleep 1000 & wait")
        let hook = Hook(path, limit: .milliseconds(200), clock: Central().clock)
        #expect(try await hook.run([]) == 128 + SIGKILL)
        _ = folder
    }

    @Test func aProgramThatIsNotThereIsNamed() async throws {
        let error = await #expect(throws: HookError.self) {
            _ = try await Hook("/nowhere/hook", clock: Central().clock).run([])
        }
        #expect(error?.errorNumber == ENOENT)
        #expect(error.map { "\($0)" }?.contains("/nowhere/hook") == true)
    }
}
