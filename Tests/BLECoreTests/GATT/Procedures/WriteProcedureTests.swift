import BLECore
import TestSupport
import Testing

@Suite struct WriteProcedureTests {
    private func value(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0) } }

    private func server(mtu: Int = 23, queueLimit: Int = 64) -> TestAttributeServer {
        var database = ModelDatabase()
        database.service(0x180F)
        database.characteristic(0x2A19, .write)
        database.characteristic(0x2A1A, .write)
        database.endService()
        return TestAttributeServer(database, mtu: mtu, queueLimit: queueLimit)
    }

    @Test func writesAndWaits() throws {
        var server = server()
        try server.run(WriteRequest(handle: 3, value: value(20), mtu: 23)).get()
        #expect(server.attribute(3)?.value == value(20))
        #expect(server.requests.count == 1)
    }

    @Test func refusesAValueThatDoesNotFit() throws {
        var server = server()
        let failure = try server.run(WriteRequest(handle: 3, value: value(21), mtu: 23)).failure
        #expect(failure == .valueTooLong(partial: []))
        #expect(server.requests.isEmpty)
        #expect(WriteRequest.capacity(mtu: 23) == 20)
        #expect(WriteRequest.capacity(mtu: 517) == 514)
    }

    @Test(arguments: [0, 1, 18, 19, 36, 37, 512], [23, 247, 517])
    func writesLongValues(count: Int, mtu: Int) throws {
        var server = server(mtu: mtu)
        try server.run(WriteLong(handle: 3, value: value(count), mtu: UInt16(mtu))).get()
        #expect(server.attribute(3)?.value == value(count))
        let pieces = max(1, (count + mtu - 6) / (mtu - 5))
        #expect(server.requests.count == pieces + 1)
        #expect(server.prepared.isEmpty)
    }

    @Test func writesAfterAnOffset() throws {
        var server = server()
        server.setValue([1, 2, 3, 4], of: 3)
        try server.run(WriteLong(handle: 3, value: value(30), offset: 2, mtu: 23)).get()
        #expect(server.attribute(3)?.value == [1, 2] + value(30))
    }

    @Test func refusesValuesLongerThanAnAttribute() throws {
        var server = server()
        #expect(try server.run(WriteLong(handle: 3, value: value(513), mtu: 23)).failure == .valueTooLong(partial: []))
        let beyond = WriteLong(handle: 3, value: value(12), offset: 501, mtu: 23)
        #expect(try server.run(beyond).failure == .valueTooLong(partial: []))
        #expect(server.requests.isEmpty)
    }

    @Test func writesSeveralValuesAtOnce() throws {
        var server = server()
        let parts = [ReliableWrite.Part(handle: 3, value: value(25)), .init(handle: 5, value: [9])]
        try server.run(ReliableWrite(parts, mtu: 23)).get()
        #expect(server.attribute(3)?.value == value(25))
        #expect(server.attribute(5)?.value == [9])
        #expect(server.requests.count == 4)
    }

    // MARK: Failures

    @Test(
        "an echo with another handle, offset or bytes, or of another length", .row("G17"),
        arguments: [
            "17 0400 0000 000102", "17 0300 0100 000102", "17 0300 0000 000103", "17 0300 0000 0001",
            "17 0300 0000 00010203",
        ])
    func aWrongEchoCancelsTheWrite(echo: String) throws {
        var script = try ScriptedResponses([echo, "19"])
        let failure = try script.run(WriteLong(handle: 3, value: value(3), mtu: 23)).failure
        #expect(failure == .reliableWriteMismatch(3))
        #expect(script.requestTexts == ["1603000000000102", "1800"])
    }

    @Test("a damaged echo", .row("G17"), arguments: ["17", "17 03", "17 0300 00", "13"])
    func damagedEcho(echo: String) throws {
        var script = try ScriptedResponses([echo, "19"])
        #expect(try script.run(WriteLong(handle: 3, value: value(3), mtu: 23)).isMalformed)
        #expect(script.requestTexts.last == "1800")
    }

    @Test("the peer's queue is full midway", .row("G18"))
    func aFullQueueCancelsTheWrite() throws {
        var server = server(queueLimit: 3)
        let failure = try server.run(WriteLong(handle: 3, value: value(100), mtu: 23)).failure
        #expect(failure == .att(.prepareWriteRequest, 3, .prepareQueueFull))
        #expect(server.prepared.isEmpty)
        #expect(server.attribute(3)?.value == [])
        #expect(server.requests.last == .executeWriteRequest(ATTExecuteWriteRequest(.cancel)))
    }

    @Test(
        "the clearing up is refused too; the first failure counts", .row("G18"),
        arguments: ["19", "01 18 0000 0E", "FF"])
    func clearingUpIsRefused(response: String) throws {
        var script = try ScriptedResponses(["01 16 0300 09", response])
        let failure = try script.run(WriteLong(handle: 3, value: value(3), mtu: 23)).failure
        #expect(failure == .att(.prepareWriteRequest, 3, .prepareQueueFull))
    }

    @Test("Execute Write is refused; nothing is left to clear up", .row("G18"))
    func executeRefused() throws {
        var script = try ScriptedResponses(["17 0300 0000 000102", "01 18 0300 0D"])
        let failure = try script.run(WriteLong(handle: 3, value: value(3), mtu: 23)).failure
        #expect(failure == .att(.executeWriteRequest, 3, .invalidAttributeValueLength))
        #expect(script.requestTexts == ["1603000000000102", "1801"])
    }

    @Test("the caller gives up; what is queued must not be written by the next one", .row("G18"))
    func anAbandonedWriteClearsThePreparedQueue() throws {
        var write = WriteLong(handle: 3, value: value(30), mtu: 23)
        #expect(write.usesPreparedQueue)
        var before = write
        #expect(before.abandoned() == nil)
        _ = write.begin()
        _ = write.received(.response(try Hex.decode("17 0300 0000") + value(18)))
        var midway = write
        #expect(midway.abandoned() == [0x18, 0x00])
        #expect(midway.abandoned() == nil)
        _ = write.received(.response(try Hex.decode("17 0300 1200") + value(30)[18...]))
        // Execute Write was asked for, and may be waiting for its turn still.
        var executing = write
        #expect(executing.abandoned() == [0x18, 0x00])
        _ = write.received(.response([0x19]))
        #expect(write.abandoned() == nil)
    }

    @Test func refusesNothingToWrite() throws {
        var server = server()
        let failure = try server.run(ReliableWrite([], mtu: 23)).failure
        #expect(failure == .impossibleRequest(.prepareWriteRequest))
    }
}
