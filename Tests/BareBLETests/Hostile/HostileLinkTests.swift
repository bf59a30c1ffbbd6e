import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Rows of the catalogue that no script can hold: floods, silence, peers that never come to an end.
@Suite("Hostile peers beyond a script", .timeLimit(.minutes(10)))
struct HostileLinkTests {
    /// The protocol's 30 seconds, shortened.
    private static var impatient: Configuration {
        var configuration = Configuration()
        configuration.responseTime = .milliseconds(50)
        return configuration
    }

    @Test("silence ends the link, and all calls with it", .row("T06"))
    func silenceEndsTheLinkAndAllItsCalls() async throws {
        let link = try await HostileLink(configuration: Self.impatient) { _ in [] }
        let codes = await withTaskGroup(of: BLEError.Code?.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    await HostileLink.code { () throws(BLEError) in _ = try await link.device.read(.handle(3)) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes == [.disconnected, .disconnected, .disconnected])
        #expect(await link.device.disconnectReason == .attTimeout)
        #expect(await link.peer.received.count == 1)
        try await link.end()
    }

    @Test("a caller that gave up does not keep the link", .row("T09"))
    func cancelledWithoutAResponse() async throws {
        let link = try await HostileLink(configuration: Self.impatient) { _ in [] }
        let code = await HostileLink.code { () throws(BLEError) in
            _ = try await link.device.read(.handle(3), timeout: .milliseconds(1))
        }
        #expect(code == .timedOut)
        #expect(await link.device.disconnected() == .attTimeout)
        try await link.end()
    }

    @Test("an empty packet is not the end", .row("T10"))
    func emptyPacket() async throws {
        let link = try await HostileLink(HostileLink.database())
        await link.peer.send([])
        #expect(try await link.device.read(.handle(3)) == [0x64])
        #expect(await link.device.statistics.emptyPackets == 1)
        try await link.end()
    }

    @Test(
        "values faster than anybody takes them", .row("T20", "T17"),
        arguments: [SubscribeOptions.Kind.notifications, .indications])
    func aFloodOfValuesDelaysNoRead(kind: SubscribeOptions.Kind) async throws {
        let link = try await HostileLink(HostileLink.database())
        let values = try await link.device.subscribe(to: .handle(3), SubscribeOptions(preferred: kind))
        let count = kind == .notifications ? 10_000 : 600
        for number in 0..<count {
            let bytes = UInt16(number).wireBytes
            await link.peer.send([kind == .notifications ? 0x1B : 0x1D, 3, 0] + bytes)
            // A confirmation does not wait for the consumer, so a slow one does not stop the peer.
            if kind == .indications { await link.wait(for: number + 1, of: 0x1E) }
        }
        #expect(try await link.device.read(.handle(3)) == [0x64])
        var received = 0
        var lost = 0
        for try await value in values {
            received += 1
            lost += value.droppedBefore
            if value.bytes == UInt16(count - 1).wireBytes { break }
        }
        #expect(received == 256)
        #expect(received + lost == count)
        try await link.end()
    }

    @Test("a flood of requests gets one response after the other", .row("T25"))
    func requestFlood() async throws {
        let link = try await HostileLink(HostileLink.database())
        for _ in 0..<100 { await link.peer.send([0x0A, 1, 0]) }
        await link.wait(for: 100, of: 0x01)
        #expect(await link.device.statistics.peerRequestsRefused == 100)
        #expect(try await link.device.read(.handle(3)) == [0x64])
        try await link.end()
    }

    @Test("one handle in each response, forever", .row("G09"))
    func anEndlessDiscoveryEndsAtTheLimit() async throws {
        let link = try await HostileLink(intercept: Self.oneHandleAtATime)
        let code = await HostileLink.code { () throws(BLEError) in _ = try await link.device.discover(level: .full) }
        #expect(code == .tooLong)
        #expect(await link.peer.received.count <= 2 * 4_096 + 65)
        #expect(try await link.device.read(.handle(3)) == [1])
        try await link.end()
    }

    @Test("discovery has an end in time as well", .row("G09"))
    func slowDiscovery() async throws {
        let link = try await HostileLink { pdu in pdu.first == 0x0A ? [[0x0B, 1]] : [] }
        let code = await HostileLink.code { () throws(BLEError) in
            _ = try await link.device.discover(level: .full, timeout: .milliseconds(20))
        }
        #expect(code == .timedOut)
        #expect(await link.device.isConnected)
        try await link.end()
    }

    private static let oneHandleAtATime: RecordedServer.Intercept = { pdu in
        switch pdu.first {
        case 0x10 where pdu[1] == 1 && pdu[2] == 0: return [[0x11, 6, 1, 0, 0xFF, 0xFF, 0x0F, 0x18]]
        case 0x04: return [[0x05, 1, pdu[1] | 1, pdu[2], 0x01, 0x29]]
        case 0x0A: return [[0x0B, 1]]
        default: return nil
        }
    }

    @Test("65,535 attributes", .row("G10"))
    func tooManyAttributesEndTheDiscovery() async throws {
        let link = try await HostileLink(mtu: 517) { pdu in
            if pdu.first == 0x0A { return [[0x0B, 1]] }
            guard pdu.first == 0x10 else { return nil }
            let first = Int(pdu[1]) | Int(pdu[2]) << 8
            var response: [UInt8] = [0x11, 20]
            for handle in first..<min(first + 25, 0x10000) {
                let bytes = UInt16(handle).wireBytes
                response += bytes + bytes + [UInt8](repeating: 0xA5, count: 14) + bytes
            }
            return [response]
        }
        let code = await HostileLink.code { () throws(BLEError) in _ = try await link.device.discover() }
        #expect(code == .tooLong)
        #expect(try await link.device.read(.handle(3)) == [1])
        try await link.end()
    }

    @Test("services that include each other, themselves, and what is not there", .row("G11"))
    func includesMayFormACycle() async throws {
        var attributes: [ServerAttribute] = []
        func add(_ handle: UInt16, _ type: BluetoothUUID, _ value: [UInt8], groupEnd: UInt16? = nil) {
            var attribute = ServerAttribute(handle: handle, type: type, value: value)
            if let groupEnd { attribute.role = .group(end: groupEnd) }
            attributes.append(attribute)
        }
        add(1, .primaryServiceDeclaration, [0x00, 0x18], groupEnd: 4)
        add(2, .includeDeclaration, [5, 0, 8, 0, 0x0F, 0x18])
        add(3, .includeDeclaration, [1, 0, 4, 0, 0x00, 0x18])
        add(4, .includeDeclaration, [9, 0, 0xB8, 0x0B, 0x34, 0x12])
        add(5, .primaryServiceDeclaration, [0x0F, 0x18], groupEnd: 8)
        add(6, .includeDeclaration, [1, 0, 4, 0, 0x00, 0x18])
        add(7, .includeDeclaration, [9, 0, 5, 0, 0x0F, 0x18])
        add(8, .includeDeclaration, [0, 0, 5, 0, 0x0F, 0x18])
        let link = try await HostileLink(ServerDatabase(attributes: attributes))
        let found = try await link.device.discover(level: .full)
        #expect(found.services.map { $0.includes.map(\.handles) } == [[5...8, 1...4, 9...3000], [1...4]])
        #expect(found.quirks == [.includeDropped(7), .includeDropped(8)])
        #expect(await link.peer.received.count < 20)
        try await link.end()
    }

    @Test("ten configurations, or none", .row("G14"))
    func ofTenConfigurationsTheFirstCounts() async throws {
        let many = try await HostileLink(HostileLink.database(configurations: 10))
        let values = try await many.device.subscribe(to: .handle(3))
        #expect(await many.peer.received.filter { $0.first == 0x12 } == [[0x12, 4, 0, 1, 0]])
        try await many.end()
        _ = values

        let none = try await HostileLink(HostileLink.database(configurations: 0, others: 2))
        let code = await HostileLink.code { () throws(BLEError) in
            _ = try await none.device.subscribe(to: .handle(3))
        }
        #expect(code == .notSupported)
        try await none.end()
    }

    @Test("values after the end of a subscription are dropped", .row("G24"))
    func valuesAfterTheEnd() async throws {
        let link = try await HostileLink(HostileLink.database())
        let values = try await link.device.subscribe(to: .handle(3))
        try await values.unsubscribe()
        await link.peer.send([0x1B, 3, 0, 7])
        #expect(try await link.device.read(.handle(3)) == [0x64])
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next() == nil)
        try await link.end()
    }
}
