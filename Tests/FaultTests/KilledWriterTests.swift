import BLELinux
import BareBLE
import Foundation
import TestSupport
import Testing

/// A process that is killed, or a disk that fails, at each system call of a write.
@Suite(.serialized) struct KilledWriterTests {
    /// A directory with `before` in it, and a plan for what happens there from now on.
    private func disk(_ thing: StoredThing, _ before: StoredThing.Version) throws -> (Folder, FaultPlan) {
        let folder = try Folder(inMemory: true)
        if before != .nothing { try thing.save(before, in: folder) }
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        return (folder, plan)
    }

    /// The number of calls of a save.
    private func calls(_ thing: StoredThing, _ before: StoredThing.Version, _ kinds: SystemCalls) throws -> Int {
        let (folder, plan) = try disk(thing, before)
        try thing.save(.new, in: folder)
        #expect(plan.openCount == 0)
        return plan.count(kinds)
    }

    /// What was written is on the disk before it gets its name, and the name before the call returns.
    @Test("the order of a write", .row("O22"), arguments: StoredThing.all) func aWriteIsOnTheDiskBeforeItHasItsName(
        thing: StoredThing
    ) throws {
        let (folder, plan) = try disk(thing, .old)
        try thing.save(.new, in: folder)
        let order = plan.notes.map(\.call).filter { [.write, .fsync, .rename].contains($0) }
        #expect(order.suffix(4) == [.write, .fsync, .rename, .fsync])
        #expect(folder.names.filter { $0.hasSuffix(".tmp") } == [])
    }

    /// They may be files of keys.
    @Test("the order of a removal") func aRemovalIsOnTheDiskBeforeTheCallReturns() throws {
        let folder = try Folder(inMemory: true)
        for name in ["first", "second", "third"] { try folder.write("key", to: name) }
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        func order() -> [SystemCall] { plan.notes.map(\.call).filter { [.unlink, .fsync].contains($0) } }
        let opened = try StoredFolder(folder.path)
        // Nothing depends on this one.
        try opened.remove("first")
        #expect(order() == [.unlink] && folder.names == ["second", "third"])
        // The directory is synced once for all of them, and for the earlier one also where none is left.
        try opened.removeLastingly(["second", "third", "missing"])
        #expect(order() == [.unlink, .unlink, .unlink, .unlink, .fsync] && folder.names == [])
        try opened.removeLastingly([String]())
        #expect(order().suffix(2) == [.fsync, .fsync])
    }

    @Test("killed at each call", .row("O22"), arguments: StoredThing.all, [StoredThing.Version.nothing, .old])
    func aKilledWriterLeavesTheOldOrTheNewFile(thing: StoredThing, before: StoredThing.Version) throws {
        let count = try calls(thing, before, .changing)
        #expect(count >= 6)
        var seen: Set<StoredThing.Version> = []
        for index in 0..<count {
            for written: Int32 in [0, 1, 30] {
                let (folder, plan) = try disk(thing, before)
                plan.set(.changing, .stop(written), skip: index)
                try? thing.save(.new, in: folder)
                #expect(plan.isStopped)
                #expect(plan.openCount == 0)
                plan.leavePaths()
                try restarted(thing, in: folder) { found in
                    #expect(found == before || found == .new, "killed at call \(index)")
                    if let found { seen.insert(found) }
                }
            }
        }
        #expect(seen == [before, .new])
    }

    /// The next process: it finds one of the versions, and can write.
    private func restarted(
        _ thing: StoredThing, in folder: Folder, _ check: (StoredThing.Version?) -> Void
    ) throws {
        let copy = try Folder(inMemory: true)
        for name in folder.names {
            try FileManager.default.copyItem(atPath: "\(folder.path)/\(name)", toPath: "\(copy.path)/\(name)")
        }
        check(try thing.load(from: copy))
        if thing.description != "cache" { #expect(!copy.names.contains { $0.hasSuffix(".tmp") }, "nothing is left") }
        try thing.save(.new, in: copy)
        #expect(try thing.load(from: copy) == .new)
        #expect(!copy.names.contains { $0.hasSuffix(".tmp") }, "the next writer leaves nothing")
    }

    /// A name like that of a writer's temporary file, which the library did not make, is not removed.
    @Test("what killed writers left goes, and nothing else", .row("O22"), arguments: StoredThing.all)
    func theFilesOfKilledWritersAreRemoved(
        thing: StoredThing
    ) throws {
        let folder = try Folder(inMemory: true)
        let path = thing.path(in: folder)
        let strange = [".1.tmp", ".x.1.tmp", ".1.2.tmp.old", ".1.2"].map { path + $0 }
        for name in strange { try Data([1]).write(to: URL(filePath: name)) }
        for number in 0..<50 { try Data([1]).write(to: URL(filePath: "\(path).\(number).\(number).tmp")) }
        // Somebody is writing this one.
        let written = path + ".77.1.tmp"
        try Data([1]).write(to: URL(filePath: written))
        let descriptor = unsafe open(written, O_RDWR)
        #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        try thing.save(.new, in: folder)
        let left = folder.names.filter { $0.contains(".tmp") || $0.hasSuffix(".1.2") }.map { folder.path + "/" + $0 }
        #expect(left.sorted() == (strange + [written]).sorted())
        close(descriptor)
        try thing.save(.old, in: folder)
        #expect(!folder.names.contains(String(written.dropFirst(folder.path.count + 1))))
        #expect(try thing.load(from: folder) == .old)
    }

    /// A peer that never comes back has no next writer.
    @Test("a directory of caches keeps no temporary files", .row("O22")) func remainsOfOthers() throws {
        let folder = try Folder(inMemory: true)
        for number in 0..<50 {
            try Data([1]).write(to: URL(filePath: "\(folder.path)/C0000000\(1_000 + number)-random.gatt.9.1.tmp"))
        }
        try StoredThing.cache.save(.new, in: folder)
        #expect(folder.names == ["C00000000007-random.gatt"])
    }

    @Test(
        "each call fails", .row("O24"), arguments: StoredThing.all,
        [ENOSPC, EDQUOT, EROFS, EIO, EACCES, EMFILE, ENOMEM])
    func aFailedCallLeavesTheOldOrTheNewFile(thing: StoredThing, errno: Int32) throws {
        let kinds = SystemCalls.changing.union(SystemCalls(.fstat, .lstat, .stat, .flock, .opendir))
        let count = try calls(thing, .old, kinds)
        var failures = 0
        for index in 0..<count {
            let (folder, plan) = try disk(thing, .old)
            plan.set(kinds, .fail(errno), skip: index)
            do throws(BLEError) {
                try thing.save(.new, in: folder)
                plan.clear()
                #expect(try thing.load(from: folder) == .new, "call \(index)")
            } catch {
                plan.clear()
                failures += 1
                #expect(error.errorNumber == errno)
                #expect(error.hint != nil, "\(error)")
                #expect(error.code == code(errno) || error.code == thing.notChanged, "\(error)")
                #expect(try thing.load(from: folder) == .old, "call \(index)")
            }
            #expect(plan.hits == 1)
            #expect(plan.openCount == 0)
            #expect(folder.names.filter { $0.hasSuffix(".tmp") } == [], "call \(index)")
            // The disk is well again.
            try thing.save(.new, in: folder)
            #expect(try thing.load(from: folder) == .new)
        }
        #expect(failures > 3)
    }

    private func code(_ errno: Int32) -> BLEError.Code {
        switch errno {
        case ENOSPC, EDQUOT: .diskFull
        case EROFS, EACCES: .notPermitted
        default: .system
        }
    }

    /// A disk that fills up in the middle of a write.
    @Test("a write that gets half of it out", .row("O24"), arguments: StoredThing.all)
    func aHalfWrittenFileLeavesTheOldOne(
        thing: StoredThing
    )
        throws
    {
        let (folder, plan) = try disk(thing, .old)
        plan.take(path: folder.path)
        plan.set(SystemCalls(.write), .short(7), times: 3)
        plan.set(SystemCalls(.write), .fail(ENOSPC))
        do throws(BLEError) {
            try thing.save(.new, in: folder)
            Issue.record("saved on a full disk")
        } catch {
            #expect(error.code == thing.notChanged ?? .diskFull)
        }
        #expect(try thing.load(from: folder) == .old)
        plan.clear()
        plan.set(SystemCalls(.write), .short(7), times: nil)
        try thing.save(.new, in: folder)
        #expect(try thing.load(from: folder) == .new, "in many pieces")
    }

    @Test("each call on a file is interrupted", .row("O09"), arguments: StoredThing.all)
    func anInterruptedCallIsRepeated(
        thing: StoredThing
    )
        throws
    {
        let (folder, plan) = try disk(thing, .old)
        let kinds = SystemCalls(.open, .read, .write, .fsync, .flock, .ftruncate, .close)
        plan.set(kinds, .interrupt, times: nil)
        try thing.save(.new, in: folder)
        #expect(try thing.load(from: folder) == .new)
        #expect(plan.hits > 5)
        #expect(plan.openCount == 0)
    }
}
