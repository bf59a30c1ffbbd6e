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
}
