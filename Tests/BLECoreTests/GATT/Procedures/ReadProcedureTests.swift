import BLECore
import TestSupport
import Testing

@Suite struct ReadProcedureTests {
    private func value(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0) } }

    /// A server with one value of `count` bytes at handle 3.
    private func server(_ count: Int, mtu: Int, quirks: Set<TestAttributeServer.Quirk> = []) -> TestAttributeServer {
        var database = ModelDatabase()
        database.service(0x180F)
        database.characteristic(0x2A19, .read, value: value(count))
        database.endService()
        return TestAttributeServer(database, mtu: mtu, quirks: quirks)
    }

    // MARK: MTU

    @Test(arguments: [("03 1700", 23), ("03 F700", 247), ("03 FFFF", 517), ("03 0000", 23), ("01 02 0000 06", 23)])
    func exchangesMTU(response: String, mtu: UInt16) throws {
        var script = try ScriptedResponses([response])
        #expect(try script.run(MTUExchange()).get() == mtu)
        #expect(script.requestTexts == ["020502"])
    }

    /// An error with handle 0 and code 6 stalls another stack forever; any other code must do no harm either.
    @Test(arguments: [0x01, 0x04, 0x06, 0x0E, 0x80, 0xFF] as [UInt8])
    func anyErrorMeansTheSmallestMTU(code: UInt8) throws {
        var script = try ScriptedResponses([Hex.encode([0x01, 0x02, 0x00, 0x00, code])])
        #expect(try script.run(MTUExchange()).get() == 23)
    }

    @Test func damagedMTUResponseIsMalformed() throws {
        for response in ["03", "03 17", "03 1700 00"] {
            var script = try ScriptedResponses([response])
            #expect(try script.run(MTUExchange()).isMalformed)
        }
    }

    // MARK: Long values

    @Test(arguments: [0, 1, 21, 22, 23, 44, 45, 511, 512])
    func readsToTheEnd(count: Int) throws {
        for mtu in [23, 100, 247, 517] {
            var server = server(count, mtu: mtu)
            #expect(try server.run(ReadLong(handle: 3, mtu: UInt16(mtu))).get() == value(count))
            #expect(server.requests.count == count / (mtu - 1) + 1)
        }
    }

    /// A peer may call a value of exactly one packet short; another stack fails to read it then.
    @Test("both errors that mean the end", .row("G16"))
    func endsWithEitherError() throws {
        var server = server(22, mtu: 23, quirks: [.refusesBlobOfOnePacket])
        #expect(try server.run(ReadLong(handle: 3, mtu: 23)).get() == value(22))
        let first = "0B" + Hex.encode(value(22))
        for code in ["07", "0B"] {
            var script = try ScriptedResponses([first, "01 0C 0300 " + code])
            #expect(try script.run(ReadLong(handle: 3, mtu: 23)).get() == value(22))
            #expect(script.requestTexts == ["0a0300", "0c03001600"])
        }
    }

    @Test("any other error fails", .row("G16"), arguments: [0x01, 0x02, 0x05, 0x06, 0x0A, 0x80] as [UInt8])
    func otherErrorsFail(code: UInt8) throws {
        var script = try ScriptedResponses(["0B" + Hex.encode(value(22)), Hex.encode([0x01, 0x0C, 3, 0, code])])
        let failure = try script.run(ReadLong(handle: 3, mtu: 23)).failure
        #expect(failure == .att(.readBlobRequest, 3, ATTErrorCode(rawValue: code)))
    }

    @Test("the first request has no such ending", .row("G16"), arguments: [0x07, 0x0B] as [UInt8])
    func firstRequestFails(code: UInt8) throws {
        var script = try ScriptedResponses([Hex.encode([0x01, 0x0A, 3, 0, code])])
        let failure = try script.run(ReadLong(handle: 3, mtu: 23)).failure
        #expect(failure == .att(.readRequest, 3, ATTErrorCode(rawValue: code)))
    }

    /// Full pieces forever overflow a counter in another stack and end its process.
    @Test("full pieces forever", .row("G15"), arguments: [23, 24, 129, 247, 517])
    func anEndlessValueIsTooLong(mtu: Int) throws {
        var server = server(0, mtu: mtu)
        server.intercept = { packet in
            let piece = [UInt8](repeating: 0xAB, count: mtu - 1)
            if case .readRequest = packet { return [0x0B] + piece }
            return [0x0D] + piece
        }
        let failure = try server.run(ReadLong(handle: 3, mtu: UInt16(mtu))).failure
        #expect(failure == .valueTooLong(partial: [UInt8](repeating: 0xAB, count: 512)))
        #expect(server.requests.count <= 24)
    }

    // MARK: By type

    @Test func readsAllOfOneType() throws {
        var database = ModelDatabase()
        database.service(0x180F)
        for count in [3, 3, 5, 40] { database.characteristic(0x2A19, .read, value: value(count)) }
        database.endService()
        var server = TestAttributeServer(database)
        let values = try server.run(ReadByUUID(0x2A19, mtu: 23)).get()
        #expect(values.map(\.handle) == [3, 5, 7, 9])
        #expect(values.map(\.value.count) == [3, 3, 5, 19])
        #expect(values.map(\.mayBeCut) == [false, false, false, true])
        #expect(server.requests.count == 4)
    }

    /// What the last response holds beyond the limit is not thrown away.
    @Test func stopsAtTheLimit() throws {
        var server = TestAttributeServer(.smallSensor)
        let found = try server.run(ReadByUUID(.characteristicDeclaration, mtu: 23, limit: 2)).get()
        #expect(found.count == 3)
        #expect(server.requests.count == 1)
    }

    @Test func anAbsentCharacteristicIsAttributeNotFound() throws {
        var server = TestAttributeServer(.smallSensor)
        #expect(try server.run(ReadByUUID(0x2B2A, mtu: 23)).failure == .attributeNotFound(0x2B2A))
    }

    @Test(arguments: [("09 03 0100 00", GATTFailure.outOfRange(1)), ("09 03 0500 00 0500 00", .noProgress(at: 5))])
    func refusesHandlesThatWereNotAskedFor(response: String, failure: GATTFailure) throws {
        var script = try ScriptedResponses([response])
        #expect(try script.run(ReadByUUID(0x2A19, in: 3...9, mtu: 23)).failure == failure)
    }

    @Test(arguments: ["09 00 0300", "09 01 03", "09 04 0300 00", "09"])
    func refusesImpossibleLists(response: String) throws {
        var script = try ScriptedResponses([response])
        #expect(try script.run(ReadByUUID(0x2A19, mtu: 23)).isMalformed)
    }

    /// Behind the last handle there is nothing to ask about; it must not begin again with the first ones.
    @Test("the last handle has a value", .row("G06")) func endsAtTheLastHandle() throws {
        var script = try ScriptedResponses(["09 03 FDFF 01 FFFF 02"])
        let values = try script.run(ReadByUUID(0x2A19, mtu: 23)).get()
        #expect(values == [.init(handle: 0xFFFD, value: [1]), .init(handle: 0xFFFF, value: [2])])
        #expect(script.requestTexts == ["080100ffff192a"])
    }

    // MARK: Several values

    @Test func readsSeveralValues() throws {
        var script = try ScriptedResponses(["0F 0102030405"])
        #expect(try script.run(ReadMultiple(handles: [3, 7], mtu: 23)).get() == [1, 2, 3, 4, 5])
        #expect(script.requestTexts == ["0e03000700"])
    }

    @Test func keepsSeveralValuesApart() throws {
        var script = try ScriptedResponses(["21 0200 0102 0000 0100 FF"])
        let values = try script.run(ReadMultipleVariable(handles: [3, 7, 9], mtu: 23)).get()
        #expect(
            values == [.init(handle: 3, value: [1, 2]), .init(handle: 7, value: []), .init(handle: 9, value: [255])])
        #expect(script.requestTexts == ["20030007000900"])
    }

    /// A full packet may end inside the last value; a short one may not.
    @Test func lastOfSeveralValuesMayBeCut() throws {
        let full = "21 0500 0102030405 1400" + String(repeating: "AB", count: 13)
        var script = try ScriptedResponses([full])
        let values = try script.run(ReadMultipleVariable(handles: [3, 7, 9], mtu: 23)).get()
        #expect(values.map(\.mayBeCut) == [false, true])
        #expect(values.map(\.value.count) == [5, 13])
        script = try ScriptedResponses(["21 0200 0102 0500 01"])
        #expect(try script.run(ReadMultipleVariable(handles: [3, 7], mtu: 23)).isMalformed)
    }

    /// Where a value is missing nobody can say which one it is: another stack asserted that there were as many as it
    /// had asked for.
    @Test(
        "fewer values than handles, and room for more", .row("T28"),
        arguments: ["21 0200 0102", "21 0200 0102 0100 03"])
    func refusesToGuessWhichValueIsMissing(response: String) throws {
        var script = try ScriptedResponses([response])
        #expect(try script.run(ReadMultipleVariable(handles: [3, 7, 9], mtu: 23)).isMalformed)
    }

    @Test func refusesWhatDoesNotFit() throws {
        var script = try ScriptedResponses([])
        let many = [AttributeHandle](1...12)
        #expect(
            try script.run(ReadMultiple(handles: many, mtu: 23)).failure == .impossibleRequest(.readMultipleRequest))
        #expect(try script.run(ReadMultiple(handles: [], mtu: 23)).failure == .impossibleRequest(.readMultipleRequest))
        #expect(
            try script.run(ReadMultipleVariable(handles: many, mtu: 23)).failure
                == .impossibleRequest(.readMultipleVariableRequest))
    }
}
