import BLECore
import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// Bonds on a disk that fails, or under a process that is killed, beyond what all stored files have in common.
@Suite(.serialized) struct BondFaultTests {
    /// A change of the bonds.
    struct Change: Sendable, CustomStringConvertible {
        let description: String
        let apply: @Sendable (OpenBondStore) throws(BLEError) -> Void
    }

    private static let bond = RecordedBonds.first
    private static let adapter = BluetoothAddress(rawValue: 0x00AA_0100_0042)

    static let changes = [
        Change(description: "save") { store throws(BLEError) in
            _ = try store.save(RecordedBonds.second, isForStorage: true)
        },
        Change(description: "replace") { store throws(BLEError) in
            _ = try store.save(bond, isForStorage: true, replacing: bond.identity)
        },
        Change(description: "forget") { store throws(BLEError) in _ = try store.forget(bond.identity) },
        Change(description: "mark") { store throws(BLEError) in _ = try store.markRejected(bond.identity, at: 5) },
        Change(description: "note") { store throws(BLEError) in _ = try store.noteEncrypted(bond.identity, at: 5) },
    ]

    private func open(_ folder: Folder) throws(BLEError) -> OpenBondStore {
        try BondStore(directory: folder.path).open(adapter: Self.adapter)
    }

    private func put(_ bytes: [UInt8], in folder: Folder) throws {
        try StoredThing.bonds.put(bytes, in: folder)
    }

    @Test("bonds that cannot be written are used as they are", .row("O24"), arguments: [EROFS, EACCES])
    func bondsThatCannotBeWrittenAreUsedAsTheyAre(errno: Int32) throws {
        var refusals = 0
        // One of these calls opens the lock.
        for index in 0..<6 {
            let folder = try Folder(inMemory: true)
            var former: OpenBondStore? = try open(folder)
            _ = try former?.save(Self.bond, isForStorage: true)
            let records = try #require(try former?.load().records)
            former = nil
            let plan = try FaultPlan()
            plan.take(path: folder.path)
            plan.set(SystemCalls(.open), .fail(errno), skip: index)
            guard let store = try? open(folder) else { continue }
            plan.clear()
            #expect(try store.load().records == records)
            do throws(BLEError) {
                _ = try store.markRejected(Self.bond.identity, at: 5)
                _ = try store.noteEncrypted(Self.bond.identity, at: Self.bond.bondedAt)
            } catch {
                refusals += 1
                #expect(error.code == .bondNotStored && error.errorNumber == errno, "\(error)")
                #expect(try store.load().records == records)
            }
        }
        #expect(refusals == 1)
    }

    /// The error is the same whichever call fails, and the bonds on the disk are the former ones.
    @Test(
        "each call of a change fails", .row("O24"), arguments: changes, [ENOSPC, EDQUOT, EROFS, EIO, EACCES, ENOMEM])
    func aFailedChangeLeavesTheFormerBonds(change: Change, errno: Int32) throws {
        let kinds = SystemCalls.changing.union(SystemCalls(.fstat, .lstat, .read))
        var failures = 0
        var index = 0
        while true {
            let folder = try Folder(inMemory: true)
            let store = try open(folder)
            _ = try store.save(Self.bond, isForStorage: true)
            let former = try store.load().records
            let plan = try FaultPlan()
            plan.take(path: folder.path)
            plan.set(kinds, .fail(errno), skip: index)
            do throws(BLEError) {
                try change.apply(store)
            } catch {
                failures += 1
                #expect(error.code == .bondNotStored, "\(error)")
                #expect(error.errorNumber == errno)
                #expect(error.hint != nil, "\(error)")
                plan.clear()
                #expect(try store.load().records == former, "call \(index)")
            }
            #expect(plan.openCount == 0)
            guard plan.hits == 1 else { break }
            #expect(folder.names.filter { $0.hasSuffix(".tmp") } == [], "call \(index)")
            // The disk is well again.
            plan.clear()
            try? change.apply(store)
            #expect(try store.load().damage == nil)
            index += 1
        }
        #expect(failures > 5)
    }

    /// A list of names that fails is none without such files.
    @Test("bonds that were moved aside are not forgotten where a call fails", arguments: [EMFILE, EACCES])
    func unlisted(errno: Int32) throws {
        let folder = try Folder(inMemory: true)
        try put([1, 2, 3], in: folder)
        #expect(try open(folder).load().movedTo != nil)
        // One of these calls opens the directory to list it.
        for index in 0..<12 {
            let plan = try FaultPlan()
            plan.take(path: folder.path)
            plan.set(SystemCalls(.open), .fail(errno), skip: index)
            guard let contents = try? open(folder).loadFirst() else { continue }
            #expect(contents.damage != nil, "call \(index)")
        }
    }

    /// The kernel keeps no key of it, and the next pairing is like the first.
    @Test("a pairing on a full disk leaves nothing", .row("O24")) func pairingOnAFullDisk() async throws {
        let folder = try Folder(inMemory: true)
        let store = try BondStore(directory: folder.path)
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let device = await radio.add(.lock)
            let peer = try #require(await radio.id(of: device))
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: store)
            let central = Central(configuration, radio: radio)
            let options = PairingOptions(agent: .passkey(Passkey(123_456)!))
            let link = try await central.connect(peer)
            let plan = try FaultPlan()
            plan.take(path: folder.path)
            plan.set(SystemCalls(.write), .fail(ENOSPC), times: nil)
            do throws(BLEError) {
                try await link.pair(options)
                Issue.record("it was paired")
            } catch {
                #expect(error.code == .bondNotStored && error.errorNumber == ENOSPC, "\(error)")
                #expect(error.hint?.hasPrefix("Free some space") == true, "\(error)")
            }
            plan.clear()
            await link.disconnect()
            #expect(try await central.bonds().isEmpty)
            #expect(await radio.longTermKeys().isEmpty)
            #expect(folder.names.filter { !$0.hasSuffix(".lock") } == [])
            let again = try await central.connect(peer)
            try await again.pair(options)
            #expect(try await central.bonds().count == 1)
            await again.disconnect()
        }
    }

    /// The file comes first: a bond without its key in the kernel would be of no use, and be there again after a
    /// restart.
    @Test("a bond that cannot be forgotten stays in force", .row("O24")) func forgettingOnAFullDisk() async throws {
        let folder = try Folder(inMemory: true)
        let store = try BondStore(directory: folder.path)
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let device = await radio.add(.lock)
            let peer = try #require(await radio.id(of: device))
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: store)
            let central = Central(configuration, radio: radio)
            let link = try await central.connect(peer)
            try await link.pair(PairingOptions(agent: .passkey(Passkey(123_456)!)))
            let keys = await radio.longTermKeys()
            let plan = try FaultPlan()
            plan.take(path: folder.path)
            plan.set(SystemCalls(.write), .fail(ENOSPC), times: nil)
            do throws(BLEError) {
                try await central.forgetBond(with: peer)
                Issue.record("it was forgotten")
            } catch {
                #expect(error.code == .bondNotStored && error.errorNumber == ENOSPC, "\(error)")
            }
            plan.clear()
            #expect(try await central.bonds().count == 1)
            #expect(await radio.longTermKeys() == keys)
            #expect(await link.security.isEncrypted)
            try await central.forgetBond(with: peer)
            _ = await link.disconnected()
            #expect(try await central.bonds().isEmpty)
            #expect(await radio.longTermKeys().isEmpty)
        }
    }

    /// A file with one bond, and a line that is none.
    private var damaged: [UInt8] {
        let good = String(decoding: BondFile(generation: 9, records: [Self.bond]).bytes, as: UTF8.self)
        let body = good.split(separator: "\n").dropLast().map { $0 + "\n" }.joined() + "nonsense\n"
        let checksum = CRC32.checksum(body.utf8)
        let digits = Hex.encode([24, 16, 8, 0].map { UInt8(truncatingIfNeeded: checksum >> UInt32($0)) })
        return Array((body + "checksum \(digits)\n").utf8)
    }

    /// Wherever a process was killed, the damaged line is in one of the files, and the bond in its own.
    @Test("killed while it sets a line aside", .row("O22", "O25")) func killedWhileSettingAside() throws {
        var index = 0
        while true {
            let folder = try Folder(inMemory: true)
            try put(damaged, in: folder)
            let store = try open(folder)
            let plan = try FaultPlan()
            plan.take(path: folder.path)
            plan.set(.changing, .stop(1), skip: index)
            _ = try? store.load()
            let wasStopped = plan.isStopped
            plan.leavePaths()
            let text = folder.names.filter { $0.contains(".bonds") && !$0.hasSuffix(".tmp") }
                .compactMap { try? String(contentsOfFile: "\(folder.path)/\($0)", encoding: .utf8) }.joined()
            #expect(text.contains("\nnonsense\n"), "call \(index)")
            let copy = try Folder(inMemory: true)
            for name in folder.names where !name.hasSuffix(".lock") {
                try FileManager.default.copyItem(atPath: "\(folder.path)/\(name)", toPath: "\(copy.path)/\(name)")
            }
            let again = try open(copy)
            #expect(try again.load().records == [Self.bond])
            #expect(try again.load().damage == nil)
            guard wasStopped else { break }
            index += 1
        }
        #expect(index > 6)
    }

    /// The other bonds are of use without a disk that can be written to.
    @Test("a damaged line on a read-only disk", .row("O25")) func bondsBesideADamagedLineAreUsedOnAReadOnlyDisk() throws
    {
        let folder = try Folder(inMemory: true)
        try put(damaged, in: folder)
        let store = try open(folder)
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        plan.set(SystemCalls(.rename), .fail(EROFS), times: nil)
        for _ in 0..<2 {
            let contents = try store.load()
            #expect(contents.records == [Self.bond])
            #expect(contents.damage?.code == .unusableState)
            #expect(contents.movedTo == nil)
        }
        #expect(try Data(contentsOf: URL(filePath: StoredThing.bonds.path(in: folder))) == Data(damaged))
        do throws(BLEError) {
            _ = try store.forget(Self.bond.identity)
            Issue.record("changed a damaged file")
        } catch {
            #expect(error.code == .unusableState)
        }
    }

    /// The program knows of it whichever call fails: of the mark, or of the reading after it.
    @Test("a rejected bond on a disk that fails", .row("O24", "S02")) func aRejectedBondIsReportedWhicheverCallFails()
        async throws
    {
        var index = 0
        var isHit = true
        while isHit {
            let folder = try Folder(inMemory: true)
            let store = try BondStore(directory: folder.path)
            isHit = try await VirtualTime.run { [index] time in
                let radio = VirtualRadio(time: time)
                let device = await radio.add(.lock)
                let peer = try #require(await radio.id(of: device))
                var configuration = Configuration()
                configuration.security = SecurityConfiguration(bonds: store)
                let central = Central(configuration, radio: radio)
                let options = PairingOptions(agent: .passkey(Passkey(123_456)!), replacing: .lostByPeer)
                let link = try await central.connect(peer)
                try await link.pair(options)
                await link.disconnect()
                await device.forgetBonds()
                let plan = try FaultPlan()
                plan.take(path: folder.path)
                let kinds = SystemCalls.changing.union(SystemCalls(.fstat, .lstat, .read))
                plan.set(kinds, .fail(EIO), skip: index)
                await #expect(throws: BLEError(.bondRejected, during: "connect", because: "")) {
                    _ = try await central.connect(peer)
                }
                let isHit = plan.hits > 0
                plan.clear()
                #expect(try await central.bonds().first?.rejectedSince != nil, "call \(index)")
                // A reading of the disk does not undo it.
                _ = try await central.connect(peer, ConnectOptions(security: .pairing(options)))
                #expect(try await central.bonds().first?.rejectedSince == nil, "call \(index)")
                return isHit
            }
            index += 1
        }
        #expect(index > 10)
    }
}
