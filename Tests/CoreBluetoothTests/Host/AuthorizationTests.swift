import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import Testing

/// The permission of the process to use Bluetooth, and the state of managers without it.
@Suite(.timeLimit(.minutes(10))) struct AuthorizationTests {
    /// The kernel is asked each time, so a filter that is lifted is noticed.
    @Test func aProcessIsDeniedWhileItsSocketsAreRefused() async throws {
        let isDenied = Lock(true)
        try await Bench.run(changing: { system in
            let list = system.list
            system.list = { () throws(SystemCallError) in
                guard isDenied.withLock({ !$0 }) else {
                    throw SystemCallError(call: "socket", errno: SystemCallError.notPermitted)
                }
                return try list()
            }
        }) { bench in
            let (recorder, other) = (CallbackRecorder(bench.time), CallbackRecorder(bench.time))
            let manager = CBCentralManager(delegate: recorder, queue: bench.queue)
            let server = CBPeripheralManager(delegate: other, queue: bench.queue)
            try await recorder.wait(for: "state 3")
            try await other.wait(for: "state 3")
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(recorder.lines == ["state 3"])
            #expect(other.lines == ["state 3"])
            #expect(manager.state == .unauthorized && server.state == .unauthorized)
            #expect(CBManager.authorization == .denied)
            #expect(CBCentralManager.authorization == .denied)
            #expect(CBPeripheralManager.authorization == .denied)
            isDenied.withLock { $0 = false }
            #expect(CBManager.authorization == .allowedAlways)
            try await recorder.wait(for: "state 5")
            try await other.wait(for: "state 5")
            #expect(recorder.lines == ["state 3", "state 5"])
            #expect(other.lines == ["state 3", "state 5"])
        }
    }
}
