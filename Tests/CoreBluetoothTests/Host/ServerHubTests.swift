import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

@testable import CoreBluetooth

/// What the peripheral managers of a process keep.
@Suite(.timeLimit(.minutes(10))) struct ServerHubTests {
    /// The queue runs nothing, and has no room, while a central subscribes, writes, and goes. The write waits for the
    /// report of the subscription, and so it is looked at after the end of its link.
    @Test func ofACentralThatGoesBeforeItsRequestIsLookedAtNothingIsKept() async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let service = CBMutableService(type: CBUUID(string: "FFF0"), primary: true)
            let constant = CBMutableCharacteristic(
                type: CBUUID(string: "FFF1"), properties: .read, value: Data([1, 2, 3]), permissions: .readable)
            let dynamic = CBMutableCharacteristic(
                type: CBUUID(string: "FFF2"), properties: [.write, .notify], value: nil, permissions: .writeable)
            service.characteristics = [constant, dynamic]
            manager.add(service)
            manager.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising nil")
            let (phone, other) = (await bench.radio.addCentral(), await bench.radio.addCentral())
            for central in [phone, other] {
                try await central.connect()
                try await central.discover()
            }
            let handle = try await phone.characteristic(0xFFF2).value
            let fixed = try await other.characteristic(0xFFF1).value
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                // Each of them is reported, as it was added before.
                for _ in 0..<300 { manager.add(service) }
                try await phone.write([1, 0], at: handle + 1)
                // ATT_WRITE_REQ
                await phone.send(raw: [0x12, UInt8(handle & 0xFF), UInt8(handle >> 8), 9])
                // It has arrived when another central has its values.
                for _ in 0..<10 { #expect(try await other.read(at: fixed) == [1, 2, 3]) }
                await phone.disconnect()
                var count = 2
                for _ in 0..<10_000 where count > 1 {
                    count = await manager.host.server.centralCount
                    await Task.yield()
                }
                #expect(count == 1, "the link has not ended")
            }
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(await manager.host.server.centralCount == 1)
            #expect(recorder.count(of: "didReceiveWrite") == 0)
        }
    }

    /// It may wait on the delegate's queue after the report of a loss that has ended it.
    @Test func aChannelThatWasRequestedBeforeALossIsReportedWithAnError() async throws {
        try await Bench.run { bench in
            await bench.radio.announceChanges()
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            bench.queue.sync { manager.channelPublished(128, losses: 0) }
            await bench.radio.unplug()
            try await recorder.wait(for: "state 2")
            bench.queue.sync { manager.channelPublished(129, losses: 0) }
            bench.queue.sync { manager.channelPublished(130, losses: 1) }
            #expect(
                recorder.lines == [
                    "state 5", "didPublish nil 128", "state 2", "didPublish CB 5 0", "didPublish nil 130",
                ])
        }
    }
}
