import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// Pairing by the system, as a program finds it: an operation that a device refuses for lack of security is repeated
/// after pairing, where the host is configured for it.
@Suite(.timeLimit(.minutes(10))) struct SystemPairingTests {
    private let sealed = CBUUID(string: "FFF1")

    private static func lock(
        _ security: VirtualSecurity = VirtualSecurity(), _ protection: VirtualProtection = .encrypted
    ) -> VirtualDevice {
        var device = VirtualDevice(
            name: "Lock",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(
                            0xFFF1, [.read, .write, .notify], value: [7],
                            plan: NotifyPlan([[8]], every: .seconds(1)), protection: protection)
                    ])
            ])
        device.security = security
        return device
    }

    private func connect(_ bench: Bench) async throws -> (
        CBCentralManager, CallbackRecorder, CBPeripheral, CBCharacteristic
    ) {
        let (manager, recorder) = try await bench.manager()
        let peripheral = try await bench.connect(manager, recorder)
        let value = try #require(try await bench.discover(peripheral, recorder)[sealed])
        return (manager, recorder, peripheral, value)
    }

    @Test func s12ARefusedOperationPairsAndIsRepeated() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let device = await bench.radio.add(Self.lock())
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
            peripheral.setNotifyValue(true, for: value)
            peripheral.writeValue(Data([9]), for: value, type: .withResponse)
            try await recorder.wait(for: "didWriteValueFor FFF1 nil")
            try await recorder.wait(for: "didUpdateValueFor FFF1 [8]")
            #expect(await device.pairingCount == 1)
            // The next link is encrypted with the bond.
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil")
            recorder.clear()
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect")
            let again = try #require(try await bench.discover(peripheral, recorder)[sealed])
            peripheral.readValue(for: again)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [9]")
            #expect(await device.pairingCount == 1)
            #expect(recorder.errors.isEmpty)
        }
    }

    @Test func s12ARefusedChannelPairsAndIsRequestedOnceMore() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let device = await bench.radio.add(Self.lock())
            await device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.openL2CAPChannel(0x80)
            try await recorder.wait(for: "didOpen 128 nil")
            #expect(await device.pairingCount == 1)
            let far = try #require(await device.nextChannel())
            #expect(far.psm == 0x80)
            // The next ones find an encrypted link.
            peripheral.openL2CAPChannel(0x80)
            try await recorder.wait(for: "didOpen 128 nil", count: 2)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
            #expect(await device.pairingCount == 1)
            #expect(recorder.errors.isEmpty)
            _ = manager
        }
    }

    /// Both share one pairing, whichever is refused first.
    @Test func s12AChannelAndAReadShareOnePairing() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let device = await bench.radio.add(Self.lock())
            await device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.openL2CAPChannel(0x80)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didOpen 128 nil")
            try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
            #expect(await device.pairingCount == 1)
            _ = manager
        }
    }

    /// The kernel does not pair, and reports the refusal by the level alone that it wants.
    @Test func s12ARefusedChannelIsReportedWithoutConfiguration() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(Self.lock())
            await device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let (manager, recorder, peripheral, _) = try await connect(bench)
            peripheral.openL2CAPChannel(0x80)
            let begin = bench.time.now
            try await recorder.wait(for: "didOpen 0 ATT 5")
            #expect(bench.time.now - begin < .seconds(3))
            let text = try #require(recorder.errors.first).localizedDescription
            #expect(text.contains("the peer requires a more secure link"), "\(text)")
            #expect(await device.pairingCount == 0)
            #expect(peripheral.state == .connected)
            _ = manager
        }
    }

    /// A device that refuses to pair is not asked again, and the error is that of the channel.
    @Test func s12AChannelWhosePairingFailsIsRefused() async throws {
        let folder = try Folder()
        let asked = Lock(0)
        let settings = Bench.settings(pairingIn: folder) { pairing in
            pairing.enter = { _ in
                asked.withLock { $0 += 1 }
                return nil
            }
        }
        try await Bench.run(settings) { bench in
            let security = VirtualSecurity(capability: .displayOnly, passkey: 12_345)
            let device = await bench.radio.add(Self.lock(security, .authenticated))
            await device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let (manager, recorder, peripheral, _) = try await connect(bench)
            for count in 1...2 {
                peripheral.openL2CAPChannel(0x80)
                try await recorder.wait(for: "didOpen 0 ATT 5", count: count)
            }
            #expect(asked.withLock { $0 } == 1)
            #expect(await device.pairingCount == 0)
            let text = try #require(recorder.errors.last).localizedDescription
            #expect(text.contains("Pairing failed"), "\(text)")
            _ = manager
        }
    }

    /// For its first use with bonds, the adapter is switched off and on.
    @Test func s1AnAdapterWithBondsIsReportedWhenItCanBeUsed() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            #expect(await bench.radio.hasSecurityManager())
            manager.publishL2CAPChannel(withEncryption: true)
            try await recorder.wait(for: "didPublish nil")
            #expect(recorder.lines.count { $0.hasPrefix("state") } == 1)
        }
    }

    @Test func s12WithoutConfigurationTheErrorIsReported() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(Self.lock())
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 ATT 5")
            peripheral.setNotifyValue(true, for: value)
            try await recorder.wait(for: "didUpdateNotificationStateFor FFF1 false ATT 5")
            #expect(await device.pairingCount == 0)
            _ = manager
        }
    }

    /// The device refuses the value on the link too that a pairing has encrypted.
    @Test(.row("T26")) func s12ADeviceThatIsNeverSatisfiedPairsOnce() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let device = await bench.radio.add(Self.lock())
            let (manager, recorder, peripheral, value) = try await connect(bench)
            await device.behave { pdu, respond in
                let responses = pdu.first == 0x0A ? [[0x01, 0x0A, pdu[1], pdu[2], 0x05]] : respond(pdu)
                return withoutDelay(responses)
            }
            for count in 1...2 {
                peripheral.readValue(for: value)
                try await recorder.wait(for: "didUpdateValueFor FFF1 ATT 5", count: count)
            }
            #expect(await device.pairingCount == 1)
            peripheral.writeValue(Data([9]), for: value, type: .withResponse)
            try await recorder.wait(for: "didWriteValueFor FFF1 nil")
            #expect(recorder.lines.count == 3)
            _ = manager
        }
    }

    @Test(arguments: [true, false]) func s12TheHostAsksForThePasskey(_ isRight: Bool) async throws {
        let folder = try Folder()
        let asked = Lock<[UUID]>([])
        let settings = Bench.settings(pairingIn: folder) { pairing in
            pairing.enter = { device in
                asked.withLock { $0.append(device) }
                return isRight ? "012345" : nil
            }
        }
        try await Bench.run(settings) { bench in
            let security = VirtualSecurity(capability: .displayOnly, passkey: 12_345)
            let device = await bench.radio.add(Self.lock(security, .authenticated))
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 \(isRight ? "[7]" : "ATT 5")")
            #expect(asked.withLock { $0 } == [peripheral.identifier])
            #expect(await device.pairingCount == (isRight ? 1 : 0))
            _ = manager
        }
    }

    @Test(arguments: [true, false]) func s12TheHostAsksToCompareNumbers(_ isSame: Bool) async throws {
        let folder = try Folder()
        let numbers = Lock<[String]>([])
        let settings = Bench.settings(pairingIn: folder) { pairing in
            pairing.show = { _, _ in }
            pairing.compare = { _, number in
                numbers.withLock { $0.append(number) }
                return isSame
            }
        }
        try await Bench.run(settings) { bench in
            _ = await bench.radio.add(Self.lock(VirtualSecurity(capability: .displayYesNo), .authenticated))
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 \(isSame ? "[7]" : "ATT 5")")
            #expect(numbers.withLock { $0.map(\.count) } == [6])
            _ = manager
        }
    }

    @Test(arguments: [true, false])
    func s12TheHostAsksWhetherToPairWithNothingToCompare(_ isConfirmed: Bool) async throws {
        let folder = try Folder()
        let asked = Lock<[UUID]>([])
        let settings = Bench.settings(pairingIn: folder) { pairing in
            pairing.confirm = { device in
                asked.withLock { $0.append(device) }
                return isConfirmed
            }
        }
        try await Bench.run(settings) { bench in
            let device = await bench.radio.add(Self.lock())
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 \(isConfirmed ? "[7]" : "ATT 5")")
            #expect(asked.withLock { $0 } == [peripheral.identifier])
            #expect(await device.pairingCount == (isConfirmed ? 1 : 0))
            _ = manager
        }
    }

    @Test func s12TheHostShowsThePasskeyThatIsEnteredAtTheDevice() async throws {
        let folder = try Folder()
        let shown = Lock<[String]>([])
        let devices = Lock<[UUID]>([])
        let settings = Bench.settings(pairingIn: folder) { pairing in
            pairing.show = { device, passkey in
                devices.withLock { $0.append(device) }
                shown.withLock { $0.append(passkey) }
            }
        }
        try await Bench.run(settings) { bench in
            let device = await bench.radio.add(Self.lock(VirtualSecurity(capability: .keyboardOnly), .authenticated))
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
            #expect(devices.withLock { $0 } == [peripheral.identifier])
            #expect(shown.withLock { $0.map(\.count) } == [6])
            #expect(await device.pairingCount == 1)
            _ = manager
        }
    }

    /// The user takes ten seconds to compare the numbers. The kernel of a virtual radio takes packets meanwhile.
    @Test func s12CallsThatAreMadeDuringAPairingWaitForIt() async throws {
        let folder = try Folder()
        let (questions, question) = AsyncStream.makeStream(of: Void.self)
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let settings = Bench.settings(pairingIn: folder) { pairing in
            pairing.show = { _, _ in }
            pairing.compare = { _, _ in
                question.yield()
                for await _ in answers {}
                return true
            }
        }
        try await Bench.run(settings) { bench in
            var lock = Self.lock(VirtualSecurity(capability: .displayYesNo), .authenticated)
            lock.services[0].characteristics += [
                VirtualCharacteristic(0xFFF2, [.read, .write], value: [2]),
                VirtualCharacteristic(0xFFF3, .writeWithoutResponse),
            ]
            let device = await bench.radio.add(lock)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let found = try await bench.discover(peripheral, recorder)
            let value = try #require(found[sealed])
            let other = try #require(found[CBUUID(string: "FFF2")])
            let command = try #require(found[CBUUID(string: "FFF3")])
            peripheral.readValue(for: value)
            for await _ in questions { break }
            peripheral.readValue(for: other)
            peripheral.writeValue(Data([9]), for: other, type: .withResponse)
            peripheral.writeValue(Data([3]), for: command, type: .withoutResponse)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(recorder.lines == [])
            #expect(peripheral.state == .connected)
            answer.finish()
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(
                recorder.lines == [
                    "didUpdateValueFor FFF1 [7]", "didUpdateValueFor FFF2 [2]", "didWriteValueFor FFF2 nil",
                ])
            #expect(try await device.value(0xFFF2) == [9])
            #expect(try await device.value(0xFFF3) == [3])
            #expect(await device.pairingCount == 1)
            _ = manager
        }
    }

    /// The kernel ends the link to a device that does not pair in time: what was called ends with it.
    @Test(.row("S12")) func s12AnOperationWhosePairingIsNotFinishedInTimeEndsTheLink() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            var security = VirtualSecurity()
            security.response = .ignore
            _ = await bench.radio.add(Self.lock(security))
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didDisconnect")
            #expect(recorder.count(of: "didDisconnect CB 15 false") == 1, "\(recorder.lines)")
            #expect(recorder.count(of: "didUpdateValueFor") == 0)
            #expect((recorder.errors.last as? CBError)?.code == .encryptionTimedOut)
            _ = manager
        }
    }

    /// The user looks for the passkey of one device, and the link to another one ends, which waits to be paired.
    @Test(.row("S12")) func s12ALinkThatEndsWhileAnotherDeviceIsPairedIsReportedAtOnce() async throws {
        let folder = try Folder()
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let asked = Lock(0)
        let settings = Bench.settings(pairingIn: folder) { pairing in
            pairing.enter = { _ in
                asked.withLock { $0 += 1 }
                for await _ in answers {}
                return nil
            }
        }
        try await Bench.run(settings) { bench in
            let security = VirtualSecurity(capability: .displayOnly, passkey: 12_345)
            var devices: [VirtualPeripheral] = []
            for _ in 0..<2 { devices.append(await bench.radio.add(Self.lock(security, .authenticated))) }
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            var count = 0
            while recorder.peripherals.count < 2 {
                count += 1
                try await recorder.wait(for: "didDiscover", count: count)
            }
            manager.stopScan()
            recorder.clear()
            let (first, second) = (recorder.peripherals[0], recorder.peripherals[1])
            var values: [CBCharacteristic] = []
            for peripheral in [first, second] {
                peripheral.delegate = recorder
                manager.connect(peripheral)
                try await recorder.wait(for: "didConnect")
                values.append(try #require(try await bench.discover(peripheral, recorder)[sealed]))
            }
            first.readValue(for: values[0])
            try await bench.time.clock.sleep(for: .seconds(2))
            second.readValue(for: values[1])
            try await bench.time.clock.sleep(for: .seconds(2))
            #expect(asked.withLock { $0 } == 1)
            let begin = bench.time.now
            for device in devices {
                let address = try #require(await bench.radio.id(of: device)).address.description.filter { $0 != ":" }
                guard second.identifier.uuidString.hasSuffix(address) else { continue }
                await bench.radio.disconnect(device, because: .localHostTerminated)
            }
            try await recorder.wait(for: "didDisconnect")
            #expect(bench.time.now - begin < .seconds(3))
            #expect(first.state == .connected)
            #expect(second.state == .disconnected)
            #expect(asked.withLock { $0 } == 1)
            answer.finish()
            _ = manager
        }
    }

    @Test(.row("S12")) func s12AConnectionThatIsNotEncryptedInTimeFails() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            _ = await bench.radio.add(Self.lock())
            let (manager, recorder, peripheral, value) = try await connect(bench)
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
            manager.cancelPeripheralConnection(peripheral)
            try await recorder.wait(for: "didDisconnect nil")
            await bench.radio.delayEncryption(by: .seconds(60))
            manager.connect(peripheral)
            try await recorder.wait(for: "didFailToConnect")
            #expect(recorder.count(of: "didFailToConnect CB 15") == 1, "\(recorder.lines)")
            #expect((recorder.errors.last as? CBError)?.code == .encryptionTimedOut)
            await bench.radio.delayEncryption(by: .milliseconds(10))
            recorder.clear()
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect")
        }
    }

    @Test func s14TheServicesOfALostLinkEndWithTheLastAttempt() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let device = await bench.radio.add(Self.lock())
            let (manager, recorder) = try await bench.manager()
            let options = [CBConnectPeripheralOptionEnableAutoReconnect: true]
            let peripheral = try await bench.connect(manager, recorder, options: options)
            let value = try #require(try await bench.discover(peripheral, recorder)[sealed])
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
            recorder.clear()
            // The next link cannot be encrypted, and no later one could.
            await device.forgetBonds()
            await bench.radio.disconnect(device)
            try await recorder.wait(for: "didFailToConnect")
            #expect(recorder.lines == ["didDisconnect CB 7 true 1", "didFailToConnect CB 14"])
            #expect(peripheral.state == .disconnected)
            #expect(peripheral.services == nil)
        }
    }

    /// A side with private addresses and the identity address 11:22:33:44:55:C6.
    private static var withIdentity: VirtualSecurity {
        let identity = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_55C6), type: .public)
        var security = VirtualSecurity()
        security.identity = VirtualIdentity(identity, key: Array(0x20...0x2F))
        return security
    }

    /// Connects a lock with private addresses, which pairs, and disconnects it.
    private func bondOnce(
        _ bench: Bench
    ) async throws -> (VirtualPeripheral, CBCentralManager, CallbackRecorder, CBPeripheral) {
        let device = await bench.radio.add(Self.lock(Self.withIdentity))
        _ = await bench.radio.rotateAddress(of: device)
        let (manager, recorder, peripheral, value) = try await connect(bench)
        peripheral.readValue(for: value)
        try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
        manager.cancelPeripheralConnection(peripheral)
        try await recorder.wait(for: "didDisconnect nil")
        return (device, manager, recorder, peripheral)
    }

    @Test func s12ABondedDeviceKeepsItsIdentifier() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let (device, manager, recorder, _) = try await bondOnce(bench)
            for _ in 0..<2 {
                _ = await bench.radio.rotateAddress(of: device)
                recorder.forget()
                recorder.clear()
                manager.scanForPeripherals(withServices: nil)
                try await recorder.wait(for: "didDiscover")
                manager.stopScan()
                #expect(
                    try recorder.peripheral().identifier.uuidString == "42415245-424C-8000-8045-1122334455C6")
            }
        }
    }

    /// The program has kept an identifier, and does not scan. One from before the bond holds too.
    @Test func s12ABondedDeviceIsConnectedByItsIdentifierAfterARestart() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let (device, _, _, peripheral) = try await bondOnce(bench)
            await bench.time.settle()
            let rest = try Folder(copyOf: folder)
            let ofIdentity = try #require(UUID(uuidString: "42415245-424C-8000-8045-1122334455C6"))
            let identifiers = [peripheral.identifier, ofIdentity]
            #expect(identifiers[0] != identifiers[1])

            try await bench.runAgain(Bench.settings(pairingIn: rest)) { bench in
                let (manager, recorder) = try await bench.manager()
                for identifier in identifiers {
                    _ = await bench.radio.rotateAddress(of: device)
                    let again = try #require(manager.retrievePeripherals(withIdentifiers: [identifier]).first)
                    #expect(again.identifier == identifier)
                    again.delegate = recorder
                    manager.connect(again)
                    try await recorder.wait(for: "didConnect 2")
                    let value = try #require(try await bench.discover(again, recorder)[sealed])
                    again.readValue(for: value)
                    try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
                    manager.cancelPeripheralConnection(again)
                    try await recorder.wait(for: "didDisconnect nil")
                    recorder.clear()
                }
            }
            #expect(await device.pairingCount == 1)
        }
    }

    /// Returns a manager that advertises, and offers a characteristic with the value [3], which demands encryption.
    private func offerSealed(_ bench: Bench) async throws -> (CBPeripheralManager, CallbackRecorder) {
        let recorder = CallbackRecorder(bench.time)
        let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
        try await recorder.wait(for: "state 5")
        let service = CBMutableService(type: CBUUID(string: "FFF0"), primary: true)
        service.characteristics = [
            CBMutableCharacteristic(
                type: sealed, properties: [.read, .notifyEncryptionRequired], value: nil,
                permissions: .readEncryptionRequired)
        ]
        manager.add(service)
        manager.startAdvertising(nil)
        try await recorder.wait(for: "didStartAdvertising nil")
        recorder.react { line in
            guard line.hasPrefix("didReceiveRead"), let request = recorder.requests.last else { return }
            request.value = Data([3])
            manager.respond(to: request, withResult: .success)
        }
        return (manager, recorder)
    }

    @Test(arguments: [true, false]) func s12ACentralPairsForAnEncryptedCharacteristic(_ isAllowed: Bool) async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder) { $0.allowsCentrals = isAllowed }) { bench in
            let (manager, recorder) = try await offerSealed(bench)
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            await bench.time.settle()
            let before = await refusal { () async throws(VirtualCentralError) in _ = try await phone.read(0xFFF1) }
            #expect(before == .insufficientAuthentication)
            #expect(recorder.count(of: "didReceiveRead") == 0)
            await bench.radio.pair(phone)
            try await bench.time.clock.sleep(for: .seconds(1))
            let after = await refusal { () async throws(VirtualCentralError) in
                _ = try await phone.read(0xFFF1)
                try await phone.subscribe(to: 0xFFF1)
            }
            #expect(after == (isAllowed ? nil : .insufficientAuthentication))
            #expect(try await bench.central.bonds().count == (isAllowed ? 1 : 0))
            _ = manager
        }
    }

    /// Without `confirm`, a host that can show something pairs only with centrals that can compare it.
    @Test(arguments: [true, false, nil] as [Bool?])
    func s12TheHostAsksWhetherToPairWithACentralThatHasNothingToCompare(_ isConfirmed: Bool?) async throws {
        let folder = try Folder()
        let asked = Lock<[UUID]>([])
        let settings = Bench.settings(pairingIn: folder) { pairing in
            pairing.allowsCentrals = true
            if let isConfirmed {
                pairing.confirm = { device in
                    asked.withLock { $0.append(device) }
                    return isConfirmed
                }
            } else {
                pairing.show = { _, _ in }
            }
        }
        try await Bench.run(settings) { bench in
            let (manager, recorder) = try await offerSealed(bench)
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            await bench.time.settle()
            await bench.radio.pair(phone)
            try await bench.time.clock.sleep(for: .seconds(1))
            let error = await refusal { () async throws(VirtualCentralError) in _ = try await phone.read(0xFFF1) }
            #expect(error == (isConfirmed == true ? nil : .insufficientAuthentication))
            #expect(asked.withLock { $0.count } == (isConfirmed == nil ? 0 : 1))
            #expect(try await bench.central.bonds().count == (isConfirmed == true ? 1 : 0))
            // It is named by its identifier.
            let confirmed = isConfirmed == true ? asked.withLock { $0 } : []
            #expect(recorder.requests.map(\.central.identifier) == confirmed)
            _ = manager
        }
    }

    /// Its address is another one on each link. The object of the link on which it pairs keeps its identifier.
    @Test func s12ABondedCentralHasOneIdentifierOnEachLink() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder) { $0.allowsCentrals = true }) { bench in
            let security = Self.withIdentity
            let addresses = (1...3).map { Self.privateAddress(of: security, UInt32($0)) }
            let (manager, recorder) = try await offerSealed(bench)
            let phone = await bench.radio.addCentral(as: addresses[0])
            try await phone.connect()
            await bench.time.settle()
            await bench.radio.pair(phone, security)
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(try await phone.read(0xFFF1) == [3])
            for address in addresses.dropFirst() {
                await phone.disconnect()
                await bench.time.settle()
                await bench.radio.changeAddress(of: phone, to: address)
                try await phone.connect()
                await bench.time.settle()
                await bench.radio.encrypt(phone)
                try await bench.time.clock.sleep(for: .seconds(1))
                #expect(try await phone.read(0xFFF1) == [3])
            }
            let identifiers = recorder.requests.map(\.central.identifier.uuidString)
            let address = addresses[0].address.description.filter { $0 != ":" }
            #expect(identifiers.count == 3)
            #expect(identifiers.first?.hasSuffix(address) == true)
            #expect(identifiers.dropFirst().allSatisfy { $0 == "42415245-424C-8000-8045-1122334455C6" })
            _ = manager
        }
    }

    private static func privateAddress(of security: VirtualSecurity, _ number: UInt32) -> PeerID {
        let bytes = security.identity?.key ?? []
        let key = Secret128(bytes.span) ?? .zero
        return PeerID(address: PrivateAddress.address(key, prand: number &* 0x12345), type: .random)
    }

    /// Returns a manager that advertises, and has published a channel which demands encryption; its PSM is 128.
    private func publishEncryptedChannel(_ bench: Bench) async throws -> (CBPeripheralManager, CallbackRecorder) {
        let recorder = CallbackRecorder(bench.time)
        let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
        try await recorder.wait(for: "state 5")
        manager.publishL2CAPChannel(withEncryption: true)
        try await recorder.wait(for: "didPublish nil 128")
        manager.startAdvertising(nil)
        try await recorder.wait(for: "didStartAdvertising nil")
        return (manager, recorder)
    }

    @Test func s12ACentralPairsForAnEncryptedChannel() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder) { $0.allowsCentrals = true }) { bench in
            let (manager, recorder) = try await publishEncryptedChannel(bench)
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            await bench.time.settle()
            await #expect(throws: VirtualCentralError.channelRefused(psm: 128)) {
                _ = try await phone.openChannel(psm: 128)
            }
            #expect(recorder.count(of: "didOpen") == 0)
            await bench.radio.pair(phone)
            try await bench.time.clock.sleep(for: .seconds(1))
            let far = try await phone.openChannel(psm: 128)
            try await recorder.wait(for: "didOpen 128 nil")
            let channel = try #require(recorder.channels.first)
            for stream in [channel.inputStream, channel.outputStream] as [Stream?] { stream?.open() }
            await far.send([7])
            await bench.time.settle()
            var byte: UInt8 = 0
            let read = unsafe channel.inputStream.read(&byte, maxLength: 1)
            #expect(read == 1 && byte == 7)
            byte = 9
            let written = unsafe channel.outputStream.write(&byte, maxLength: 1)
            #expect(written == 1)
            #expect(await far.nextPacket() == [9])
            await phone.disconnect()
            #expect(await far.nextPacket() == nil)
            // The next link is not encrypted by itself.
            try await phone.connect()
            await bench.time.settle()
            await #expect(throws: VirtualCentralError.channelRefused(psm: 128)) {
                _ = try await phone.openChannel(psm: 128)
            }
            await bench.radio.encrypt(phone)
            try await bench.time.clock.sleep(for: .seconds(1))
            _ = try await phone.openChannel(psm: 128)
            try await recorder.wait(for: "didOpen 128 nil", count: 2)
            #expect(try await bench.central.bonds().count == 1)
            _ = manager
        }
    }

    @Test func s12ACentralThatMayNotPairGetsNoEncryptedChannel() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder)) { bench in
            let (manager, recorder) = try await publishEncryptedChannel(bench)
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            await bench.time.settle()
            await bench.radio.pair(phone)
            try await bench.time.clock.sleep(for: .seconds(1))
            await #expect(throws: VirtualCentralError.channelRefused(psm: 128)) {
                _ = try await phone.openChannel(psm: 128)
            }
            await bench.time.settle()
            #expect(recorder.count(of: "didOpen") == 0)
            #expect(try await bench.central.bonds().isEmpty)
            _ = manager
        }
    }

    /// A channel that demands no encryption lets nobody pair.
    @Test func s12CentralsPairWhileAnEncryptedChannelIsPublished() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder) { $0.allowsCentrals = true }) { bench in
            let (manager, recorder) = try await publishEncryptedChannel(bench)
            func mayPair() async -> Bool {
                await bench.time.settle()
                return await bench.radio.isBondable()
            }
            #expect(await mayPair())
            manager.unpublishL2CAPChannel(128)
            try await recorder.wait(for: "didUnpublish nil 128")
            #expect(await !mayPair())
            recorder.clear()
            manager.publishL2CAPChannel(withEncryption: false)
            try await recorder.wait(for: "didPublish nil")
            #expect(await !mayPair())
            manager.publishL2CAPChannel(withEncryption: true)
            try await recorder.wait(for: "didPublish nil", count: 2)
            #expect(await mayPair())
        }
    }

    /// Nobody can pair with a program that neither advertises nor has a central,
    /// or that has nothing that would need it.
    @Test func s12CentralsPairWhileThatIsNeeded() async throws {
        let folder = try Folder()
        try await Bench.run(Bench.settings(pairingIn: folder) { $0.allowsCentrals = true }) { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            func service(_ type: String, _ permissions: CBAttributePermissions) -> CBMutableService {
                let service = CBMutableService(type: CBUUID(string: type), primary: true)
                service.characteristics = [
                    CBMutableCharacteristic(type: sealed, properties: .read, value: nil, permissions: permissions)
                ]
                return service
            }
            func mayPair() async -> Bool {
                await bench.time.settle()
                return await bench.radio.isBondable()
            }
            manager.add(service("FFE0", .readable))
            manager.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising nil")
            #expect(await !mayPair())
            let protected = service("FFF0", .readEncryptionRequired)
            manager.add(protected)
            #expect(await mayPair())
            manager.remove(protected)
            #expect(await !mayPair())
            manager.add(protected)
            manager.stopAdvertising()
            #expect(await !mayPair())
            let phone = await bench.radio.addCentral()
            manager.startAdvertising(nil)
            #expect(await mayPair())
            try await phone.connect()
            // A central that is connected may pair after the program has stopped advertising.
            manager.stopAdvertising()
            #expect(await mayPair())
            manager.remove(protected)
            #expect(await !mayPair())
            await bench.radio.pair(phone)
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(try await bench.central.bonds().isEmpty)
            manager.add(protected)
            #expect(await mayPair())
            await bench.radio.pair(phone)
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(try await bench.central.bonds().count == 1)
            await phone.disconnect()
            #expect(await !mayPair())
        }
    }

    /// Without its bonds a program does not know which links must be encrypted.
    @Test func s12WithoutTheBondsNothingIsConnected() async throws {
        let folder = try Folder()
        let path = folder.path + "/missing/bonds"
        var settings = CoreBluetoothHost.Settings(environment: [:])
        settings.pairing = CoreBluetoothHost.Pairing(directory: path)
        try await Bench.run(settings) { bench in
            let device = await bench.radio.add(Self.lock())
            #expect(bench.log.all.contains { $0.hasPrefix("no device can be connected") && $0.contains(path) })
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            let peripheral = try recorder.peripheral()
            peripheral.delegate = recorder
            manager.connect(peripheral)
            try await recorder.wait(for: "didFailToConnect")
            let error = try #require(recorder.errors.last as? CBError)
            #expect(error.localizedDescription.contains(path))
            #expect(error.localizedDescription.contains("directory does not exist"))
            #expect(await !device.isConnected)
            // Once it can be created, it is used.
            try FileManager.default.createDirectory(
                atPath: folder.path + "/missing", withIntermediateDirectories: false)
            manager.connect(peripheral)
            try await recorder.wait(for: "didConnect 2")
            let value = try #require(try await bench.discover(peripheral, recorder)[sealed])
            peripheral.readValue(for: value)
            try await recorder.wait(for: "didUpdateValueFor FFF1 [7]")
            #expect(await device.pairingCount == 1)
        }
    }

    /// The environment of a program with more rights than its user is that user's.
    @Test func s12TheEnvironmentOfAPrivilegedProgramIsIgnored() async throws {
        let settings = CoreBluetoothHost.Settings(
            environment: [
                "BAREBLE_ADAPTER": "hci1", "BAREBLE_BONDS": "/var/lib/app", "BAREBLE_ALLOW_PAIRING": "1",
                "BAREBLE_STATE": "/var/lib/app", "STATE_DIRECTORY": "/var/lib/a", "HOME": "/",
            ], isPrivileged: true)
        #expect(settings.adapter == nil && settings.pairing == nil && settings.stateDirectory == nil)
        try await Bench.run(settings) { bench in
            let lines = bench.log.all.filter { $0.contains("of the environment are ignored") }
            #expect(lines.count == 1)
            #expect(
                lines.first?.hasPrefix(
                    "BAREBLE_ADAPTER, BAREBLE_ALLOW_PAIRING, BAREBLE_BONDS, BAREBLE_STATE, STATE_DIRECTORY of") == true)
            // The bonds are there, and it is not known which.
            let device = await bench.radio.add(Self.lock())
            let (manager, recorder) = try await bench.manager()
            manager.scanForPeripherals(withServices: nil)
            try await recorder.wait(for: "didDiscover")
            manager.stopScan()
            manager.connect(try recorder.peripheral())
            try await recorder.wait(for: "didFailToConnect")
            #expect(recorder.errors.last?.localizedDescription.contains("BAREBLE_BONDS") == true)
            #expect(await !device.isConnected)
        }
        let withoutBonds = CoreBluetoothHost.Settings(
            environment: ["BAREBLE_ADAPTER": "hci0", "BAREBLE_BONDS": ""], isPrivileged: true)
        try await Bench.run(withoutBonds) { bench in
            _ = await bench.radio.add(Self.lock())
            let (manager, recorder) = try await bench.manager()
            _ = (manager, try await bench.connect(manager, recorder))
        }
        #expect(CoreBluetoothHost.Settings(environment: [:], isPrivileged: true).stateDirectory == nil)
    }

    @Test func s12TheEnvironmentConfiguresPrograms() {
        let settings = CoreBluetoothHost.Settings(environment: [
            "BAREBLE_ADAPTER": "hci1", "BAREBLE_BONDS": "/var/lib/app", "BAREBLE_ALLOW_PAIRING": "1",
            "STATE_DIRECTORY": "/var/lib/a:/var/lib/b",
        ])
        #expect(settings.adapter == "hci1")
        #expect(settings.pairing?.directory == "/var/lib/app")
        #expect(settings.pairing?.allowsCentrals == true)
        #expect(settings.stateDirectory == "/var/lib/a")
        let empty = CoreBluetoothHost.Settings(environment: ["BAREBLE_BONDS": ""])
        #expect(empty.pairing == nil)
        #expect(empty.stateDirectory == nil)
    }
}
