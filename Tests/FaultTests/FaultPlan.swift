import BLELinux
import FaultySystem
import Glibc
import Testing

/// A kind of system call.
enum SystemCall: UInt32, CaseIterable, Sendable {
    case socket, socketpair, bind, connect, getsockopt, setsockopt, getsockname, getpeername, shutdown
    case recvmsg, recv, send, sendmsg, poll
    case epollCreate, epollControl, epollWait, eventfd, timerfdCreate, timerfdSet
    case read, write, ioctl, open, close, fsync, fstat, lstat, stat, rename, unlink, fchmod, ftruncate, flock, realpath
    case opendir, lseek, pipe, memfd, accept
}

/// A set of kinds.
struct SystemCalls: OptionSet, Hashable, Sendable {
    let rawValue: UInt64

    init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    init(_ calls: SystemCall...) {
        rawValue = calls.reduce(0) { $0 | 1 << UInt64($1.rawValue) }
    }

    static let all = SystemCalls(rawValue: (1 << UInt64(SystemCall.allCases.count)) - 1)
    static let receiving = SystemCalls(.recvmsg, .recv)
    static let sending = SystemCalls(.send, .sendmsg)
    /// The calls that change a directory.
    static let changing = SystemCalls(.open, .write, .fchmod, .fsync, .rename, .unlink, .ftruncate)
}

/// One test's faults: which of its system calls fail, and what they were. It lets go of everything when it goes away.
final class FaultPlan: Sendable {
    /// A call that was made, and what came of it: its result, or the errno as a negative number.
    struct Note: Hashable, Sendable, CustomStringConvertible {
        let call: SystemCall
        let descriptor: Int32
        let result: Int32

        var description: String { "\(call)(\(descriptor)) = \(result)" }
    }

    enum Effect: Hashable, Sendable {
        case fail(Int32)
        /// EINTR, and the repeated call goes through.
        case interrupt
        case returning(Int32)
        /// At most so many bytes.
        case short(Int32)
        /// A packet of another length than it has.
        case length(Int32)
        /// A packet with the news that the kernel has dropped so many.
        case drops(Int32)
        /// A packet that the kernel drops.
        case lose
        /// The result of `poll`.
        case state(Int32)
        /// The process is killed; a write has got so many bytes out.
        case stop(Int32)
    }

    let number: Int32

    init() throws {
        number = faulty_begin()
        try #require(number > 0, "too many plans at once")
    }

    deinit {
        faulty_end(number)
    }

    // MARK: What belongs to it

    func take(_ descriptor: Int32) {
        faulty_take_descriptor(number, descriptor)
    }

    func take(path: String) {
        unsafe path.withCString { unsafe faulty_take_path(number, $0) }
    }

    /// Lets go of all paths.
    func leavePaths() {
        faulty_leave_paths(number)
    }

    /// Has the calls of a loop's thread belong to the plan.
    func join(_ loop: EventLoop) async {
        await on(loop) { faulty_join(self.number) }
    }

    func leave(_ loop: EventLoop) async {
        await on(loop) { faulty_join(0) }
    }

    /// Has the calls that `body` makes on this thread belong to the plan.
    func joined<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        faulty_join(number)
        defer { faulty_join(0) }
        return try body()
    }

    private func on(_ loop: EventLoop, _ body: @Sendable @escaping () -> Void) async {
        await withTaskExecutorPreference(loop) { await Self.run(body) }
    }

    @concurrent private static func run(_ body: @Sendable () -> Void) async { body() }

    // MARK: Rules

    /// `times` of these calls, after the first `skip` ones, end like that; without a number all of them.
    func set(
        _ calls: SystemCalls, _ effect: Effect, on descriptor: Int32 = -1, skip: Int = 0, times: Int? = 1
    ) {
        let (kind, value): (faulty_effect, Int32) =
            switch effect {
            case .fail(let errno): (FAULTY_FAIL, errno)
            case .interrupt: (FAULTY_INTERRUPT, 0)
            case .returning(let value): (FAULTY_RETURN, value)
            case .short(let count): (FAULTY_SHORT, count)
            case .length(let length): (FAULTY_LENGTH, length)
            case .drops(let count): (FAULTY_DROPS, count)
            case .lose: (FAULTY_LOSE, 0)
            case .state(let bits): (FAULTY_STATE, bits)
            case .stop(let count): (FAULTY_STOP, count)
            }
        faulty_add(
            number,
            faulty_rule(
                calls: calls.rawValue, descriptor: descriptor, skip: Int32(skip), times: Int32(times ?? -1),
                effect: Int32(kind.rawValue), value: value))
    }

    /// Takes all rules back.
    func clear() {
        faulty_clear(number)
    }

    // MARK: Bluetooth that is not there

    /// Makes Bluetooth sockets of this plan's calls ends of socket pairs, on a machine with one adapter of this
    /// address.
    func pretendBluetooth(_ address: UInt64) {
        faulty_pretend_bluetooth(number, address)
    }

    /// Has such sockets connect in their own time.
    func pretendSlowConnect() {
        faulty_pretend_slow_connect(number, 1)
    }

    /// The other end of the next socket that was bound (HCI, 1) or connected (L2CAP, 0); negative when there is none.
    func takeFarEnd(ofProtocol number: Int32) -> Int32 {
        faulty_take_far_end(self.number, number)
    }

    // MARK: What has happened

    func count(_ calls: SystemCalls = .all) -> Int {
        faulty_count(number, calls.rawValue)
    }

    /// The number of calls that a rule has hit.
    var hits: Int { faulty_hits(number) }

    var notes: [Note] {
        var notes: [Note] = []
        var note = faulty_note()
        while unsafe faulty_note_at(number, notes.count, &note) != 0 {
            guard let call = SystemCall(rawValue: UInt32(note.call)) else { break }
            notes.append(Note(call: call, descriptor: note.descriptor, result: note.result))
        }
        return notes
    }

    /// The number of its open descriptors.
    var openCount: Int { Int(faulty_open_count(number)) }

    var isStopped: Bool { faulty_is_stopped(number) != 0 }
}
