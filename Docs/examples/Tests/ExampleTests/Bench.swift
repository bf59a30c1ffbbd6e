import BareBLE
import BareBLETestKit
import Dispatch
import Glibc
import Logging
import ServiceLifecycle
import Synchronization
import SystemService

/// A virtual radio in real time with one peripheral, and a daemon on it as `Daemon.run` makes it.
struct Bench: Sendable {
    /// No pauses to speak of.
    static let hasty = Session.Options(
        reconnect: .backoff(initial: .milliseconds(1), max: .milliseconds(2), jitter: 0))

    let radio = VirtualRadio()
    let peripheral: VirtualPeripheral
    let peer: PeerArgument
    let central: Central
    let lines = Lines()

    init(_ device: VirtualDevice) async throws {
        central = Central(radio: radio)
        peripheral = await radio.add(device, latency: .zero)
        guard let peer = await radio.id(of: peripheral) else {
            throw WaitTimeout(what: "an address is there", seen: [])
        }
        self.peer = .address(peer)
    }

    /// The central of a daemon that keeps a state.
    func central(keeping state: StateStore) -> Central {
        var configuration = Configuration()
        configuration.stateStore = state
        return Central(configuration, radio: radio)
    }

    /// The central of a daemon that keeps bonds.
    func central(keeping bonds: BondStore) -> Central {
        var configuration = Configuration()
        configuration.security = SecurityConfiguration(bonds: bonds)
        return Central(configuration, radio: radio)
    }

    /// The service with its reporter, beside each other.
    func group(_ service: any Service, _ session: Session, _ notifier: ServiceNotifier? = nil)
        -> ServiceGroup
    {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let reporter = SessionReporter(session, clock: central.clock, notifier: notifier, logger: logger)
        return Daemon.group(service, reporter, logger)
    }
}

/// A folder that goes away with its last reference.
final class Folder: Sendable {
    let path = "/tmp/bareble-example-\(getpid())-\(UInt32.random(in: 0 ... .max))"

    init() throws {
        guard mkdir(path, 0o700) == 0 else { throw WaitTimeout(what: "\(path) is made", seen: []) }
    }

    deinit {
        // Flat: a state, its lock and a cache.
        if let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                }
                unlink("\(path)/\(name)")
            }
            closedir(folder)
        }
        rmdir(path)
    }
}

/// The lines that a daemon has written.
final class Lines: Sendable {
    private let written = Mutex<[String]>([])

    var all: [String] { written.withLock { $0 } }

    func write(_ line: String) {
        written.withLock { $0.append(line) }
    }

    /// Waits until `count` of them begin like this.
    func wait(for beginning: String, count: Int = 1) async throws {
        try await waited(for: "\(count) lines begin with `\(beginning)`", seen: { all }) {
            all.count { $0.hasPrefix(beginning) } >= count
        }
    }
}

/// What a test waited for and did not get.
struct WaitTimeout: Error, CustomStringConvertible {
    let what: String
    let seen: [String]
    var description: String { "the time was over before \(what); there was: \(seen)" }
}

/// Waits until `condition` holds, looking every few milliseconds; far longer than anything sensible takes.
func waited(
    for what: String, seen: () -> [String] = { [] }, _ condition: () async throws -> Bool
) async throws {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(300)
    while try await !condition() {
        if clock.now > end { throw WaitTimeout(what: what, seen: seen()) }
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// Holds up the thread that comes to it.
final class Gate: Sendable {
    private let isReached = Atomic(false)
    private let semaphore = DispatchSemaphore(value: 0)

    func stop() {
        isReached.store(true, ordering: .releasing)
        semaphore.wait()
    }

    func reached() async throws {
        try await waited(for: "the gate is reached") { isReached.load(ordering: .acquiring) }
    }

    func open() {
        semaphore.signal()
    }
}
