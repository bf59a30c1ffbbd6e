import BareBLE
import BareBLETestKit
import Testing

/// The peer has one queue for prepared writes; leftovers in it would be written by the next execute request.
@Suite(.timeLimit(.minutes(10))) struct PreparedWriteTests {
    private let central = Central()

    @Test func longAndReliableWritesTakeTurns() async throws {
        let peripheral = VirtualPeripheral(.longValue)
        let device = try await central.attach(to: peripheral, ConnectOptions(mtu: 23))
        try await device.discover()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for fill in 1...6 as ClosedRange<UInt8> {
                let value = [UInt8](repeating: fill, count: 60)
                group.addTask { try await device.write(value, to: 0xFFF1) }
                group.addTask {
                    try await device.writeReliably([([fill &+ 100, fill &+ 100], 0xFFF4), ([fill &+ 100], 0xFFF1)])
                }
            }
            try await group.waitForAll()
        }
        // Every Execute follows the pieces of one write only: they have one fill.
        var fills: Set<UInt8> = []
        var writes: [UInt8] = []
        for step in await peripheral.transcript.steps {
            guard case .sent(let pdu) = step.event, let opcode = pdu.first else { continue }
            if opcode == 0x16 { fills.formUnion(pdu.dropFirst(5)) }
            guard opcode == 0x18 else { continue }
            #expect(pdu == [0x18, 0x01])
            #expect(fills.count == 1)
            writes += fills
            fills = []
        }
        #expect(Set(writes) == Set(1...6).union(101...106))
        #expect(writes.count == 12)
    }

    /// The first write's second piece is refused (Prepare Queue Full); the other write begins after the queue was
    /// emptied.
    @Test func aFailedWriteLeavesAnEmptyQueue() async throws {
        let first = String(repeating: "11", count: 18)
        let second = String(repeating: "22", count: 18)
        let script = try Dialogue(
            """
            < 16 0700 0000 \(first)
            > 17 0700 0000 \(first)
            < 16 0700 1200 111111
            > 01 16 0700 09
            < 18 00
            > 19
            < 16 0900 0000 \(second)
            > 17 0900 0000 \(second)
            < 16 0900 1200 2222
            > 17 0900 1200 2222
            < 18 01
            > 19
            """)
        let peer = ScriptedPeripheral(script)
        let device = try await central.attach(descriptor: peer.connect(), ConnectOptions(mtu: 23))
        async let failing: Void = device.write([UInt8](repeating: 0x11, count: 21), to: .handle(7))
        // In the queue after it, whichever of the tasks runs first here.
        while await device.statistics.requestsSent == 0, !Task.isCancelled { await Task.yield() }
        async let other: Void = device.writeReliably([([UInt8](repeating: 0x22, count: 20), .handle(9))])
        do {
            try await failing
            Issue.record("it was refused")
        } catch {
            #expect((error as? BLEError)?.attError == .prepareQueueFull)
        }
        try await other
        let report = await peer.report
        #expect(report.isComplete, "\(report)")
    }
}
