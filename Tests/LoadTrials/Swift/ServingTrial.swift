import BLECore
import BLELinux
import BareBLE

/// A local peripheral with 64 centrals: their requests, updates to all of them while their air is held, and nothing.
enum ServingTrial: Trial {
    static let name = "serving"
    static let what =
        "64 centrals served: each request, 10,000 updates with the air held twice, none lost, all in order, memory flat, "
        + "no wake-up while idle"
    private static let links = 64
    private static let updates = 10_000
    /// The updates after which the air is held.
    private static let holds = [4_000, 7_000]
    /// What the library may keep for updates that wait, and for all centrals after the updates, in bytes.
    private static let growthLimit = 64 * 1024
    private static let value: [UInt8] = [1, 2, 3, 4]

    /// The handles of the value that is sent and of the one that is read.
    private struct Handles {
        let sent: AttributeHandle
        let read: AttributeHandle
    }

    static func run(_ scale: Scale) async throws -> [Figure] {
        var settings = LocalPeripheral.Settings(name: "Load")
        settings.maximumCentrals = links
        let central = Central()
        let local = LocalPeripheral(settings, on: central)
        let service = try await local.publish(
            LocalService(
                0xFFF0,
                [
                    LocalCharacteristic(0xFFF1, .notify),
                    LocalCharacteristic(0xFFF2, [.read, .write], value: .stored(value)),
                ]))
        let handles = Handles(sent: service.characteristics[0].id, read: service.characteristics[1].id)
        var centrals: [HeldCentral] = []
        for number in 0..<links {
            let (ours, theirs) = try LinkSocket.pair()
            try await local.attach(descriptor: ours, name: "central \(number)")
            let central = HeldCentral(theirs)
            await central.read()
            let response = await central.request([0x12] + bytes(handles.sent + 1) + [1, 0])
            try require(response == [0x13], "central \(number) has not subscribed: \(response)")
            centrals.append(central)
        }

        let start = ContinuousClock.now
        let requests = scale == .short ? 100 : 5_000
        try await read(requests, handles.read, by: centrals)
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let (waiting, after) = try await update(local, handles.sent, centrals)
        let wakeUps = await idleWakeUps(of: central, for: scale == .short ? .seconds(1) : .seconds(10))
        try require(wakeUps == 0, "\(wakeUps) wake-ups of \(links) idle subscribers")
        try require(await local.centrals.count == links, "a link has ended")
        for central in centrals { await central.close() }
        await local.stop()
        return [
            Figure("links", links), Figure("reads", requests * links),
            Figure("reads a second", Int(Double(requests * links) / seconds)),
            Figure("notifications, none lost", updates * links),
            Figure("bytes kept while \(links) updates wait, limit \(growthLimit)", waiting),
            Figure("bytes kept afterwards, limit \(growthLimit)", after), Figure("wake-ups while idle", wakeUps),
        ]
    }

    private static func read(_ count: Int, _ handle: AttributeHandle, by centrals: [HeldCentral]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, central) in centrals.enumerated() {
                group.addTask {
                    for turn in 0..<count {
                        let response = await central.request([0x0A] + bytes(handle))
                        try require(response == [0x0B] + value, "central \(number), read \(turn): \(response)")
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Sends all updates; returns how many bytes the library keeps more while updates wait, and after them.
    private static func update(
        _ local: LocalPeripheral, _ handle: AttributeHandle, _ centrals: [HeldCentral]
    ) async throws -> (waiting: Int, after: Int) {
        let first = try await send(0..<holds[0] / 2, handle, by: local)
        try await receive(first, centrals)
        let before = ProcessState.heap
        var (sent, waiting) = (first, 0)
        for (hold, next) in zip(holds, holds.dropFirst() + [updates]) {
            sent = try await send(sent..<hold, handle, by: local)
            try await receive(sent, centrals)
            for central in centrals { await central.hold() }
            // More than the sockets take: the call waits, and whatever was not read stays in the kernel.
            let begin = sent
            async let rest = send(begin..<next, handle, by: local)
            while await local.outstanding == 0 { await Task.yield() }
            waiting = max(waiting, ProcessState.heap - before)
            for central in centrals { await central.read() }
            sent = try await rest
            try await receive(sent, centrals)
        }
        let after = ProcessState.heap - before
        try require(waiting <= growthLimit, "\(waiting) bytes are kept while updates wait")
        try require(after <= growthLimit, "\(after) bytes are kept after the updates")
        return (waiting, after)
    }

    /// Sends updates with these numbers, one after the other; returns the next number.
    private static func send(
        _ numbers: Range<Int>, _ handle: AttributeHandle, by local: LocalPeripheral
    ) async throws -> Int {
        for number in numbers {
            var writer = ByteWriter(reserving: 20)
            writer.u32(UInt32(truncatingIfNeeded: number))
            // 20 bytes: what fits a packet of the smallest MTU.
            writer.array([UInt8](repeating: 0, count: 16))
            let result = try await local.update(writer.bytes, of: .handle(handle))
            try require(
                result.outcomes.count == links && result.outcomes.values.allSatisfy { $0 == .notified },
                "update \(number): \(result)")
        }
        return numbers.upperBound
    }

    private static func receive(_ count: Int, _ centrals: [HeldCentral]) async throws {
        for (number, central) in centrals.enumerated() {
            await central.receives(count)
            let (found, misplaced) = (await central.count, await central.misplaced)
            try require(
                found == count && misplaced == nil,
                "central \(number) got \(found) of \(count), the first in a wrong place: \(String(describing: misplaced))"
            )
        }
    }

    /// Returns the wake-ups of a period of this length; none if one of three has none.
    private static func idleWakeUps(of central: Central, for time: Duration) async -> UInt64 {
        var wakeUps: UInt64 = 0
        // What the updates have left, such as a timer that was set for one that waited, may wake the loop once.
        for _ in 0..<3 {
            let before = await central.run { EventLoop.shared.wakeUps }
            try? await Task.sleep(for: time)
            let after = await central.run { EventLoop.shared.wakeUps }
            // The second look is one itself.
            wakeUps = after - before - 1
            if wakeUps == 0 { break }
        }
        return wakeUps
    }

    private static func bytes(_ handle: AttributeHandle) -> [UInt8] {
        [UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8)]
    }
}
