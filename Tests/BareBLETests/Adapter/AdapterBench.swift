import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Logging
import Testing

/// An adapter with a stand-in controller, and what the kernel would say beside it.
struct AdapterBench: Sendable {
    let controller: StandInController
    let kernel = Lock(Kernel())
    let adapter: Adapter
    /// The time of all of it.
    let clock: CentralClock

    /// The kernel's data about the machine.
    struct Kernel {
        var controllers = [
            ControllerInfo(index: 0, name: "hci0", address: StandInController.ownAddress, isUp: true)
        ]
        var descriptors: [(commands: Int32, reports: Int32)] = []
        var capabilities: UInt64 = 1 << 12 | 1 << 13
        var connects = 0
        var connectErrors: [Int32] = []
        var farEnds: [LinkSocketBox] = []
        /// The handle of the links that it makes; `nil` where it does not say.
        var reportedHandle: ConnectionHandle?
        /// Whether there is a link, once one has been made.
        var isLinked = false
        /// What happens, once, when the kernel has attached a socket; on the loop.
        var whenAttached: (@Sendable () -> Void)?
        /// What happens, once, when the kernel is asked for the links; on the loop.
        var whenListed: (@Sendable () -> Void)?
        /// How often it was asked whom a link is to; it never says.
        var nameLookups = 0
        /// The errors of opening a channel, once each, before it succeeds.
        var channelErrors: [Int32] = []
        /// What the peers of the next channels send before they close them at once; empty for nothing.
        var channelLastPackets: [[UInt8]] = []
        /// Whether a channel waits for its peer's response.
        var holdsChannels = false
        /// The level of security that the kernel wants for channels.
        var wantedLevel: SocketSecurity.Level?
        /// Whether a link that the kernel makes stays on its way.
        var holdsLinks = false
        /// Whether the radio is blocked.
        var isBlocked = false
        /// Whether Wi-Fi is up that has the same antenna.
        var sharesAntenna = false
        /// The error of listing the adapters.
        var listError: Int32?
        var channels = 0
        var channelEnd: LinkSocketBox?
    }

    /// On the loop of the test's virtual time, if no other is named. In real time a busy machine would let the
    /// controller's thread wait for longer than the library waits for a response.
    init(loop: EventLoop? = nil, isExtended: Bool = false, logger: Logger? = nil) async throws {
        let loop = try #require(loop ?? VirtualTimeTrait.time?.loop, "the test lacks .virtualTime")
        controller = StandInController(loop: loop, isExtended: isExtended)
        clock = CentralClock(loop: loop)
        let kernel = kernel
        let first = try await controller.plugIn()
        kernel.withLock { $0.descriptors = [first] }
        adapter = Adapter(
            .first, loop: loop, logger: logger ?? Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            system: AdapterSystem(kernel))
    }

    var sent: [HCIOpcode] { get async { await controller.received } }

    /// Waits until `condition` holds, or the test is over its limit. Time passes meanwhile.
    func until(_ condition: () async throws -> Bool) async rethrows {
        while try await !condition() {
            do { try await clock.sleep(for: .milliseconds(1)) } catch { return }
        }
    }
}

/// Keeps the far end of a stand-in link open.
final class LinkSocketBox: Sendable {
    let socket: LinkSocket

    init(_ socket: consuming LinkSocket) {
        self.socket = socket
    }

    /// Whether the other end is closed.
    var isHungUp: Bool { socket.isHungUp }

    /// Discards what has arrived.
    func drain() {
        var byte: UInt8 = 0
        while unsafe recv(socket.descriptor, &byte, 1, Int32(MSG_DONTWAIT)) > 0 {}
    }
}

extension AdapterSystem {
    fileprivate init(_ kernel: Lock<AdapterBench.Kernel>) {
        var system = AdapterSystem.kernel
        system.list = { () throws(SystemCallError) in
            if let errno = kernel.withLock({ $0.listError }) { throw SystemCallError(call: "ioctl", errno: errno) }
            return kernel.withLock { $0.controllers }
        }
        system.info = { index throws(SystemCallError) in
            let found = kernel.withLock { $0.controllers.first { $0.index == index } }
            guard let found else { throw SystemCallError(call: "HCIGETDEVINFO", errno: 19) }
            return found
        }
        system.open = { _ throws(SystemCallError) in
            let pair = kernel.withLock { $0.descriptors.isEmpty ? nil : $0.descriptors.removeFirst() }
            guard let pair else { throw SystemCallError(call: "bind", errno: 19) }
            return AdapterSockets(
                commands: HCISocket(adopting: pair.commands), reports: HCISocket(adopting: pair.reports))
        }
        system.connect = { _, _, _, _, _ throws(SystemCallError) in
            let error = kernel.withLock { kernel -> Int32? in
                kernel.connects += 1
                return kernel.connectErrors.isEmpty ? nil : kernel.connectErrors.removeFirst()
            }
            if let error { throw SystemCallError(call: "connect", errno: error) }
            let (ours, theirs) = try LinkSocket.pair()
            let (holds, handle) = kernel.withLock { kernel in
                kernel.farEnds.append(LinkSocketBox(LinkSocket(adopting: theirs)))
                return (kernel.holdsLinks, kernel.reportedHandle)
            }
            var socket = LinkSocket(adopting: ours, isConnecting: holds, reportedHandle: handle)
            // One that is full polls as one that connects does.
            while holds, socket.send([UInt8](repeating: 0, count: 1000)) == .sent {}
            let whenAttached = kernel.withLock { $0.whenAttached.take() }
            whenAttached?()
            return socket
        }
        system.wantedLevel = { _ in kernel.withLock { $0.wantedLevel } }
        system.openChannel = { _, _, _, _ throws(SystemCallError) in
            let (error, holds) = kernel.withLock { kernel -> (Int32?, Bool) in
                kernel.channels += 1
                return (kernel.channelErrors.isEmpty ? nil : kernel.channelErrors.removeFirst(), kernel.holdsChannels)
            }
            if let error { throw SystemCallError(call: "connect", errno: error) }
            let (ours, theirs) = try LinkSocket.pair()
            var socket = LinkSocket(adopting: ours, isConnecting: holds)
            // One that is full polls as one that connects does.
            while holds, socket.send([UInt8](repeating: 0, count: 1000)) == .sent {}
            let lastPacket = kernel.withLock { kernel in
                kernel.channelLastPackets.isEmpty ? nil : kernel.channelLastPackets.removeFirst()
            }
            if let lastPacket {
                var far = LinkSocket(adopting: theirs)
                if !lastPacket.isEmpty { _ = far.send(lastPacket) }
                return socket
            }
            kernel.withLock { $0.channelEnd = LinkSocketBox(LinkSocket(adopting: theirs)) }
            return socket
        }
        system.linkHandle = { _, _ in kernel.withLock { $0.isLinked ? 0x0040 : nil } }
        system.lowEnergyLinkHandles = { _ in
            let whenListed = kernel.withLock { $0.whenListed.take() }
            whenListed?()
            return kernel.withLock { $0.isLinked ? [0x0040] : [] }
        }
        system.linkAddress = { _, _ in
            kernel.withLock { $0.nameLookups += 1 }
            return nil
        }
        system.powerUp = { index throws(SystemCallError) in
            kernel.withLock {
                $0.controllers = $0.controllers.map {
                    ControllerInfo(index: $0.index, name: $0.name, address: $0.address, isUp: true)
                }
            }
        }
        system.sharesAntenna = { _ in kernel.withLock { $0.sharesAntenna } }
        system.mayBeSuspended = { _ in false }
        system.isBlocked = { _ in kernel.withLock { $0.isBlocked } }
        system.privileges = { Privileges(effective: kernel.withLock { $0.capabilities }) }
        self = system
    }
}

extension Central {
    /// Creates a central on the adapters of a virtual radio, some of whose system calls are changed.
    init(
        _ configuration: Configuration = Configuration(), radio: VirtualRadio,
        changing change: (inout AdapterSystem) -> Void
    ) {
        var system = radio.system
        change(&system)
        self.init(
            configuration,
            adapter: Adapter(
                configuration.adapter, loop: radio.loop, logger: configuration.logger,
                trace: configuration.traceHCI, security: configuration.security,
                addressHash: configuration.addressHash, recovery: configuration.recovery,
                maximumLinks: configuration.maximumLinks, preferredPHYs: configuration.preferredPHYs,
                system: system))
    }
}

/// Collects the events of a scan, and lets a test wait for them.
final class Deliveries: Sendable {
    private struct State {
        var all: [ScanDelivery] = []
        var waiter: (@Sendable ([ScanDelivery]) -> Bool, CheckedContinuation<Void, Never>)?
    }

    private let state = Lock(State())

    var all: [ScanDelivery] { state.withLock { $0.all } }

    var receive: @Sendable (ScanDelivery) -> Void {
        { delivery in
            let waiter = self.state.withLock { state -> CheckedContinuation<Void, Never>? in
                state.all.append(delivery)
                guard let (isEnough, waiter) = state.waiter, isEnough(state.all) else { return nil }
                state.waiter = nil
                return waiter
            }
            waiter?.resume()
        }
    }

    /// Waits until what was delivered is enough, or the test is over its limit.
    func wait(until isEnough: @escaping @Sendable ([ScanDelivery]) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if isEnough(state.all) || Task.isCancelled { return true }
                    state.waiter = (isEnough, continuation)
                    return false
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiter.take() }?.1.resume()
        }
    }
}
