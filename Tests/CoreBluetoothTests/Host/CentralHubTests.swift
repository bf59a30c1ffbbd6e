import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

@testable import CoreBluetooth

/// What the central managers of a process share.
@Suite(.timeLimit(.minutes(10))) struct CentralHubTests {
    /// The link of a manager that is gone may end with its adapter.
    @Test func theStateOfALossWithoutManagersIsNotThatOfTheNextManager() async throws {
        try await Bench.run { bench in
            let hub = CoreBluetoothHost.current.hub
            await bench.radio.powerOff()
            await hub.adapterWasLost()
            #expect(await hub.state == nil)
            await bench.radio.powerOn()
            let recorder = CallbackRecorder(bench.time)
            let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            #expect(recorder.lines == ["state 5"])
            _ = manager
        }
    }

    /// A manager may take the place of the last one in between.
    @Test func aStateThatArrivesAfterTheEndOfItsWatchIsNotReported() async throws {
        try await Bench.run { bench in
            let hub = CoreBluetoothHost.current.hub
            let (manager, recorder) = try await bench.manager()
            let watch = Task {
                while !Task.isCancelled { await Task.yield() }
                await hub.watched(.poweredOff)
            }
            watch.cancel()
            await watch.value
            #expect(await hub.state == .poweredOn)
            #expect(recorder.count(of: "state 4") == 0)
            _ = manager
        }
    }

    /// The last manager may go while a link that has ended reads the state, and another one come.
    @Test func aStateThatIsReadForAManagerThatIsGoneIsNotReported() async throws {
        let whenRead = Lock<(@Sendable () -> Void)?>(nil)
        try await Bench.run(changing: { system in
            let info = system.info
            system.info = { index throws(SystemCallError) in
                let found = try info(index)
                guard let replace = whenRead.withLock({ $0.take() }) else { return found }
                replace()
                return ControllerInfo(index: found.index, name: found.name, address: found.address, isUp: false)
            }
        }) { bench in
            await bench.radio.announceChanges()
            let hub = CoreBluetoothHost.current.hub
            let (manager, recorder) = try await bench.manager()
            let (weak, id, callbacks) = (WeakManager(manager), manager.id, manager.callbacks)
            whenRead.withLock {
                $0 = {
                    // The next manager is the same object.
                    hub.assumeIsolated { hub in
                        hub.remove(id)
                        hub.add(weak, id, callbacks, powerOn: false)
                        hub.start(id)
                    }
                }
            }
            await hub.adapterWasLost()
            #expect(whenRead.withLock { $0 == nil }, "the state was read")
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.lines.isEmpty)
            #expect(await hub.state == .poweredOn)
            _ = manager
        }
    }
}
