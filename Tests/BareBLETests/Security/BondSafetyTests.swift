import BLECore
import BLELinux
import BareBLECrypto
import Foundation
import TestSupport
import Testing

@testable import BareBLE
@testable import BareBLETestKit

/// What must not become of a bond: an unencrypted link, a weaker key, another peer's name, or nothing.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct BondSafetyTests {
    @Test func bondsThatCannotBeReadMakeNoLink() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let store = try BondStore(directory: folder.path)
            let bench = try await SecurityBench(time, bonds: store)
            try await bench.pair()
            let address = try #require(await bench.central.adapterAddress)
            let requests = await bench.device.requestCount
            // The first central has them for as long as it lives.
            let second = SecurityBench.central(bench.radio, store)
            await #expect(throws: error(.busy)) { _ = try await second.connect(bench.id) }
            await #expect(throws: error(.busy)) { _ = try await second.connect(bench.id) }
            #expect(await bench.device.requestCount == requests)
            #expect(await bench.device.isConnected == false)
            let name = "\(address)".filter { $0 != ":" }
            #expect(folder.names == [name + ".bonds", name + ".lock"])
        }
    }

    /// The kernel would skip its key without a report, and the link would not be encrypted.
    @Test(.row("S07"), arguments: [[.commands, .administration], .commands] as [VirtualPermissions])
    func aBondThatTheKernelIsNotGivenIsNamedWithItsReason(_ permissions: VirtualPermissions) async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await SecurityBench(time)
            var key = RecordedBonds.key(RecordedKeys.legacyCentral, of: bench.id)
            key.key = .zero
            let record = BondRecord(
                identity: bench.id, keys: [key], level: .authenticated, method: .passkeyTyped,
                bondedAt: 1_790_000_000)
            let twins = (1...2).map { number in
                var twin = RecordedBonds.numbered(number)
                twin.identityKey = RecordedBonds.first.identityKey
                return twin
            }
            let file = BondFile(generation: 1, records: [record] + twins)
            let name = "\(VirtualRadio.address(of: 0))".filter { $0 != ":" } + ".bonds"
            try StoredFile.replace(folder.path + "/" + name, with: file.bytes)
            await bench.radio.setPermissions(permissions)
            let log = KeptLog(detail: "reason")
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: try BondStore(directory: folder.path))
            configuration.addressHash = { $0.hash }
            configuration.logger = log.logger
            let central = Central(configuration, radio: bench.radio)
            for _ in 0..<2 {
                do throws(BLEError) {
                    _ = try await central.connect(bench.id)
                    Issue.record("connected")
                } catch {
                    #expect(error.code == .notBonded)
                    #expect(error.reason == "its bond cannot be used: the key is zero")
                    #expect(error.hint == "Forget the bond and pair again.")
                }
            }
            let shared =
                "the kernel does not recognize the private addresses of a bonded peer: "
                + "another bond has the same key of private addresses"
            let lines = log.all.filter { $0.contains("bond") }
            #expect(lines == ["a bond cannot be used: connects to its peer fail: the key is zero", shared, shared])
            #expect(await bench.device.isConnected == false)
        }
    }

    @Test func tasksThatNeedTheBondsAtOnceOpenThemOnce() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await Self.bonded(time, folder)
            let other = await bench.radio.add(SecurityBench.described(VirtualSecurity()))
            let otherID = try #require(await bench.radio.id(of: other))
            let central = SecurityBench.central(bench.radio, try BondStore(directory: folder.path))
            async let first = central.connect(bench.id)
            async let second = central.connect(otherID)
            async let bonds = central.bonds()
            let (bonded, unbonded) = try await (first, second)
            #expect(try await bonds.map(\.peer) == [bench.id])
            #expect(await bonded.security.isEncrypted)
            #expect(await !unbonded.security.isEncrypted)
            try await unbonded.pair()
            #expect(try await central.bonds().count == 2)
            await bonded.disconnect()
            await unbonded.disconnect()
        }
    }

    /// A radio whose device is bonded, by a central that is gone.
    /// Writes a file of the first adapter's bonds that has none in it, or one that was moved aside; returns the path of
    /// the bonds.
    @discardableResult private static func damageBonds(
        in folder: Folder, suffix: String = "", _ text: String = "no bonds"
    ) throws -> String {
        let name = "\(VirtualRadio.address(of: 0))".filter { $0 != ":" } + ".bonds"
        let path = "\(folder.path)/\(name)"
        try #require(
            FileManager.default.createFile(
                atPath: path + suffix, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]))
        return path
    }

    private static func bonded(_ time: VirtualTime, _ folder: Folder) async throws -> SecurityBench {
        let bench = try await SecurityBench(time, bonds: .inMemory)
        let store = try BondStore(directory: folder.path)
        let adapter = try await pair(bench, store)
        // Jobs that are still under way keep it for a moment.
        while code({ () throws(BLEError) in _ = try store.open(adapter: adapter) }) == .busy {
            try await time.clock.sleep(for: .milliseconds(10))
        }
        return bench
    }

    private static func pair(_ bench: SecurityBench, _ store: BondStore) async throws -> BluetoothAddress {
        let central = SecurityBench.central(bench.radio, store)
        let peripheral = try await central.connect(bench.id)
        try await peripheral.pair()
        await peripheral.disconnect()
        return try #require(await central.adapterAddress)
    }

    @Test func aBondThatIsWeakerThanRequiredIsNoSuccess() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let strict = PairingOptions(require: .authenticated)
            let peripheral = try await bench.central.connect(bench.id)
            await #expect(throws: error(.pairingFailed)) { try await peripheral.pair(strict) }
            #expect(try await peripheral.read(0xFFF1) == [7], "the link stays")
            await peripheral.disconnect()
            let requests = await bench.device.requestCount
            await #expect(throws: error(.pairingFailed)) {
                _ = try await bench.central.connect(bench.id, ConnectOptions(security: .pairing(strict)))
            }
            #expect(await bench.device.requestCount == requests)
            #expect(try await bench.central.bonds().count == 1)
        }
    }

    /// A bond belongs to the address of one adapter, so the error names the one whose bonds were searched.
    @Test func aMissingBondIsReportedWithTheAdapter() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let second = await bench.radio.addAdapter()
            let other = SecurityBench.central(bench.radio, bench.bonds, change: { $0.adapter = .named(second) })
            let refused = await #expect(throws: BLEError.self) {
                _ = try await other.connect(bench.id, ConnectOptions(security: .bonded))
            }
            let address = try #require(await other.adapterAddress)
            #expect(refused?.code == .notBonded && address != VirtualRadio.address(of: 0))
            #expect(refused?.reason == "\(second) (\(address)) has no bond with it")
            #expect(refused?.hint?.contains("blescan bonds") == true)
            #expect(refused?.hint?.contains("address of one adapter") == true)
            let link = try await other.connect(bench.id)
            let error = await link.securityError(.bonded, during: "adopt a link")
            #expect(error?.code == .notBonded && error?.reason == refused?.reason && error?.hint == refused?.hint)
            await link.disconnect()
        }
    }

    @Test func withoutAStoreNoBondsAreSearched() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let central = Central(radio: bench.radio)
            let refused = await #expect(throws: BLEError.self) {
                _ = try await central.connect(bench.id, ConnectOptions(security: .bonded))
            }
            #expect(refused?.code == .notBonded && refused?.hint?.contains("Configuration.security") == true)
        }
    }

    @Test func aBondIsNoEncryption() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let link = try await bench.central.connect(bench.id, ConnectOptions(security: .none))
            await #expect(throws: error(.pairingFailed)) { try await link.pair() }
            #expect(await link.securityError(.asBonded, during: "adopt a link")?.code == .notBonded)
            await #expect(throws: error(.notBonded)) { _ = try await bench.central.session(adopting: link) }
            #expect(await link.isConnected)
            await link.disconnect()
        }
    }

    /// It may be a bonded device that has connected. It is served all the same.
    @Test(.row("S01")) func whereBondsCannotBeReadTheLinkOfACentralIsNotTaken() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let name = "\(VirtualRadio.address(of: 0))".filter { $0 != ":" } + ".bonds"
            let isWritten = FileManager.default.createFile(
                atPath: "\(folder.path)/\(name)", contents: Data(), attributes: [.posixPermissions: 0o644])
            #expect(isWritten)
            let radio = VirtualRadio(time: time)
            let central = SecurityBench.central(radio, try BondStore(directory: folder.path))
            let local = LocalPeripheral(on: central)
            try await local.publish(LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, .read, value: .fixed([1]))]))
            let advertising = try await local.advertise([.localName("Safe")])
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            let peer = try #require(await phone.peer)
            await #expect(throws: error(.notPermitted)) { _ = try await central.connect(peer) }
            #expect(await phone.isConnected)
            let link = try await central.connect(peer, ConnectOptions(security: .none))
            #expect(await link.isConnected)
            await phone.disconnect()
            await advertising.stop()
            await local.stop()
        }
    }

    /// An unencrypted link that was permitted once is not taken by a call that does not permit it.
    @Test(.row("S01")) func aLinkToAPrivateAddressThatCannotBeResolvedIsNotTaken() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            let address = try #require(await bench.radio.rotateAddress(of: bench.device))
            let central = SecurityBench.central(bench.radio, bench.bonds, change: { $0.addressHash = nil })
            let link = try await central.connect(address, ConnectOptions(security: .none))
            await #expect(throws: error(.notSupported)) { _ = try await central.session(adopting: link) }
            let operation = "adopt a link"
            #expect(await link.takingError(.none, during: operation) == nil)
            #expect(await link.takingError(.bonded, during: operation)?.code == .notBonded)
            let refused = await link.takingError(.asBonded, during: operation)
            #expect(refused?.code == .notSupported && refused?.operation == operation)
            #expect(await link.isConnected)

            let detached = try await link.detach()
            let list = bench.radio.system
            let handle = list.linkHandle(0, SecurityBench.identity.address) ?? list.linkHandle(0, address.address)
            #expect(handle != nil)
            let controls = try #require(
                await central.adapter.controls(adopting: handle, from: VirtualRadio.address(of: 0), to: address))
            // As `adopt` does, which needs a socket of the kernel.
            let peripheral = Peripheral(
                socket: LinkSocket(adopting: try #require(detached.release())), id: address, name: "\(address)",
                mtu: 517, loop: bench.radio.loop, configuration: Configuration(), warnings: central.warnings,
                policy: CachePolicy(ConnectOptions()), controls: controls)
            await #expect(throws: error(.notSupported)) {
                try await peripheral.resume(detached.state, holding: SubscribeOptions())
            }
            await time.settle()
            #expect(await bench.device.isConnected == false)
        }
    }

    @Test(.row("S09")) func aPeerThatClaimsTheIdentityOfAnotherBondLosesItsLink() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            var security = VirtualSecurity()
            security.identity = VirtualIdentity(bench.id, key: Array(0x30...0x3F))
            let thief = await bench.radio.add(SecurityBench.described(security))
            await bench.radio.rotateAddress(of: thief)
            let thiefID = try #require(await bench.radio.id(of: thief))
            let link = try await bench.central.connect(thiefID)
            await #expect(throws: error(.pairingFailed)) { try await link.pair(PairingOptions(replacing: .always)) }
            _ = await link.disconnected()
            #expect(await thief.isConnected == false)
            let requests = await thief.requestCount
            let bonded = try await bench.central.connect(bench.id)
            #expect(try await bonded.read(0xFFF1) == [7])
            #expect(await bonded.security.isEncrypted)
            #expect(await thief.requestCount == requests)
            #expect(try await bench.central.bonds().map(\.peer) == [bench.id])
            await bonded.disconnect()
        }
    }

    @Test func twoPairingsOfOnePeerAreOne() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let link = try await bench.central.connect(bench.id)
            async let first = link.pair()
            async let second = link.pair()
            let (one, other) = try await (first, second)
            #expect(one == other)
            #expect(await bench.device.pairingCount == 1)
            await link.disconnect()
        }
    }

    @Test func pairingsAtTheSameTimeEachHaveTheirAgent() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, VirtualSecurity(capability: .displayOnly, passkey: 1))
            var links: [(Peripheral, UInt32)] = [(try await bench.central.connect(bench.id), 1)]
            for passkey in UInt32(2)...3 {
                let device = await bench.radio.add(
                    SecurityBench.described(VirtualSecurity(capability: .displayOnly, passkey: passkey)))
                let id = try #require(await bench.radio.id(of: device))
                links.append((try await bench.central.connect(id), passkey))
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (link, number) in links {
                    group.addTask {
                        let passkey = try #require(Passkey(Int(number)))
                        let agent = PairingAgent(enter: { peer in peer == link.id ? passkey : nil })
                        let bond = try await link.pair(PairingOptions(agent: agent, require: .authenticated))
                        #expect(bond.peer == link.id && bond.isAuthenticated)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await bench.central.bonds().count == 3)
            for (link, _) in links { await link.disconnect() }
        }
    }

    @Test func aPeerThatKeepsNoBondsIsEncryptedThisOnce() async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.keepsBonds = false
            let bench = try await SecurityBench(time, security, configure: { $0.onDemand = PairingOptions() })
            let link = try await bench.central.connect(bench.id)
            #expect(try await link.read(0xFFF1) == [7])
            #expect(await link.security.isEncrypted)
            #expect(try await bench.central.bonds().isEmpty)
            await link.disconnect()
        }
    }

    /// The key of a pairing that makes no bond encrypts the link: another device may be at the address.
    @Test func aBondThatAFailedPairingWasToReplaceDoesNotCountForTheLink() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            await bench.device.forgetBonds()
            var security = VirtualSecurity()
            security.keepsBonds = false
            await bench.device.changeServices(to: SecurityBench.described(security))
            let link = try await bench.central.connect(bench.id, ConnectOptions(security: .none))
            await #expect(throws: error(.notBonded)) { try await link.pair(PairingOptions(replacing: .always)) }
            #expect(await link.security.isEncrypted)
            #expect(await link.security.bond == nil)
            await #expect(throws: error(.pairingFailed)) { try await link.pair() }
            #expect(try await bench.central.bonds().map(\.peer) == [bench.id])
            await link.disconnect()
        }
    }

    @Test func aPasskeyThatThePeerDoesNotAskForIsNotIgnored() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, VirtualSecurity(capability: .noInputNoOutput))
            let link = try await bench.central.connect(bench.id)
            let passkey = try #require(Passkey(123_456))
            await #expect(throws: error(.pairingRefused)) {
                try await link.pair(PairingOptions(agent: .passkey(passkey)))
            }
            #expect(try await bench.central.bonds().isEmpty)
            await link.disconnect()
        }
    }

    /// Out-of-band data is for LE Secure Connections alone: a device that turns that off would be paired
    /// unauthenticated.
    @Test(arguments: [true, false])
    func outOfBandDataIsNoConsentToAPairingWithoutIt(isConfirmed: Bool) async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, VirtualSecurity(hasSecureConnections: false))
            let link = try await bench.central.connect(bench.id)
            let value = [UInt8](repeating: 7, count: 16)
            let data = try #require(PairingAgent.OutOfBandData(confirmation: value, random: value))
            var agent = PairingAgent(outOfBand: data)
            if isConfirmed { agent.confirm = { _ in true } }
            if isConfirmed {
                #expect(try await link.pair(PairingOptions(agent: agent)).method == .justWorks)
            } else {
                await #expect(throws: error(.pairingRefused)) { try await link.pair(PairingOptions(agent: agent)) }
                #expect(try await bench.central.bonds().isEmpty)
            }
            await link.disconnect()
        }
    }

    @Test func numbersAreComparedWhereTheAgentCanDoThatAlone() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, VirtualSecurity(capability: .displayYesNo))
            let link = try await bench.central.connect(bench.id)
            let bond = try await link.pair(
                PairingOptions(agent: PairingAgent(compare: { _, _ in true }), require: .authenticated))
            #expect(bond.isAuthenticated)
            await link.disconnect()
        }
    }

    /// The file is set aside then, and the bonds are only in this process.
    @Test func bondsThatAreDamagedMeanwhileStayInForce() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await SecurityBench(time, bonds: try BondStore(directory: folder.path))
            try await bench.pair()
            let file = try #require(folder.names.first { $0.hasSuffix(".bonds") })
            try folder.write("no bonds", to: file)
            let other = PeerID(address: BluetoothAddress(rawValue: 0xC0_0000_0000_77), type: .random)
            await #expect(throws: BLEError.self) { try await bench.central.forgetBond(with: other) }
            #expect(folder.names.contains(file + ".damaged"))
            #expect(try await bench.central.bonds().map(\.peer) == [bench.id])
            let link = try await bench.central.connect(bench.id)
            #expect(await link.security.isEncrypted)
            await link.disconnect()
        }
    }

    @Test func theEventOfDamagedBondsHasTheirPath() async throws {
        try await VirtualTime.run { time in
            let (intact, damaged) = (try Folder(), try Folder())
            let first = try await SecurityBench(time, bonds: try BondStore(directory: intact.path))
            try await first.pair()
            let file = try #require(intact.names.first { $0.hasSuffix(".bonds") })
            let isWritten = FileManager.default.createFile(
                atPath: "\(damaged.path)/\(file)", contents: Data("no bonds".utf8),
                attributes: [.posixPermissions: 0o600])
            #expect(isWritten)
            let bench = try await SecurityBench(time, bonds: try BondStore(directory: damaged.path))
            var events = bench.central.securityEvents.makeAsyncIterator()
            let link = try await bench.central.connect(bench.id)
            guard case .bondsDamaged(let error)? = try await events.next() else {
                Issue.record("no such event")
                return
            }
            #expect(error.code == .unusableState && error.subject == "\(damaged.path)/\(file)")
            #expect(error.hint?.contains("\(damaged.path)/\(file).damaged") == true)
            await link.disconnect()
        }
    }

    /// A call that has opened them may have timed out before they were read.
    @Test func damagedBondsAreReportedByTheNextCallAndOnce() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let path = try Self.damageBonds(in: folder)
            let bench = try await SecurityBench(time)
            let log = KeptLog(detail: "reason")
            let store = try BondStore(directory: folder.path)
            let central = SecurityBench.central(bench.radio, store, change: { $0.logger = log.logger })
            var events = central.securityEvents.makeAsyncIterator()
            let adapter = await central.adapter
            try await adapter.find(during: "connect")
            let bonds: BondedDevices = await adapter.bonds
            try await bonds.open(adapter: VirtualRadio.address(of: 0), in: .unlimited("connect"))
            #expect(log.all.count { $0.hasPrefix("bonds were damaged") } == 0)
            for _ in 1...2 {
                let link = try await central.connect(bench.id)
                await link.disconnect()
                #expect(log.all.count { $0.hasPrefix("bonds were damaged") } == 1)
            }
            guard case .bondsDamaged(let damage)? = try await events.next() else {
                Issue.record("no such event")
                return
            }
            #expect(damage.code == .unusableState && damage.subject == path)
        }
    }

    /// Its link would not be encrypted, whichever of the two it is.
    @Test(.row("S08")) func anAddressThatTwoBondedDevicesMayHaveIsNotConnectedTo() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            let store = try bench.bonds.open(adapter: VirtualRadio.address(of: 0))
            let records = try store.load().records
            let bonded = try #require(records.first)
            _ = try store.save(
                RecordedBonds.numbered(1).with(identityKey: bonded.identityKey), isForStorage: true)
            let address = try #require(await bench.radio.rotateAddress(of: bench.device))
            let requests = await bench.device.requestCount
            let central = SecurityBench.central(bench.radio, bench.bonds)
            let refused = await #expect(throws: BLEError.self) { _ = try await central.connect(address) }
            #expect(refused?.code == .notBonded)
            #expect(refused?.reason.contains("several bonded devices") == true)
            #expect(await bench.device.requestCount == requests)
            #expect(await !bench.device.isConnected)
        }
    }

    /// One of the lost bonds may be the device's, whose address another one may use.
    @Test func afterBondsWereDamagedNoPeerIsPairedOnDemand() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            try Self.damageBonds(in: folder)
            let bench = try await SecurityBench(
                time, bonds: try BondStore(directory: folder.path), configure: { $0.onDemand = PairingOptions() })
            let link = try await bench.central.connect(bench.id)
            for _ in 1...2 {
                do {
                    _ = try await link.read(0xFFF1)
                    Issue.record("it is protected")
                } catch let failure as BLEError {
                    #expect(failure.code == .insufficientSecurity)
                    #expect(failure.hint?.contains("stored bonds were damaged") == true)
                }
            }
            #expect(await bench.device.pairingCount == 0)
            // A person has decided.
            try await link.pair()
            #expect(try await link.read(0xFFF1) == [7])
            await link.disconnect()
        }
    }

    /// An earlier run has moved them there.
    @Test(arguments: [true, false]) func bondsThatWereMovedAsideKeepLaterRunsFromPairingOnDemand(
        _ isThere: Bool
    ) async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let path = isThere ? try Self.damageBonds(in: folder, suffix: ".damaged") : ""
            let bench = try await SecurityBench(
                time, bonds: try BondStore(directory: folder.path), configure: { $0.onDemand = PairingOptions() })
            var events = bench.central.securityEvents.makeAsyncIterator()
            let link = try await bench.central.connect(bench.id)
            guard isThere else {
                #expect(try await link.read(0xFFF1) == [7])
                return await link.disconnect()
            }
            guard case .bondsDamaged(let damage)? = try await events.next() else {
                Issue.record("no such event")
                return
            }
            #expect(damage.code == .unusableState && damage.subject == path)
            #expect(damage.hint?.contains(path + ".damaged") == true)
            let refused = await #expect(throws: BLEError.self) { _ = try await link.read(0xFFF1) }
            #expect(refused?.code == .insufficientSecurity)
            #expect(await bench.device.pairingCount == 0)
            // A person has decided about this device.
            try await link.pair()
            #expect(try await link.read(0xFFF1) == [7])
            #expect(folder.names.contains { $0.hasSuffix(".bonds.damaged") }, "and about no other one")
            await link.disconnect()
        }
    }

    /// Its link would not be encrypted. This run or an earlier one has moved the bond aside.
    @Test(.row("S01"), arguments: ["", ".damaged", ".other-version-2"])
    func aPeerWhoseBondIsDamagedIsNotConnectedToInClear(suffix: String) async throws {
        try await VirtualTime.run { time in
            let (folder, bench) = (try Folder(), try await SecurityBench(time))
            try Self.damageBonds(in: folder, suffix: suffix, "BareBLE bonds 1\n\(bench.id) level=2")
            let other = await bench.radio.add(SecurityBench.described(VirtualSecurity()))
            let otherID = try #require(await bench.radio.id(of: other))
            let central = SecurityBench.central(bench.radio, try BondStore(directory: folder.path))
            for _ in 1...2 {
                let refused = await #expect(throws: BLEError.self) { _ = try await central.connect(bench.id) }
                #expect(refused?.code == .unusableState && refused?.subject == "\(bench.id)")
                #expect(refused?.hint?.contains("Central.forgetBond(with:)") == true)
            }
            await #expect(throws: error(.notBonded)) {
                _ = try await central.connect(bench.id, ConnectOptions(security: .bonded))
            }
            #expect(await bench.device.requestCount == 0)
            let stranger = try await central.connect(otherID)
            await stranger.disconnect()

            // The caller may decide otherwise, for this link alone.
            let link = try await central.connect(bench.id, ConnectOptions(security: .none))
            #expect(await link.takingError(.none, during: "adopt a link") == nil)
            #expect(await link.takingError(.asBonded, during: "adopt a link")?.code == .unusableState)
            await #expect(throws: error(.unusableState)) { _ = try await central.session(adopting: link) }
            await link.disconnect()
            await #expect(throws: error(.unusableState)) { _ = try await central.connect(bench.id) }

            try await central.forgetBond(with: bench.id)
            #expect(!folder.names.contains { $0.contains(".bonds") })
            let clear = try await central.connect(bench.id)
            #expect(await !clear.security.isEncrypted)
            await clear.disconnect()
        }
    }

    /// It has a bond then that can be used, and none once that is forgotten.
    @Test func aPeerWhoseBondIsDamagedIsPairedAgainIfTheCallerDemandsThat() async throws {
        try await VirtualTime.run { time in
            let (folder, bench) = (try Folder(), try await SecurityBench(time))
            try Self.damageBonds(in: folder, "BareBLE bonds 1\n\(bench.id) level=2")
            let central = SecurityBench.central(bench.radio, try BondStore(directory: folder.path))
            await #expect(throws: error(.unusableState)) { _ = try await central.connect(bench.id) }
            let pairing = ConnectOptions(security: .pairing(PairingOptions()))
            for options in [pairing, ConnectOptions()] {
                let link = try await central.connect(bench.id, options)
                #expect(await link.security.isEncrypted)
                await link.disconnect()
            }
            #expect(await bench.device.pairingCount == 1)
            try await central.forgetBond(with: bench.id)
            let clear = try await central.connect(bench.id)
            #expect(await !clear.security.isEncrypted)
            await clear.disconnect()
        }
    }

    /// It may be that of a device whose bond was lost. Devices without a bond can be used all the same.
    @Test(arguments: [true, false]) func aLinkInClearToAPrivateAddressIsLoggedAfterDamage(_ isDamaged: Bool)
        async throws
    {
        try await VirtualTime.run { time in
            let (folder, bench) = (try Folder(), try await SecurityBench(time, isPrivate: true))
            if isDamaged { try Self.damageBonds(in: folder, suffix: ".damaged") }
            let log = KeptLog(detail: "peer")
            let store = try BondStore(directory: folder.path)
            let central = SecurityBench.central(bench.radio, store, change: { $0.logger = log.logger })
            let address = try #require(await bench.radio.rotateAddress(of: bench.device))
            let link = try await central.connect(address)
            let lines = log.all.filter { $0.hasPrefix("a link to a private address is not encrypted") }
            #expect(lines.count == (isDamaged ? 1 : 0))
            #expect(lines.allSatisfy { $0.hasSuffix(": \(address)") })
            await link.disconnect()
        }
    }

    /// Between the end of Pair Device and the disk.
    @Test func aBondThatIsForgottenAtTheEndOfItsPairingIsNotStored() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let (program, forgetting) = (Lock<Central?>(nil), Lock<Task<Void, any Error>?>(nil))
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: bench.bonds)
            let central = Central(configuration, radio: bench.radio) { system in
                let security = system.security
                system.security = { descriptor throws(SystemCallError) in
                    let found = try security(descriptor)
                    guard found.keySize > 0, let central = program.withLock(\.self) else { return found }
                    forgetting.withLock { task in
                        if task == nil { task = time.task { try await central.forgetBond(with: bench.id) } }
                    }
                    return found
                }
            }
            program.withLock { $0 = central }
            let link = try await central.connect(bench.id)
            await #expect(throws: error(.bondNotStored)) { try await link.pair() }
            let task = try #require(forgetting.withLock { $0 })
            try await task.value
            program.withLock { $0 = nil }
            #expect(try await central.bonds().isEmpty)
            #expect(await bench.radio.longTermKeys().isEmpty)
            await link.disconnect()
        }
    }

    /// After the last look at what was forgotten, and before the disk. Of a new device with private addresses, the
    /// application knows the one on the air.
    @Test(arguments: [false, true]) func aBondThatIsForgottenWhileItWaitsForTheDiskIsNotKept(
        isPrivate: Bool
    ) async throws {
        try await VirtualTime.run { time in
            let (adapter, peer) = (Lock<Adapter?>(nil), Lock<PeerID?>(nil))
            let bench = try await SecurityBench(
                time, isPrivate: isPrivate,
                configure: { security in
                    // It is asked for the time right before the bond is stored.
                    security.timeOfDay = {
                        if let adapter = adapter.withLock({ $0.take() }), let peer = peer.withLock({ $0.take() }) {
                            adapter.assumeIsolated { $0.assumeForgotten(peer) }
                        }
                        return 1
                    }
                })
            let link = try await bench.central.connect(bench.id)
            let used = await bench.central.adapter
            adapter.withLock { $0 = used }
            peer.withLock { $0 = bench.id }
            await #expect(throws: error(.bondNotStored)) { try await link.pair() }
            #expect(try await bench.central.bonds().isEmpty)
            #expect(await bench.radio.longTermKeys().isEmpty)
            await link.disconnect()
            let bond = try await bench.pair()
            #expect(try await bench.central.bonds().map(\.peer) == [bond.peer])
        }
    }

    /// The pairing of a central has failed by then, and its end has loaded the keys without that bond: the central has
    /// its key, and could neither encrypt its next link nor pair again.
    @Test func theKernelHasTheKeysOfWhatTheDiskHasChangedLate() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let bonds: BondedDevices = await bench.central.adapter.bonds
            let disk = HangingDisk()
            defer { disk.open() }
            let storing = time.task {
                try await bonds.change(during: "test the disk") { store throws(BLEError) in
                    disk.respond()
                    _ = try store.save(RecordedBonds.first, isForStorage: true)
                }
            }
            while !disk.isAsked, !Task.isCancelled { await Task.yield() }
            // Else time would stand as long as the disk works.
            time.loop.release()
            await #expect(throws: error(.timedOut)) { try await storing.value }
            time.loop.hold()
            #expect(await bench.radio.longTermKeys().count == 1)
            disk.open()
            while bonds.records.count < 2 {
                try Task.checkCancellation()
                await Task.yield()
            }
            try await time.clock.sleep(for: .seconds(1))
            #expect(await bench.radio.longTermKeys().count == 2)
        }
    }

    /// They are no keys.
    @Test func theKernelIsNotGivenTheKeysAgainForALateMarkOrNote() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let bonds: BondedDevices = await bench.central.adapter.bonds
            try await time.clock.sleep(for: .seconds(1))
            let commands = await bench.radio.managementCommands
            for isMark in [true, false] {
                let disk = HangingDisk()
                defer { disk.open() }
                let storing = time.task {
                    try await bonds.change(during: "test the disk") { store throws(BLEError) in
                        disk.respond()
                        if isMark {
                            _ = try store.markRejected(bench.id, at: 1)
                        } else {
                            _ = try store.noteEncrypted(bench.id, at: 1)
                        }
                    }
                }
                while !disk.isAsked, !Task.isCancelled { await Task.yield() }
                // Else time would stand as long as the disk works.
                time.loop.release()
                await #expect(throws: error(.timedOut)) { try await storing.value }
                time.loop.hold()
                disk.open()
                try await until { (bonds.record(of: bench.id)?.state == .good) != isMark }
                try await time.clock.sleep(for: .seconds(1))
            }
            #expect(await bench.radio.managementCommands == commands)
        }
    }

    /// While the disk works for others, the marks and the notes wait for it.
    @Test func aKeyThatHasWorkedAgainIsNotLeftRejectedByASlowDisk() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let bonds: BondedDevices = await bench.central.adapter.bonds
            let disk = HangingDisk()
            defer { disk.open() }
            let working = time.task {
                try await bonds.change(during: "test the disk") { _ in disk.respond() }
            }
            while !disk.isAsked, !Task.isCancelled { await Task.yield() }
            for _ in 1...2 {
                _ = time.task { await bonds.markRejected(bench.id) }
                try await until { bonds.record(of: bench.id)?.state != .good }
                bonds.recordEncryption(bench.id)
                #expect(bonds.record(of: bench.id)?.state == .good)
            }
            disk.open()
            try await working.value
            try await time.clock.sleep(for: .seconds(1))
            #expect(try await bench.central.bonds().map(\.rejectedSince) == [nil])
        }
    }

    /// The disk works at the mark for longer than anything waits for it.
    @Test func aKeyThatHasWorkedAgainIsNotLeftRejectedByALateMark() async throws {
        try await VirtualTime.run { time in
            let memory = BondMemory()
            let bench = try await SecurityBench(time, bonds: BondStore(memory))
            try await bench.pair()
            let bonds: BondedDevices = await bench.central.adapter.bonds
            let disk = HangingDisk()
            defer { disk.open() }
            Thread.detachNewThread { memory.turn.withLock { _ in disk.respond() } }
            while !disk.isAsked, !Task.isCancelled { await Task.yield() }
            let marking = time.task { await bonds.markRejected(bench.id) }
            try await until { bonds.record(of: bench.id)?.state != .good }
            bonds.recordEncryption(bench.id)
            try await until { bonds.waitingTasks > 0 }
            // Else time would stand as long as the disk works.
            time.loop.release()
            try await marking.value
            // The note has had no turn by then.
            try await time.clock.sleep(for: .seconds(6))
            time.loop.hold()
            #expect(bonds.waitingTasks == 0)
            disk.open()
            try await time.clock.sleep(for: .seconds(1))
            #expect(try await bench.central.bonds().map(\.rejectedSince) == [nil])
        }
    }

    /// The note waits already when the mark is stored, and the disk works for others for longer than it waits.
    @Test func aKeyThatHasWorkedAgainIsNotLeftRejectedByAMarkBeforeALateNote() async throws {
        try await VirtualTime.run { time in
            let memory = BondMemory()
            let bench = try await SecurityBench(time, bonds: BondStore(memory))
            try await bench.pair()
            let bonds: BondedDevices = await bench.central.adapter.bonds
            let (disk, other) = (HangingDisk(), HangingDisk())
            defer {
                disk.open()
                other.open()
            }
            Thread.detachNewThread { memory.turn.withLock { _ in disk.respond() } }
            while !disk.isAsked, !Task.isCancelled { await Task.yield() }
            let marking = time.task { await bonds.markRejected(bench.id) }
            try await until { bonds.record(of: bench.id)?.state != .good }
            let working = time.task {
                try await bonds.change(during: "test the disk") { _ in other.respond() }
            }
            try await until { bonds.waitingTasks >= 1 }
            bonds.recordEncryption(bench.id)
            try await until { bonds.waitingTasks >= 2 }
            // Else time would stand as long as the disk works.
            time.loop.release()
            try await time.clock.sleep(for: .seconds(3))
            time.loop.hold()
            disk.open()
            try await marking.value
            try await until { other.isAsked }
            time.loop.release()
            await #expect(throws: error(.timedOut)) { try await working.value }
            try await time.clock.sleep(for: .seconds(1))
            time.loop.hold()
            #expect(bonds.waitingTasks == 1)
            other.open()
            try await time.clock.sleep(for: .seconds(1))
            #expect(try await bench.central.bonds().map(\.rejectedSince) == [nil])
        }
    }

    /// By its application, also after the last look at what was forgotten.
    @Test func aBondThatIsForgottenWhileItsCentralPairsIsNotKept() async throws {
        let adapter = Lock<Adapter?>(nil)
        let configure: @Sendable (inout Configuration) -> Void = { configuration in
            configuration.security?.timeOfDay = {
                if let adapter = adapter.withLock({ $0.take() }) {
                    adapter.assumeIsolated { $0.assumePairingCentralIsForgotten() }
                }
                return 1
            }
        }
        try await PairingBench.run(maximumCentrals: 16, configure) { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            let used = await bench.central.adapter
            adapter.withLock { $0 = used }
            try await bench.pair(phone)
            #expect(await bench.failures().map(\.code) == [.bondNotStored])
            #expect(await bench.paired().isEmpty)
            #expect(try await bench.central.bonds().isEmpty)
            #expect(await bench.radio.longTermKeys().isEmpty)
        }
    }

    /// A later call takes the place of an earlier one, which may still wait for the kernel: the end of the earlier one
    /// withdraws nothing, and that of the later one also ends the earlier one.
    @Test(arguments: [false, true]) func ofTwoPermissionsTheLaterOneCounts(cancelsLater: Bool) async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            await bench.local.refusePairing()
            let adapter = await bench.central.adapter
            // Load Identity Resolving Keys, with none: the settings of pairing wait for its end, which takes 6 s.
            await bench.radio.ignoreManagementPacket([0x30, 0, 0, 0, 2, 0, 0, 0])
            let loading = bench.time.task { try await adapter.loadKeys(in: .unlimited("load keys")) }
            try await bench.sleep(.seconds(1))
            await bench.radio.ignoreManagementPacket(nil)
            let first = bench.time.task { try await bench.local.allowPairing(.justWorks) }
            try await bench.sleep(.seconds(1))
            let second = bench.time.task { try await bench.local.allowPairing(.justWorks) }
            try await bench.sleep(.seconds(1))
            let cancelled = cancelsLater ? second : first
            cancelled.cancel()
            await #expect(throws: error(.cancelled)) { try await cancelled.value }
            #expect(await bench.local.allowsPairing != cancelsLater)
            if cancelsLater {
                await #expect(throws: error(.cancelled)) { try await first.value }
            } else {
                try await second.value
            }
            _ = await loading.result
            #expect(await bench.local.allowsPairing != cancelsLater)
        }
    }

    @Test func aCallWhosePermissionIsWithdrawnWhileItWaitsFails() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            await bench.local.refusePairing()
            let adapter = await bench.central.adapter
            // As above.
            await bench.radio.ignoreManagementPacket([0x30, 0, 0, 0, 2, 0, 0, 0])
            let loading = bench.time.task { try await adapter.loadKeys(in: .unlimited("load keys")) }
            try await bench.sleep(.seconds(1))
            await bench.radio.ignoreManagementPacket(nil)
            let allowing = bench.time.task { try await bench.local.allowPairing(.justWorks) }
            try await bench.sleep(.seconds(1))
            #expect(await bench.local.allowsPairing)
            await bench.local.refusePairing()
            await #expect(throws: error(.cancelled)) { try await allowing.value }
            _ = await loading.result
            #expect(await !bench.local.allowsPairing)
        }
    }

    /// The lost link of a central ends seconds after the next one has begun, on which its pairing has no turn yet.
    @Test func theEndOfAnEarlierLinkDoesNotEndAPairingThatWaits() async throws {
        try await PairingBench.run { bench in
            var options = CentralPairingOptions.justWorks
            options.replace = { _ in true }
            try await bench.local.allowPairing(options)
            let phone = try await bench.connect()
            // A link without its key would end with the next one.
            try await bench.pair(phone)
            let peer = try #require(await phone.peer)
            let second = await bench.radio.addCentral(as: peer)
            try await bench.reconnect(second)
            let adapter = await bench.central.adapter
            // As above: no pairing begins before the end of the load.
            await bench.radio.ignoreManagementPacket([0x30, 0, 0, 0, 2, 0, 0, 0])
            let loading = bench.time.task { try await adapter.loadKeys(in: .unlimited("load keys")) }
            try await bench.sleep(.seconds(1))
            await bench.radio.ignoreManagementPacket(nil)
            try await bench.pair(second)
            await phone.disconnect()
            try await bench.sleep(.seconds(2))
            #expect(await bench.paired().count == 1, "it waits")
            try await bench.sleep(.seconds(8))
            _ = await loading.result
            #expect(await bench.failures().isEmpty)
            #expect(await bench.paired().count == 2)
            #expect(try await second.read(PairingBench.sealed) == [2])
        }
    }

    @Test func aSessionWhoseLinkIsGivenAwayNotesItsBond() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let session = try await bench.central.session(with: bench.id)
            try await session.ready().pair()
            let link = try await session.releaseLink()
            await link.disconnect()
            try await bench.central.forgetBond(with: bench.id)
            try await session.reconnect()
            await #expect(throws: error(.notBonded)) { _ = try await session.ready() }
            await session.disconnect()
        }
    }

    @Test func aSessionIsNotContinuedInClearAfterItsBondIsForgotten() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let session = try await bench.central.session(with: bench.id)
            _ = try await session.ready()
            let requests = await bench.device.requestCount
            try await bench.central.forgetBond(with: bench.id)
            await #expect(throws: error(.notBonded)) {
                while true {
                    let link = try await session.ready()
                    _ = await link.disconnected()
                }
            }
            #expect(await bench.device.requestCount == requests)
            await session.disconnect()
        }
    }

    @Test func aSessionThatReplacesABondDoesSoOnce() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            var options = Session.Options()
            options.connect.security = .pairing(PairingOptions(replacing: .always))
            let session = try await bench.central.session(with: bench.id, options)
            for _ in 0..<3 {
                let link = try await session.ready()
                #expect(await link.security.isEncrypted)
                #expect(await bench.device.pairingCount == 2)
                await link.disconnect()
            }
            await session.disconnect()
        }
    }

    /// The first connect has the adapter switched off and on, so that the kernel can pair.
    @Test func connectsAtTheStartWaitForTheSetupOfTheAdapter() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let other = await bench.radio.add(SecurityBench.described(VirtualSecurity()))
            let otherID = try #require(await bench.radio.id(of: other))
            async let first = bench.central.connect(bench.id)
            async let second = bench.central.connect(otherID)
            let (one, two) = try await (first, second)
            #expect(await bench.radio.hasSecurityManager())
            await one.disconnect()
            await two.disconnect()
        }
    }

    @Test func aSessionAsksForOnePairing() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, VirtualSecurity(capability: .displayOnly, passkey: 5))
            let questions = Lock(0)
            let agent = PairingAgent(enter: { _ in
                questions.withLock { $0 += 1 }
                return nil
            })
            var options = Session.Options()
            options.connect.security = .pairing(PairingOptions(agent: agent))
            let session = try await bench.central.session(with: bench.id, options)
            await #expect(throws: error(.pairingRefused)) { _ = try await session.ready() }
            #expect(questions.withLock(\.self) == 1)
        }
    }

    /// Both wait for the first connect; meanwhile the peer is bonded over an earlier link.
    @Test func aConnectThatHasWaitedKnowsTheBondsOfItsTurn() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let link = try await bench.central.connect(bench.id)
            let absent = PeerID(address: BluetoothAddress(rawValue: 0xC0_0000_0000_77), type: .random)
            let central = bench.central
            async let first = Self.failure { () async throws(BLEError) in
                try await central.connect(absent, ConnectOptions(timeout: .seconds(10)))
            }
            async let waited = bench.central.connect(bench.id, ConnectOptions(timeout: .seconds(60)))
            try await link.pair()
            await link.disconnect()
            #expect(await first == .timedOut)
            let second = try await waited
            #expect(await second.security.isEncrypted)
            await second.disconnect()
        }
    }

    /// The connect finds the first link, over which the peer is bonded, and tries again after pauses.
    @Test func aConnectThatHasPausedKnowsTheBondsOfItsNextAttempt() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let link = try await bench.central.connect(bench.id)
            let paused = time.task { try await bench.central.connect(bench.id) }
            try await time.clock.sleep(for: .milliseconds(300))
            try await link.pair()
            await link.disconnect()
            let next = try await paused.value
            #expect(await next.security.isEncrypted)
            #expect(await bench.device.pairingCount == 1)
            await next.disconnect()
        }
    }

    /// The kernel handles the beginning of a link after this process could read it. A socket that attached before that
    /// would have it look for the peer.
    @Test func aSocketAttachesWhenTheKernelHasFiledTheLink() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let (looks, early) = (Lock(0), Lock(0))
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: bench.bonds)
            let central = Central(configuration, radio: bench.radio) { system in
                let (linkHandle, connect) = (system.linkHandle, system.connect)
                system.linkHandle = { index, address in
                    guard let handle = linkHandle(index, address) else { return nil }
                    return looks.withLock { looks in
                        looks += 1
                        return looks > 3 ? handle : nil
                    }
                }
                system.connect = { own, type, peer, timeout, level throws(SystemCallError) in
                    if looks.withLock(\.self) <= 3 { early.withLock { $0 += 1 } }
                    return try connect(own, type, peer, timeout, level)
                }
            }
            let link = try await central.connect(bench.id)
            #expect(await link.security.isEncrypted)
            #expect(early.withLock(\.self) == 0 && looks.withLock(\.self) > 3)
            await link.disconnect()
        }
    }

    /// Waits until something holds, and lets no virtual time pass.
    private func until(_ condition: () -> Bool) async throws {
        while !condition() {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    private static func failure(_ body: () async throws(BLEError) -> Peripheral) async -> BLEError.Code? {
        do throws(BLEError) {
            _ = try await body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test func aStoredSessionRequiresItsBond() throws {
        let peer = try #require(PeerID("C6:55:44:33:22:11/random"))
        var options = Session.Options()
        #expect(!RestorationState.Peer(peer, options, []).requiresBond)
        for demand in [ConnectOptions.SecurityDemand.bonded, .pairing(PairingOptions())] {
            options.connect.security = demand
            let state = RestorationState(peers: [RestorationState.Peer(peer, options, [])])
            let read = try RestorationState(bytes: state.bytes)
            #expect(read == state)
            #expect(read.peers.first.map { Session.Options($0).connect.security } == .bonded)
        }
    }
}

extension Adapter {
    fileprivate func assumeForgotten(_ peer: PeerID) { security.pairing.forget(peer) }

    fileprivate func assumePairingCentralIsForgotten() {
        if let peer = security.centrals.pairing?.link.peer { security.centrals.forget(peer) }
    }
}
