import ArgumentParser
import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CBluetooth
import Foundation
import Glibc
import TestSupport
import Testing

@testable import blescan

/// `pair`, `forget`, `bonds` and `--pair`, of the built program, with a virtual device that pairs.
@Suite struct PairingTests {
    private static let lock = "C0:FF:EE:00:00:01"

    @Test func aVirtualLockIsPairedWith() async throws {
        let session = try await Golden.session([
            ["read", "demo:lock", "fff1"],
            ["read", "demo:lock", "fff1", "--json"],
            ["explore", "demo:lock", "--no-read"],
            ["read", "demo:lock", "fff1", "--pair", "--passkey", "123456"],
            ["write", "demo:lock", "fff1", "--u8", "0", "--pair", "--passkey", "123456"],
            ["pair", "demo:lock", "--passkey", "123456"],
            ["pair", "demo:lock", "--passkey", "123456", "--require", "authenticated", "--name", "Door", "--json"],
            ["pair", "demo:lock", "--passkey", "000001"],
            ["pair", "demo:lock"],
            ["pair", "demo:lock", "--json"],
            ["pair", "demo:battery"],
            ["pair", "unix:/nowhere"],
            ["read", "unix:/nowhere", "fff1", "--pair"],
            ["pair", "demo:nothing"],
            ["pair", "demo:lock", "--passkey", "1234567"],
            ["pair", "demo:lock", "--name", ""],
            ["pair", "demo:lock", "--require", "much"],
            ["read", "demo:lock", "fff1", "--passkey", "123456"],
            ["read", "demo:lock", "fff1", "--no-bond", "--pair"],
            ["bonds", "--bonds", "/nowhere"],
            ["bonds", "--bonds", ""],
            ["forget", "demo:battery"],
            ["forget", Self.lock, "--bonds", "/nowhere"],
        ])
        try Golden.expect(session, matches: "pair.txt")
    }

    @Test func aFileIsNoDirectoryOfBonds() async throws {
        let folder = try TestFolder()
        try Data("a diary".utf8).write(to: URL(filePath: folder["diary"]))
        let outcome = try await BuiltProgram.run(["bonds", "--bonds", folder["diary"]])
        #expect(outcome.status == 64)
        #expect(outcome.errors.hasPrefix("blescan: \(folder["diary"]) is not a directory\nhint: "), "\(outcome.errors)")
        let lock = try await BuiltProgram.run(["forget", "demo:lock"], environment: ["HOME": folder["home"]])
        #expect(lock.status == 1)
        #expect(lock.errors.contains("hint: A bond with a virtual device ends with the command"), "\(lock.errors)")
    }

    /// The virtual device of the next command has other keys, and would reject the bond.
    @Test func aBondWithAVirtualDeviceEndsWithTheCommand() async throws {
        let folder = try TestFolder()
        let named = ["--bonds", folder["bonds"]]
        for _ in 1...2 {
            let paired = try await BuiltProgram.run(["pair", "demo:lock", "--passkey", "123456"] + named)
            #expect(paired.status == 0 && paired.errors.contains("ends with this command"), "\(paired.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: folder["bonds"]))
        #expect(try await BuiltProgram.run(["explore", "demo:lock", "--no-read"] + named).status == 0)
        let read = try await BuiltProgram.run(["read", "demo:lock", "fff1"] + named)
        #expect(read.errors.contains("hint: The peer requires a paired or encrypted link: --pair."), "\(read.errors)")
    }

    /// A value that is refused has the code of the failure, and the peer's name as it was typed.
    @Test func aRefusedValueHasItsCode() async throws {
        let explored = try await BuiltProgram.run(["explore", "demo:lock", "--json"])
        #expect(explored.status == 0)
        #expect(
            explored.output.contains(#""error":"could not read 0x0008 (demo:lock): refused: "#), "\(explored.output)")
        #expect(explored.output.contains(#"[ATT 0x05]","code":"insufficientSecurity","attError":5,"#))
    }

    /// Earlier versions stored it.
    @Test func aStoredBondWithAVirtualDeviceIsForgotten() async throws {
        let folder = try TestFolder()
        let adapters = ([0x00AA_0100_0042, 0x0011_2233_4401] as [UInt64]).map { BluetoothAddress(rawValue: $0) }
        for adapter in adapters {
            let store = try BondStore(directory: folder["bonds"])
            for identity in [VirtualPeer.identity, RecordedBonds.phone] {
                let record = BondRecord(
                    identity: identity, name: nil,
                    keys: [RecordedBonds.key(RecordedKeys.secureConnections, of: identity)],
                    identityKey: .none, level: .secureConnections, method: .passkeyTyped, peerCapability: .displayOnly,
                    bondedAt: 1_790_000_000, lastEncryptedAt: 1_790_003_600, generation: 1)
                _ = try store.open(adapter: adapter).save(record, isForStorage: true)
            }
        }
        let outcome = try await BuiltProgram.run(["forget", "demo:lock", "--bonds", folder["bonds"]])
        #expect(outcome.status == 0 && outcome.output.hasPrefix("forgot the bond with "), "\(outcome.errors)")
        let stored = try BondStore(directory: folder["bonds"]).all()
        #expect(
            stored.first { $0.adapter == adapters[0] }?.records.map(\.identity) == [RecordedBonds.phone],
            "the bonds of others stay")
        #expect(stored.first { $0.adapter == adapters[1] }?.records.count == 2, "those of other adapters too")
    }

    @Test func aBondIsListedWithoutItsKey() async throws {
        let (directory, folder) = try Self.directory()
        let named = ["--bonds", directory]
        let file = directory + "/001122334401.bonds"
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
        #expect(try FileManager.default.attributesOfItem(atPath: directory)[.posixPermissions] as? Int == 0o700)
        let key = try #require(text.firstMatch(of: /ltk=([0-9a-f]{72})/)).output.1.suffix(32)

        let listed = try await BuiltProgram.run(["bonds"] + named)
        #expect(listed.status == 0 && listed.errors.isEmpty)
        #expect(
            listed.output.hasPrefix(
                "\(RecordedBonds.phone)  passkey typed here, authenticated, key of 16 bytes  "
                    + "adapter 00:11:22:33:44:01  since "))
        #expect(listed.output.hasSuffix("\"Front door\"\n"))
        let east = ["TZ": "<+03>-3"]
        let local = try await BuiltProgram.run(["bonds"] + named, environment: east)
        #expect(local.output.contains(/since\ \d{4}-\d\d-\d\dT[0-9:.]+\+03:00/), "\(local.output)")
        #expect(try await BuiltProgram.run(["bonds", "--utc"] + named, environment: east).output == listed.output)
        let coloured = try await BuiltProgram.run(["bonds", "--color", "always"] + named)
        #expect(coloured.output.contains("\u{1B}[32mauthenticated\u{1B}[0m"), "\(coloured.output)")
        #expect(coloured.output.replacing(/\u{1B}\[[0-9;]*m/, with: "") == listed.output)
        let result = try await BuiltProgram.run(["pair", "demo:lock", "--passkey", "123456", "--color", "always"])
        #expect(result.output.hasPrefix("\u{1B}[1mbonded\u{1B}[0m with "), "\(result.output)")
        let objects = try await BuiltProgram.run(["bonds", "--json"] + named)
        let object = try #require(try objects.objects().first)
        #expect(object["peer"] as? String == "\(RecordedBonds.phone)" && object["name"] as? String == "Front door")
        #expect(object["authenticated"] as? Bool == true && object["keySize"] as? Int == 16)
        for outcome in [listed, objects] { #expect(!(outcome.output + outcome.errors).contains(key)) }

        let address = RecordedBonds.phone.address.description
        let forgotten = try await BuiltProgram.run(["forget", address, "--json"] + named)
        #expect(
            forgotten.output
                == #"{"v":1,"peer":"\#(RecordedBonds.phone)","adapter":"00:11:22:33:44:01","forgotten":true}"# + "\n")
        #expect(try !String(contentsOfFile: file, encoding: .utf8).contains(key))
        #expect(try await BuiltProgram.run(["forget", address] + named).status == 1)
        #expect(try await BuiltProgram.run(["bonds"] + named).status == 1)

        let adapter = BluetoothAddress(rawValue: 0x0011_2233_4401)
        _ = try BondStore(directory: directory).open(adapter: adapter).save(RecordedBonds.second, isForStorage: true)
        #expect(try await BuiltProgram.run(["bonds"] + named).output.contains("rejected by the peer since "))
        _ = folder
    }

    @Test func damageIsReportedAndNotTouched() async throws {
        let (directory, folder) = try Self.directory()
        let file = directory + "/001122334455.bonds"
        try Data("nonsense\n".utf8).write(to: URL(filePath: file))
        #expect(unsafe chmod(file, 0o600) == 0)
        let outcome = try await BuiltProgram.run(["bonds", "--bonds", directory])
        #expect(outcome.status == 65 && outcome.output.hasPrefix("C6:55:44:33:22:11/random  "))
        #expect(outcome.errors.contains(file))
        #expect(FileManager.default.fileExists(atPath: file))
        #expect(unsafe chmod(directory, 0o777) == 0)
        let open = try await BuiltProgram.run(["bonds", "--bonds", directory])
        #expect(open.status == 77 && open.errors.contains("chmod go= \(directory)"))
        _ = folder
    }

    // MARK: The terminal

    @Test(arguments: [
        ("123456\n", Int32(0)), (" 123456 \n", 0), ("abc\n123456\n", 0), ("000001\n", 76), ("\n", 76),
    ])
    func theUserIsAskedForThePasskey(_ keys: String, _ status: Int32) async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["pair", "demo:lock"], errors: terminal, keyboard: terminal)
        for (index, line) in keys.split(separator: "\n", omittingEmptySubsequences: false).dropLast().enumerated() {
            let question = "Passkey that demo:lock shows: "
            try await waited(for: "question \(index + 1)") {
                terminal.text.components(separatedBy: question).count == index + 2
            }
            terminal.type(line + "\n")
        }
        let outcome = try await program.outcome()
        #expect(outcome.status == status, "\(terminal.text)")
        if status == 0 { #expect(outcome.output.hasPrefix("bonded with demo:lock: passkey typed here, ")) }
        if keys == "\n" { try await terminal.shown("no passkey was entered") }
        if keys.hasPrefix("abc") {
            try await terminal.shown("A passkey has up to six digits; an empty line ends the pairing.")
        }
    }

    @Test func theQuestionCanBeInterrupted() async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["pair", "demo:lock"], errors: terminal, keyboard: terminal)
        try await terminal.shown("Passkey that ")
        program.signal(SIGINT)
        #expect(try await program.outcome().status == 130)
    }

    /// The source that reports input may do so once more after the end.
    @Test func aCancelledQuestionTakesNoLine() {
        var ends: [Int32] = [-1, -1]
        _ = unsafe pipe(&ends)
        defer {
            for descriptor in ends { close(descriptor) }
        }
        let typed = Array("yes\n".utf8)
        _ = unsafe write(ends[1], typed, typed.count)
        let reader = LineReader(of: ends[0])
        reader.end(nil)
        reader.readable(limit: 256)
        var input = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        let isThere = unsafe poll(&input, 1, 0) == 1
        #expect(isThere, "it is the reply to the next question")
    }

    // MARK: The agent

    @Test(arguments: [
        (VirtualSecurity.Capability.noInputNoOutput, PairingMethod.justWorks), (.displayOnly, .passkeyTyped),
        (.keyboardOnly, .passkeyShown), (.displayYesNo, .numericComparison), (.keyboardDisplay, .numericComparison),
    ])
    func theTerminalDoesWhatThePeerNeeds(_ capability: VirtualSecurity.Capability, _ method: PairingMethod) async throws
    {
        try await VirtualTime.run { time in
            let shown = Lock<[String]>([])
            let request = PairingRequest(
                passkey: nil, isTerminal: true,
                ask: { question in
                    shown.withLock { $0.append(question) }
                    return question.hasSuffix("[y/n] ") ? "Y" : "123456"
                },
                note: { note in shown.withLock { $0.append(note) } })
            let bond = try await Self.pair(time, VirtualSecurity(capability: capability, passkey: 123_456), request)
            #expect(bond.method == method)
            #expect(shown.withLock { $0.count } == (method == .justWorks ? 0 : 1))
        }
    }

    /// A message of its own could come after the question: `serve` has a queue for them.
    @Test func theAdviceAboutPasskeysIsAPartOfTheNextQuestion() async throws {
        try await VirtualTime.run { time in
            let (questions, notes) = (Lock<[String]>([]), Lock<[String]>([]))
            let request = PairingRequest(
                passkey: nil, isTerminal: true,
                ask: { question in
                    let isFirst = questions.withLock { asked in
                        asked.append(question)
                        return asked.count == 1
                    }
                    return isFirst ? "abc" : "123456"
                },
                note: { note in notes.withLock { $0.append(note) } })
            let security = VirtualSecurity(capability: .displayOnly, passkey: 123_456)
            let bond = try await Self.pair(time, security, request)
            #expect(bond.method == .passkeyTyped)
            let asked = questions.withLock { $0 }
            #expect(asked.count == 2 && asked.last?.hasPrefix("A passkey has up to six digits; ") == true)
            #expect(notes.withLock { $0.isEmpty })
        }
    }

    /// At the end of the input too. The hint names what helps here, not the library's closure.
    @Test(arguments: ["", " ", nil] as [String?]) func withoutAPasskeyThatIsTheReason(_ reply: String?) async {
        await VirtualTime.run { time in
            let request = PairingRequest(passkey: nil, isTerminal: true, ask: { _ in reply }, note: { _ in })
            let security = VirtualSecurity(capability: .displayOnly, passkey: 123_456)
            let error = await #expect(throws: BLEError.self) { _ = try await Self.pair(time, security, request) }
            #expect(error?.code == .pairingRefused && error?.reason == "no passkey was entered")
            #expect(error?.hint == "Run it again, and type what the peer shows, or give --passkey DIGITS.")
        }
    }

    @Test(arguments: ["n", "", "no", nil] as [String?])
    func onlyAYesConfirmsTheNumber(_ reply: String?) async throws {
        await VirtualTime.run { time in
            let request = PairingRequest(passkey: nil, isTerminal: true, ask: { _ in reply }, note: { _ in })
            await #expect(throws: BLEError(.pairingRefused, during: "pair", because: "")) {
                _ = try await Self.pair(time, VirtualSecurity(capability: .displayYesNo), request)
            }
        }
    }

    @Test func withoutATerminalAPeerWithoutAPasskeyIsPaired() async throws {
        try await VirtualTime.run { time in
            let request = PairingRequest(passkey: nil, isTerminal: false)
            let bond = try await Self.pair(time, VirtualSecurity(capability: .noInputNoOutput), request)
            #expect(bond.method == .justWorks)
        }
    }

    /// The command line lacks it; the peer has refused nothing.
    @Test func withoutATerminalAPasskeyHasToBeAnOption() async {
        await VirtualTime.run { time in
            let request = PairingRequest(passkey: nil, isTerminal: false)
            await #expect(throws: BLEError(.invalidArgument, during: "pair", because: "")) {
                _ = try await Self.pair(time, VirtualSecurity(capability: .displayOnly, passkey: 123_456), request)
            }
        }
        #expect(VirtualPeer(named: "lock")?.passkey == "123456")
        #expect(VirtualPeer(named: "battery")?.passkey == nil)
    }

    private static func pair(
        _ time: VirtualTime, _ security: VirtualSecurity, _ request: PairingRequest
    ) async throws -> Bond {
        let radio = VirtualRadio(time: time)
        var device = VirtualDevice.lock
        device.security = security
        let peripheral = await radio.add(device)
        let peer = try #require(await radio.id(of: peripheral))
        var configuration = Configuration()
        configuration.security = SecurityConfiguration(bonds: .inMemory)
        let link = try await Central(configuration, radio: radio).connect(peer)
        let result: Result<Bond, BLEError>
        do throws(BLEError) {
            result = .success(try await request.pair(link, .demo("lock")))
        } catch {
            result = .failure(error)
        }
        await link.disconnect()
        return try result.get()
    }

    @Test func theProgramHasNoCoreDumpOnceItOpensBonds() throws {
        let (path, folder) = try Self.directory()
        // This process has no keys but those of tests.
        defer { #expect(ble_process_option(PR_SET_DUMPABLE, 1) == 0) }
        for open in [{ _ = try BondDirectory(path).stored() }, { _ = try BondDirectory(path).store() }] {
            #expect(ble_process_option(PR_SET_DUMPABLE, 1) == 0)
            try open()
            #expect(!CoreDumps.mayBeWritten)
        }
        _ = folder
    }

    // MARK: Which bonds are used

    /// An adapter that is there, by the last byte of its address.
    private static func adapter(_ number: UInt16) -> AdapterDescription {
        let address = BluetoothAddress(rawValue: 0x0011_2233_4400 + UInt64(number))
        return AdapterDescription(
            ControllerInfo(index: number, name: "hci\(number)", address: address, isUp: true), isBlocked: false)
    }

    /// A directory with the bonds of the adapter 00:11:22:33:44:01.
    private static func directory() throws -> (path: String, folder: TestFolder) {
        let folder = try TestFolder()
        let store = try BondStore(directory: folder["bonds"])
        let adapter = BluetoothAddress(rawValue: 0x0011_2233_4401)
        _ = try store.open(adapter: adapter).save(RecordedBonds.first, isForStorage: true)
        return (folder["bonds"], folder)
    }

    private static func find(
        _ address: BluetoothAddress, _ path: String, _ selector: AdapterSelector, _ adapters: [UInt16]
    ) throws -> BondUse.Finding {
        try BondUse.find(
            address, in: BondDirectory(path), selector, isPairing: false, adapters: adapters.map(Self.adapter))
    }

    /// The bonds of others cost nothing and need nothing.
    @Test func aPeerWithoutABondUsesNone() throws {
        let (path, folder) = try Self.directory()
        let stranger = try #require(BluetoothAddress("AA:BB:CC:DD:EE:FF"))
        let finding = try Self.find(stranger, path, .first, [1])
        #expect(finding.use == nil && finding.warnings.isEmpty)
        _ = folder
    }

    /// Without them, the link of a bonded device would not be encrypted.
    @Test func bondsThatCannotBeReadEndTheCommand() throws {
        let (path, folder) = try Self.directory()
        #expect(unsafe chmod(path + "/001122334401.bonds", 0o640) == 0)
        let error = #expect(throws: BLEError.self) {
            try Self.find(RecordedBonds.phone.address, path, .first, [1])
        }
        #expect(error?.code == .notPermitted)
        // The bonds of another adapter do not matter.
        let finding = try Self.find(RecordedBonds.phone.address, path, .first, [0])
        #expect(finding.use == nil && finding.warnings.count == 1)
        _ = folder
    }

    /// One of the lost bonds may be the device's.
    @Test func damagedBondsEndTheCommandUnlessTheDeviceHasAnother() throws {
        let (path, folder) = try Self.directory()
        let file = path + "/001122334401.bonds"
        let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").dropLast()
        let body = (lines + ["nonsense"]).joined(separator: "\n") + "\n"
        let checksum = String(format: "checksum %08x\n", CRC32.checksum(body.utf8))
        let stranger = try #require(BluetoothAddress("AA:BB:CC:DD:EE:FF"))

        try Data((body + checksum).utf8).write(to: URL(filePath: file))
        #expect(unsafe chmod(file, 0o600) == 0)
        let finding = try Self.find(RecordedBonds.phone.address, path, .first, [1])
        #expect(finding.use?.identity == RecordedBonds.phone && finding.warnings.count == 1)
        let error = #expect(throws: BLEError.self) { try Self.find(stranger, path, .first, [1]) }
        #expect(error?.code == .unusableState && error?.hint?.contains("--no-bond") == true)
        // A pairing says what is to become of it, and another adapter has other bonds.
        let adapters = [Self.adapter(1)]
        let pairing = try BondUse.find(stranger, in: BondDirectory(path), .first, isPairing: true, adapters: adapters)
        #expect(pairing.use != nil && pairing.warnings.count == 1)
        #expect(try Self.find(stranger, path, .first, [0]).use == nil)

        try Data((body + "checksum 00000000\n").utf8).write(to: URL(filePath: file))
        let whole = #expect(throws: BLEError.self) {
            try Self.find(RecordedBonds.phone.address, path, .first, [1])
        }
        #expect(whole?.code == .unusableState && whole?.subject == file)
        _ = folder
    }

    /// The run that has moved them may have been another program's.
    @Test func bondsThatWereMovedAsideEndTheCommandUntilTheyAreRemoved() async throws {
        let (path, folder) = try Self.directory()
        let moved = path + "/001122334401.bonds.damaged"
        let stranger = try #require(BluetoothAddress("AA:BB:CC:DD:EE:FF"))
        try Data("nonsense\n".utf8).write(to: URL(filePath: moved))
        #expect(unsafe chmod(moved, 0o600) == 0)

        let error = #expect(throws: BLEError.self) { try Self.find(stranger, path, .first, [1]) }
        #expect(error?.code == .unusableState && error?.hint?.contains("--no-bond") == true)
        let bonded = try Self.find(RecordedBonds.phone.address, path, .first, [1])
        #expect(bonded.use?.identity == RecordedBonds.phone && bonded.warnings.count == 1)
        let pairing = try BondUse.find(
            stranger, in: BondDirectory(path), .first, isPairing: true, adapters: [Self.adapter(1)])
        #expect(pairing.use != nil && pairing.warnings.count == 1)
        #expect(try Self.find(stranger, path, .first, [0]).use == nil)
        let listed = try await BuiltProgram.run(["bonds", "--bonds", path])
        #expect(listed.status == 0 && listed.output.contains("\(RecordedBonds.phone)"))
        #expect(listed.errors.contains(moved))

        // It was the whole file.
        try FileManager.default.removeItem(atPath: path + "/001122334401.bonds")
        let lost = #expect(throws: BLEError.self) { try Self.find(RecordedBonds.phone.address, path, .first, [1]) }
        #expect(lost?.code == .unusableState)

        try FileManager.default.removeItem(atPath: moved)
        let finding = try Self.find(stranger, path, .first, [1])
        #expect(finding.use == nil && finding.warnings.isEmpty)
        _ = folder
    }

    /// `blescan pair` connects to it without encryption, and `blescan forget` removes the rest of the bond.
    @Test func aBondThatWasMovedAsideIsPairedAgainOrForgotten() async throws {
        let (path, folder) = try Self.directory()
        let moved = path + "/001122334401.bonds.damaged"
        let stranger = try #require(BluetoothAddress("AA:BB:CC:DD:EE:FF"))
        try Data("BareBLE bonds 1\nAA:BB:CC:DD:EE:FF/public level=2\n".utf8).write(to: URL(filePath: moved))
        #expect(unsafe chmod(moved, 0o600) == 0)
        func isLost(_ address: BluetoothAddress, on adapter: UInt16) throws -> Bool? {
            try BondUse.find(
                address, in: BondDirectory(path), .first, isPairing: true, adapters: [Self.adapter(adapter)]
            ).use?.isLost
        }
        #expect(try isLost(stranger, on: 1) == true)
        #expect(try isLost(stranger, on: 0) == false)
        #expect(try isLost(RecordedBonds.phone.address, on: 1) == false)
        let forgotten = try await BuiltProgram.run(["forget", "AA:BB:CC:DD:EE:FF", "--bonds", path])
        #expect(forgotten.status == 0, "\(forgotten.errors)")
        #expect(!FileManager.default.fileExists(atPath: moved))
        #expect(try isLost(stranger, on: 1) == false)
        _ = folder
    }

    /// The table has no options: its refusal names the command that has them.
    @Test func theTableRefusesDevicesThatMayHaveABond() throws {
        let (path, folder) = try Self.directory()
        let directory = BondDirectory(path)
        let adapter = BluetoothAddress(rawValue: 0x0011_2233_4401)
        let stranger = try #require(BluetoothAddress("AA:BB:CC:DD:EE:FF"))
        let command = EquivalentCommand.browsing(.init(peer: "PEER"))
        func expectNone(_ address: BluetoothAddress, of adapter: BluetoothAddress?) throws {
            try BondUse.expectNone(with: address, of: adapter, in: directory, otherwise: command)
        }
        try expectNone(stranger, of: adapter)
        try expectNone(RecordedBonds.phone.address, of: BluetoothAddress(rawValue: 0x0011_2233_4400))
        for known in [adapter, nil] {
            let failure = #expect(throws: Failure.self) { try expectNone(RecordedBonds.phone.address, of: known) }
            #expect(failure?.hint == "`blescan browse PEER` uses the bond.")
        }

        let moved = path + "/001122334401.bonds.damaged"
        try Data("nonsense\n".utf8).write(to: URL(filePath: moved))
        #expect(unsafe chmod(moved, 0o600) == 0)
        let error = #expect(throws: BLEError.self) { try expectNone(stranger, of: adapter) }
        #expect(error?.hint?.contains("`blescan browse PEER --no-bond`") == true)
        let failure = #expect(throws: Failure.self) { try expectNone(RecordedBonds.phone.address, of: adapter) }
        #expect(failure?.status == .usage)
        _ = folder
    }

    @Test func theAdapterThatHasTheBondIsUsed() throws {
        let (path, folder) = try Self.directory()
        let use = try #require(try Self.find(RecordedBonds.phone.address, path, .first, [0, 1]).use)
        #expect(use.adapter == BluetoothAddress(rawValue: 0x0011_2233_4401) && use.identity == RecordedBonds.phone)
        for (selector, adapters) in [(AdapterSelector.named("hci0"), [UInt16(0), 1]), (.first, [0]), (.first, [])] {
            let finding = try Self.find(RecordedBonds.phone.address, path, selector, adapters)
            #expect(finding.use == nil)
            #expect(
                finding.warnings == [
                    "the bond with C6:55:44:33:22:11 belongs to the adapter 00:11:22:33:44:01, which is not used here"
                ])
        }
        _ = folder
    }

    /// The bonded device has an identity resolving key: any private address may be its own.
    @Test func aPrivateAddressMayBeABondedDevices() throws {
        let (path, folder) = try Self.directory()
        let address = try #require(BluetoothAddress("62:CC:28:F3:EE:75"))
        let use = try #require(try Self.find(address, path, .first, [1]).use)
        #expect(use.adapter != nil && use.identity == nil)
        _ = folder
    }

    /// A scan recognizes bonded devices without the management of the adapter.
    @Test func aScanHasTheIdentityKeysOfItsAdapterAlone() throws {
        let (path, folder) = try Self.directory()
        let adapter = BluetoothAddress(rawValue: 0x0011_2233_4401)
        let key = try #require(RecordedBonds.first.resolvingKey?.key)
        #expect(try BondDirectory(path).identityKeys(of: adapter) == [RecordedBonds.phone: key])
        #expect(try BondDirectory(path).identityKeys(of: BluetoothAddress(rawValue: 0x0011_2233_4402)).isEmpty)
        #expect(try BondDirectory(path).identityKeys(of: nil).isEmpty)
        _ = folder
    }

    @Test func anAdapterWithoutRightsStillForgets() async throws {
        let folder = try TestFolder()
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let peer = RecordedBonds.phone
            let store = try BondStore(directory: folder["bonds"])
            let address = try #require(BluetoothAddress("00:AA:01:00:00:42"))
            _ = try store.open(adapter: address).save(RecordedBonds.first, isForStorage: true)
            await radio.setPermissions([.commands])
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: store)
            let central = Central(configuration, radio: radio)
            let warnings = Lock<[String]>([])
            try await Forget.forget(.init(adapter: address, identity: peer), central) { text in
                warnings.withLock { $0.append(text) }
            }
            #expect(try store.all().allSatisfy { $0.records.isEmpty })
            #expect(warnings.withLock { $0.count } == 1)
        }
    }

    /// Otherwise the kernel kept the key of the second one.
    @Test func severalBondsAreForgottenWithTheRightForTheKernel() throws {
        let (path, folder) = try Self.directory()
        let arguments = [RecordedBonds.phone.address.description, "--bonds", path]
        #expect(try Forget.parse(arguments).keptForRadio == [.netRaw])
        let other = BluetoothAddress(rawValue: 0x0011_2233_4402)
        _ = try BondStore(directory: path).open(adapter: other).save(RecordedBonds.first, isForStorage: true)
        #expect(try Forget.parse(arguments).keptForRadio == [.netRaw, .netAdmin])
        #expect(try Forget.parse(arguments + ["--adapter", "00:11:22:33:44:02"]).keptForRadio == [.netRaw])
        _ = folder
    }

    // MARK: Advice

    @Test func theMessageNamesTheCommands() throws {
        let peer = try PeerArgument(argument: "AA:BB:CC:DD:EE:FF/random")
        let refused = BLEError(
            .insufficientSecurity, during: "read", because: "refused", attError: .insufficientAuthentication)
        #expect(refused.advised(peer).description.contains("`blescan pair AA:BB:CC:DD:EE:FF/random`"))
        #expect(
            refused.advised(peer, isBonded: true).description.contains(
                "`blescan forget AA:BB:CC:DD:EE:FF/random`, then `blescan pair AA:BB:CC:DD:EE:FF/random --require "
                    + "authenticated`"))
        // A screen takes no options.
        #expect(refused.advised(peer, isOnScreen: true).hint == refused.advised(peer).hint)
        let lock = PeerArgument.demo("lock")
        #expect(
            refused.advised(lock, isOnScreen: true).hint
                == "The peer requires a paired or encrypted link: `blescan browse demo:lock --pair --passkey 123456`.")
        #expect(refused.advised(lock).hint == "The peer requires a paired or encrypted link: --pair.")
        let rejected = BLEError(.bondRejected, during: "connect", because: "it has lost the key")
        #expect(
            rejected.advised(peer).description.contains(
                "`blescan forget AA:BB:CC:DD:EE:FF/random`, then `blescan pair AA:BB:CC:DD:EE:FF/random`"))
        // No pairing makes a peer authorize anything.
        let unauthorized = BLEError(
            .insufficientSecurity, during: "read", because: "refused", attError: .insufficientAuthorization)
        #expect(unauthorized.advised(peer) == unauthorized && unauthorized.advised(peer).hint == nil)
        let socket = try PeerArgument(argument: "unix:/nowhere")
        #expect(
            refused.advised(socket).hint
                == "The peer requires a paired or encrypted link, and a link on a socket cannot be either.")
    }

    /// The state directory of the user, or the usual one.
    @Test func theUsualDirectoryIsTheUsers() async throws {
        let outcome = try await BuiltProgram.run(
            ["bonds"], environment: ["XDG_STATE_HOME": "/nowhere/state", "HOME": "/nowhere"])
        let place = geteuid() == 0 ? "/var/lib/bareble/bonds" : "/nowhere/state/bareble/bonds"
        guard !FileManager.default.fileExists(atPath: place) else { return }
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains(place))
    }
}
