import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Logging
import Testing

/// One operation, interrupted at one packet, and what is left of it.
struct MatrixRun: Sendable {
    let operation: MatrixOperation
    let loss: MatrixLoss
    /// The packet at which it happens, HCI and ATT counted together; `nil` to count them.
    let packet: Int?

    static let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0007), type: .random)

    struct Outcome: Sendable {
        var error: (any Error)?
        /// How many packets it took.
        var packets = 0
        /// Whether the packet of the interruption was the host's.
        var wasHosts = false
        var reason: DisconnectReason?
    }

    /// Counts packets, and lets something happen at one of them.
    final class Trigger: Sendable {
        private struct State {
            var isCounting = false
            var count = 0
            var countWhenDone: Int?
            var happen: (@Sendable (_ isHosts: Bool) -> Void)?
        }

        private let state = Lock(State())
        let packet: Int?

        init(packet: Int?) { self.packet = packet }

        func begin(_ happen: @escaping @Sendable (_ isHosts: Bool) -> Void) {
            state.withLock {
                $0.isCounting = true
                $0.happen = happen
            }
        }

        func done() { state.withLock { $0.countWhenDone = $0.countWhenDone ?? $0.count } }
        func stop() -> Int {
            state.withLock {
                $0.isCounting = false
                $0.happen = nil
                return $0.countWhenDone ?? $0.count
            }
        }

        func passed(isHosts: Bool) {
            let happen = state.withLock { state -> (@Sendable (Bool) -> Void)? in
                guard state.isCounting else { return nil }
                state.count += 1
                return state.count == packet ? state.happen.take() : nil
            }
            happen?(isHosts)
        }
    }

    func run() async throws -> Outcome {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let peripheral = radio.peripheral(MatrixOperation.device)
            await radio.place(peripheral, as: Self.peer, advertising: VirtualAdvertisement(MatrixOperation.device))
            let sockets = Lock<[UInt64]>([])
            let trigger = Trigger(packet: packet)
            let readTrigger = loss == .cancelWhileReading
            var configuration = Configuration()
            configuration.trace = { pdu in
                if readTrigger { trigger.passed(isHosts: pdu.isOutgoing) }
            }
            let folder = operation == .restore ? try StateFolder(MatrixOperation.state(Self.peer)) : nil
            configuration.stateStore = folder?.store
            let adapter = Adapter(
                .first, loop: time.loop, logger: configuration.logger, system: radio.system.recording(sockets))
            let central = Central(configuration, adapter: adapter)
            try await central.ready()
            if !readTrigger {
                await radio.observe { trigger.passed(isHosts: $0) }
                await peripheral.observe { trigger.passed(isHosts: $0) }
            }
            let watched = time.loop.watchedCount
            let outcome = try await interrupted(trigger, time, radio, peripheral, central)
            // Whatever was only late has come by now.
            try await time.clock.sleep(for: .seconds(120))
            #expect(time.loop.timerCount == 0, "timers are left")
            #expect(time.loop.watchedCount <= watched, "descriptors are watched")
            #expect(await adapter.outstanding == 0, "somebody waits for the adapter")
            #expect(Self.open(sockets.withLock(\.self)) == [], "descriptors are left")
            #expect(await !peripheral.isConnected)
            try await worksAgain(radio, peripheral, central)
            return outcome
        }
    }

    /// Does it, and lets go of the link.
    private func interrupted(
        _ trigger: Trigger, _ time: VirtualTime, _ radio: VirtualRadio, _ peripheral: VirtualPeripheral,
        _ central: Central
    ) async throws -> Outcome {
        weak var left: Peripheral?
        var outcome = Outcome()
        do {
            var link: Peripheral?
            if !operation.connects {
                link = try await central.connect(Self.peer, operation.options)
                try await link?.discover()
            }
            let handle = Lock<Task<Peripheral?, any Error>?>(nil)
            let wasHosts = Lock(false)
            trigger.begin { isHosts in
                wasHosts.withLock { $0 = isHosts }
                happen(isHosts, radio, peripheral) { handle.withLock(\.self)?.cancel() }
            }
            let task = time.task { [link, operation] in
                try await operation.run(central, Self.peer, link) { trigger.done() }
            }
            handle.withLock { $0 = task }
            switch await task.result {
            case .success(let made): link = made ?? link
            case .failure(let error): outcome.error = error
            }
            handle.withLock { $0 = nil }
            outcome.packets = trigger.stop()
            outcome.wasHosts = wasHosts.withLock(\.self)
            await radio.observe(nil)
            await peripheral.observe(nil)
            // What the end of an interrupted link is called is known when it has come.
            if outcome.error != nil, loss.reason != nil { outcome.reason = await link?.disconnected() }
            await link?.disconnect()
            await time.settle()
            if let link { #expect(await link.outstanding == 0, "somebody waits on the link") }
            left = link
        }
        await time.settle()
        #expect(left == nil, "somebody holds the link")
        return outcome
    }

    private func happen(
        _ isHosts: Bool, _ radio: VirtualRadio, _ peripheral: VirtualPeripheral, _ cancel: () -> Void
    ) {
        let reason = HCIStatus.remoteUserTerminated
        switch loss {
        case .disconnect: radio.assumeIsolated { $0.happen(.disconnect(reason), to: peripheral) }
        case .outOfRange: radio.assumeIsolated { $0.happen(.outOfRange, to: peripheral) }
        case .powerOff: radio.assumeIsolated { $0.happen(.powerOff("hci0"), to: peripheral) }
        case .adapterReset: radio.assumeIsolated { $0.happen(.adapterReset("hci0"), to: peripheral) }
        case .unplug: radio.assumeIsolated { $0.happen(.unplug("hci0"), to: peripheral) }
        case .cancel, .cancelWhileReading: cancel()
        case .lateResponse:
            guard isHosts, peripheral.assumeIsolated({ $0.isConnected }) else {
                return radio.assumeIsolated { $0.happen(.disconnect(reason), to: peripheral) }
            }
            radio.assumeIsolated { $0.announceEnd(of: peripheral, because: reason) }
            peripheral.assumeIsolated { isolated in
                isolated.observe { _ in
                    isolated.assumeIsolated { $0.observe(nil) }
                    radio.assumeIsolated { $0.finishEnd(of: peripheral, because: reason) }
                }
            }
        }
    }

    /// Everything that was lost comes back, and the next link is as the first.
    private func worksAgain(_ radio: VirtualRadio, _ peripheral: VirtualPeripheral, _ central: Central) async throws {
        await radio.plugIn()
        await radio.move(peripheral, to: .near)
        try await central.ready(powerOn: true)
        let link = try await central.connect(Self.peer, operation.options)
        #expect(try await link.read(0xFFF5) == [5])
        await link.disconnect()
    }

    /// Which of these sockets are open in this process.
    private static func open(_ sockets: [UInt64]) -> [UInt64] {
        var open: Set<UInt64> = []
        for descriptor in 0..<Int32(4096) {
            var status = stat()
            if unsafe fstat(descriptor, &status) == 0 { open.insert(UInt64(status.st_ino)) }
        }
        return sockets.filter(open.contains)
    }
}

/// A state from before a restart, in a folder of its own.
private final class StateFolder: Sendable {
    private static let count = Lock(0)

    let store: StateStore

    init(_ state: RestorationState) throws {
        let number = Self.count.withLock { count in
            count += 1
            return count
        }
        let path = "/tmp/bareble-matrix-\(getpid())-\(number)"
        _ = unsafe mkdir(path, 0o700)
        store = StateStore(directory: path, identifier: "matrix")
        try store.open().save(state)
    }

    deinit {
        for name in SystemFiles.names(in: store.directory) {
            _ = unsafe unlink("\(store.directory)/\(name)")
        }
        _ = unsafe rmdir(store.directory)
    }
}

extension AdapterSystem {
    /// The same, and the number of each socket that it connects.
    fileprivate func recording(_ sockets: Lock<[UInt64]>) -> AdapterSystem {
        var system = self
        let connect = connect
        system.connect = { own, type, peer, timeout, security throws(SystemCallError) in
            let socket = try connect(own, type, peer, timeout, security)
            var status = stat()
            if unsafe fstat(socket.descriptor, &status) == 0 { sockets.withLock { $0.append(UInt64(status.st_ino)) } }
            return socket
        }
        return system
    }
}
