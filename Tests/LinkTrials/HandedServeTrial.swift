import BareBLE
import Glibc

/// Serves one value that counts, and hands everything over to the next run when it reads a line: `serving`, and what
/// the centrals do.
struct HandedServeTrial {
    let central: Central
    /// The first byte of each value.
    let run: UInt8

    func serve() async throws {
        let local = LocalPeripheral(.init(name: "Trial"), on: central)
        let restoration = try await local.restore()
        for (name, error) in restoration.lost { LinkTrials.say("lost \(name) \(error)") }
        try await local.publish(LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, [.read, .notify])]))
        var events = local.events.makeAsyncIterator()
        let advertising = try await local.advertise([.services([0xFFF0]), .localName("Trial")])
        LinkTrials.say("serving")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await count(local) }
            group.addTask {
                // It blocks a thread: this is a program for tests. `readLine()` would also keep the lock of its stream,
                // for which the flush of each line waits.
                await Task.detached {
                    var byte: UInt8 = 0
                    _ = unsafe read(0, &byte, 1)
                }.value
                guard let notifier = ServiceNotifier() else { LinkTrials.fail("no service manager", 64) }
                await local.suspend(handingOverTo: DescriptorStore(notifier))
            }
            while let event = try await events.next() {
                switch event {
                case .connected(let central): LinkTrials.say("connected \(central.isRestored ? "restored" : "new")")
                case .subscribed(_, let value, let isRestored):
                    LinkTrials.say("subscribed \(value.uuid) \(isRestored ? "restored" : "new")")
                case .disconnected(_, let reason): LinkTrials.say("disconnected \(reason)")
                default: break
                }
            }
            group.cancelAll()
        }
        await advertising.stop()
    }

    private func count(_ local: LocalPeripheral) async throws {
        for number in UInt16.min...UInt16.max {
            let (high, low) = (UInt8(number >> 8), UInt8(number & 0xFF))
            _ = try await local.update([run, high, low], of: 0xFFF1)
            do {
                try await central.clock.sleep(for: .milliseconds(200))
            } catch {
                return
            }
        }
    }
}
