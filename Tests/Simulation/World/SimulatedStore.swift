import BLECore
import BareBLE
import FaultySystem
import Glibc
import Synchronization

// The directory with the bonds of one adapter, on a disk that fails when the script says so,
// and what other programs do to it.

/// The stored bonds of one program.
final class SimulatedStore: Sendable {
    /// Makes the names of directories differ.
    private static let lastNumber = Atomic<Int>(0)

    let adapter: String
    private let path: String
    private let currentPlan: Atomic<Int32>
    private let old = Mutex<(file: String, bytes: [UInt8])?>(nil)
    private let changes = Atomic<Int>(0)
    private let isFailing = Atomic<Bool>(false)
    private let isTouched = Atomic<Bool>(false)

    init(adapter: String) {
        self.adapter = adapter
        let number = Self.lastNumber.add(1, ordering: .relaxed).newValue
        let isInMemory = unsafe access("/dev/shm", W_OK) == 0
        // Its faults concern every path that begins like it: no number may be the beginning of another one's.
        path = "\(isInMemory ? "/dev/shm" : "/tmp")/bareble-simulation.\(getpid()).\(number).store"
        currentPlan = Atomic(Self.plan(for: path))
    }

    deinit { faulty_end(plan) }

    private var plan: Int32 { currentPlan.load(ordering: .relaxed) }

    private static func plan(for path: String) -> Int32 {
        let plan = faulty_begin()
        unsafe path.withCString { unsafe faulty_take_path(plan, $0) }
        return plan
    }

    /// A store for a program that begins.
    func open() throws -> BondStore { try BondStore(directory: path) }

    /// What is stored now, without the lock; `nil` if it cannot be read.
    var records: [BondRecord]? {
        guard let stored = try? BondStore(directory: path).all(), stored.allSatisfy({ $0.damage == nil }) else {
            return nil
        }
        return stored.flatMap(\.records)
    }

    /// Grows with each change that another program makes, or this one by forgetting:
    /// what was known before may not hold.
    var version: Int { changes.load(ordering: .relaxed) }

    func changed() { _ = changes.add(1, ordering: .relaxed) }

    /// Whether another program has changed the file.
    var hasOthersChanges: Bool { isTouched.load(ordering: .relaxed) }

    /// Removes the directory.
    func remove() {
        faulty_clear(plan)
        faulty_leave_paths(plan)
        for name in names { _ = unsafe unlink("\(path)/\(name)") }
        _ = unsafe rmdir(path)
    }

    // MARK: Faults

    /// Whether changes of files may fail now.
    var mayFail: Bool { isFailing.load(ordering: .relaxed) }

    /// Whether the process has been killed.
    var isStopped: Bool { faulty_is_stopped(plan) != 0 }

    /// Has every change of a file fail from the one with this number on.
    func fail(_ errno: Int32, after count: Int) {
        isFailing.store(true, ordering: .relaxed)
        // Not the opening: the bonds can be read.
        let calls: [faulty_call] = [FAULTY_WRITE, FAULTY_FSYNC, FAULTY_RENAME, FAULTY_FCHMOD]
        add(calls, skip: count, times: -1, FAULTY_FAIL, errno)
    }

    /// Kills the process with a change of a file: from then on nothing changes any.
    func stop(after count: Int) {
        isFailing.store(true, ordering: .relaxed)
        let calls: [faulty_call] = [FAULTY_OPEN, FAULTY_WRITE, FAULTY_FSYNC, FAULTY_RENAME, FAULTY_FCHMOD]
        add(calls, skip: count, times: 1, FAULTY_STOP, 3)
    }

    /// The disk is well again.
    func heal() {
        faulty_clear(plan)
        isFailing.store(false, ordering: .relaxed)
    }

    /// A process that has not been killed uses the directory.
    func revive() {
        faulty_end(plan)
        currentPlan.store(Self.plan(for: path), ordering: .relaxed)
        isFailing.store(false, ordering: .relaxed)
    }

    private func add(_ calls: [faulty_call], skip: Int, times: Int32, _ effect: faulty_effect, _ value: Int32) {
        let bits = calls.reduce(0) { $0 | UInt64(1) << UInt64($1.rawValue) }
        faulty_add(
            plan,
            faulty_rule(
                calls: bits, descriptor: -1, skip: Int32(skip), times: times, effect: Int32(effect.rawValue),
                value: value))
    }

    // MARK: Other programs

    /// Keeps a copy of the file of bonds, for `restore`.
    func keep() {
        guard let file, !mayFail else { return }
        let bytes = Self.read(file)
        old.withLock { $0 = (file, bytes) }
    }

    /// Puts the kept copy in the place of the file.
    func restore() {
        guard let (file, bytes) = old.withLock({ $0 }), !mayFail else { return }
        changed()
        isTouched.store(true, ordering: .relaxed)
        let number = unsafe Glibc.open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard number >= 0 else { return }
        _ = unsafe bytes.withUnsafeBytes { unsafe write(number, $0.baseAddress, $0.count) }
        _ = close(number)
    }

    /// Removes the file of bonds.
    func lose() {
        changed()
        isTouched.store(true, ordering: .relaxed)
        if let file { _ = unsafe unlink(file) }
    }

    private var file: String? { names.first { $0.hasSuffix(".bonds") }.map { "\(path)/\($0)" } }

    private var names: [String] {
        guard let directory = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    private static func read(_ path: String) -> [UInt8] {
        let number = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return [] }
        defer { _ = close(number) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(number, $0.baseAddress, $0.count) }
        return Array(bytes.prefix(max(0, count)))
    }
}
