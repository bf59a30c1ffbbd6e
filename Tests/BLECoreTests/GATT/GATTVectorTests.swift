import BLECore
import Foundation
import TestSupport
import Testing

/// The client operations recorded from the test suites of BlueZ and NimBLE: same responses in, same outcome out.
///
/// Reads and writes must ask exactly what the recorded client asked. Discovery goes another way, so there the recorded
/// database responds, or one that has what the recorded client found.
@Suite(.enabled(if: SharedVectors.available(for: "GATTVectorTests"))) struct GATTVectorTests {
    private static func cases(_ operations: String...) -> [GATTVectors.Case] {
        GATTVectors.cases.filter { operations.contains($0.operation) }
    }

    /// A guard against a file that shrinks or a filter that matches nothing.
    @Test func countsTheCases() {
        #expect(GATTVectors.cases.count == 110)
        #expect(Self.cases("read", "read-long", "read-by-uuid", "read-multiple").count == 39)
        #expect(Self.cases("write", "write-long", "reliable-write").count == 31)
    }

    // MARK: Reads and writes

    @Test(arguments: cases("read", "read-long"))
    func aReadHasTheValueOfTheVector(recorded: GATTVectors.Case) throws {
        let handle = try #require(recorded.params.handle)
        let result = try run(ReadLong(handle: handle, mtu: recorded.mtu), as: recorded)
        try check(result, of: recorded) { value, expected in #expect(Hex.encode(value) == expected.value) }
    }

    @Test(arguments: cases("read-by-uuid"))
    func readsByUUID(recorded: GATTVectors.Case) throws {
        let parameters = recorded.params
        let range = try #require(parameters.start)...(try #require(parameters.end))
        let uuid = try GATTVectors.uuid(parameters.uuid)
        let result = try run(ReadByUUID(uuid, in: range, mtu: recorded.mtu), as: recorded)
        try check(result, of: recorded) { values, expected in
            #expect(values.map(\.handle) == expected.values?.map(\.handle))
            #expect(values.map { Hex.encode($0.value) } == expected.values?.map(\.value))
        }
    }

    @Test(arguments: cases("read-multiple"))
    func readsSeveral(recorded: GATTVectors.Case) throws {
        let handles = try #require(recorded.params.handles)
        let result = try run(ReadMultiple(handles: handles, mtu: recorded.mtu), as: recorded)
        try check(result, of: recorded) { value, expected in #expect(Hex.encode(value) == expected.value) }
    }

    @Test(arguments: cases("write"))
    func aWriteEndsAsInTheVector(recorded: GATTVectors.Case) throws {
        let value = try Hex.decode(try #require(recorded.params.value))
        let handle = try #require(recorded.params.handle)
        let result = try run(WriteRequest(handle: handle, value: value, mtu: recorded.mtu), as: recorded)
        try check(result, of: recorded) { _, _ in }
    }

    @Test(arguments: cases("write-long", "reliable-write"))
    func writesReliably(recorded: GATTVectors.Case) throws {
        let parameters = recorded.params
        var parts = try parameters.writes?.map {
            ReliableWrite.Part(handle: $0.handle, value: try Hex.decode($0.value), offset: $0.offset ?? 0)
        }
        if parts == nil {
            let value = try Hex.decode(try #require(parameters.value))
            let handle = try #require(parameters.handle)
            parts = [.init(handle: handle, value: value, offset: parameters.offset ?? 0)]
        }
        let result = try run(ReliableWrite(parts ?? [], mtu: recorded.mtu), as: recorded)
        try check(result, of: recorded) { _, _ in }
    }

    @Test(arguments: cases("exchange-mtu"))
    func exchangesMTU(recorded: GATTVectors.Case) throws {
        let offer = try #require(recorded.params.clientRxMtu)
        let result = try run(MTUExchange(offer: UInt16(clamping: offer)), as: recorded)
        try check(result, of: recorded) { mtu, expected in #expect(Int(mtu) == expected.mtu) }
    }

    @Test(arguments: cases("subscribe-notify"))
    func aSubscriptionDeliversTheValuesOfTheVector(recorded: GATTVectors.Case) throws {
        let handle = try #require(recorded.params.handle)
        let cccd = try #require(recorded.params.cccdHandle)
        var subscriptions = Subscriptions()
        let characteristic = GATTCharacteristic(
            declarationHandle: handle - 1, valueHandle: handle, endHandle: cccd, properties: .notify, uuid: 0x2A29)
        let actions = subscriptions.subscribe(
            .init(1), to: characteristic,
            cccd: GATTDescriptor(handle: cccd, uuid: .clientCharacteristicConfiguration))
        guard case .write(let written, let value, _) = actions.first else {
            Issue.record("nothing is written")
            return
        }
        try run(WriteRequest(handle: written, value: value, mtu: recorded.mtu), as: recorded).get()
        let recipients = subscriptions.recipients(of: handle)
        #expect(recipients == [.init(1)])
    }

    // MARK: Discovery

    @Test(arguments: cases("discover-primary", "discover-primary-by-uuid"))
    func discoversServices(recorded: GATTVectors.Case) throws {
        var server = TestAttributeServer(try recorded.findings.model(), mtu: recorded.clientMtu)
        let name = try recorded.params.uuid.map { try GATTVectors.uuid($0) }
        let found = try server.run(
            GATTDiscovery(level: .structure, services: name.map { [$0] }, mtu: recorded.mtu, isStrict: true)
        ).get()
        try expect(recorded.findings.services, in: found)
    }

    @Test(arguments: cases("discover-characteristics", "discover-characteristics-by-uuid"))
    func discoversCharacteristics(recorded: GATTVectors.Case) throws {
        let range = try #require(recorded.params.start)...(try #require(recorded.params.end))
        let responses = GATTVectors.Findings(characteristics: try recorded.listedCharacteristics())
        var server = TestAttributeServer(try responses.model(in: range), mtu: recorded.clientMtu)
        let found = try server.run(GATTDiscovery(level: .full, mtu: recorded.mtu, isStrict: true)).get()
        var all = found.characteristics
        if let uuid = recorded.params.uuid { all = found.characteristics(try GATTVectors.uuid(uuid)) }
        if let limit = recorded.params.limit { all = Array(all.prefix(limit)) }
        try expect(recorded.findings.characteristics, all)
    }

    @Test(arguments: cases("discover-descriptors"))
    func discoversDescriptors(recorded: GATTVectors.Case) throws {
        let range = try #require(recorded.params.start)...(try #require(recorded.params.end))
        let value = try #require(recorded.params.valueHandle)
        let model = try recorded.findings.model(in: range, valueHandle: value)
        var server = TestAttributeServer(model, mtu: recorded.clientMtu)
        let found = try server.run(GATTDiscovery(level: .full, mtu: recorded.mtu, isStrict: true)).get()
        #expect(found.descriptors.map(\.handle) == recorded.findings.descriptors?.map(\.handle))
        #expect(model.differences(from: found, level: .full) == [])
    }

    @Test(arguments: cases("discover-includes"))
    func discoversIncludes(recorded: GATTVectors.Case) throws {
        let range = try #require(recorded.params.start)...(try #require(recorded.params.end))
        var server = TestAttributeServer(try recorded.findings.model(in: range), mtu: recorded.clientMtu)
        let found = try server.run(GATTDiscovery(level: .full, mtu: recorded.mtu)).get()
        let includes = found.services.flatMap(\.includes)
        let expected = try #require(recorded.findings.includes)
        #expect(includes.map(\.handle) == expected.map(\.handle))
        #expect(includes.map(\.handles) == expected.map { $0.start...$0.end })
        #expect(try includes.map(\.uuid) == expected.map { try GATTVectors.uuid($0.uuid) })
    }

    @Test(arguments: cases("discover-all"))
    func discoversEverything(recorded: GATTVectors.Case) throws {
        let database = try #require(try GATTVectors.databases()[recorded.database ?? ""])
        var server = TestAttributeServer(try database.model(), mtu: recorded.clientMtu)
        let found = try server.run(GATTDiscovery(level: .full, mtu: recorded.mtu, isStrict: true)).get()
        try expect(recorded.findings.services, in: found)
        try expect(recorded.findings.characteristics, found.characteristics)
        #expect(found.descriptors.map(\.handle) == recorded.findings.descriptors?.map(\.handle))
        let recordedRequests = recorded.script.count { $0.c2s != nil }
        #expect(server.requests.count < recordedRequests)
    }

    /// The attribute tables of the BlueZ cases: sparse, with secondary services and includes, up to handle 0xFFFF.
    @Test(arguments: [23, 100, 512], DiscoveryLevel.allCases)
    func discoversTheRecordedTables(mtu: Int, level: DiscoveryLevel) throws {
        for (name, database) in try GATTVectors.databases() {
            let model = try database.model()
            var server = TestAttributeServer(model, mtu: mtu)
            let found = try server.run(GATTDiscovery(level: level, mtu: UInt16(mtu))).get()
            #expect(model.differences(from: found, level: level) == [], "\(name)")
        }
    }

    /// The devices of real connections. What was concluded and never asked must agree with what they really had.
    @Test(arguments: [23, 247]) func discoversRealDevices(mtu: Int) throws {
        var count = 0
        for recorded in try GATTVectors.realDatabases() where recorded.services?.isEmpty == false {
            let model = try recorded.model()
            for level in DiscoveryLevel.allCases {
                var server = TestAttributeServer(model, mtu: mtu)
                let found = try server.run(GATTDiscovery(level: level, mtu: UInt16(mtu))).get()
                // The recorded client did not ask about everything, so more may be there than it learnt.
                let differences = model.differences(from: found, level: level)
                    .filter { !$0.hasSuffix("does not exist") }
                #expect(differences == [])
            }
            count += 1
        }
        #expect(count > 60)
    }
}

// MARK: - Comparing

extension GATTVectors.Case {
    /// The MTU as the procedures take it.
    fileprivate var mtu: UInt16 { UInt16(clamping: clientMtu) }
}

extension GATTVectorTests {
    /// Runs a procedure on the recorded responses; every request must be the recorded one.
    private func run<Procedure: GATTProcedure>(
        _ procedure: Procedure, as recorded: GATTVectors.Case
    ) throws -> Result<Procedure.Output, GATTFailure> {
        var procedure = procedure
        var requests = recorded.script.compactMap(\.c2s)[...]
        var responses = try recorded.script.compactMap(\.s2c).map { try Hex.decode($0) }[...]
        var step = procedure.begin()
        while true {
            guard case .send(let request) = step else { break }
            let text = Hex.encode(request)
            guard let expected = requests.popFirst() else {
                // The recorded client stopped where a full packet might continue; that it does not is a response too.
                #expect(recorded.operation == "read")
                let end = ATTErrorResponse(
                    requestOpcode: .readBlobRequest, handle: recorded.params.handle ?? 0, code: .attributeNotLong)
                step = procedure.received(.error(end))
                continue
            }
            #expect(text == expected)
            guard var response = responses.popFirst() else { throw ResponsesRanOut(request: text) }
            // The link gets its security below the procedures, which see the repeated request's response only.
            if recorded.params.autoSecurityUpgrade == true, response.first == 0x01, requests.first == expected {
                requests.removeFirst()
                guard let repeated = responses.popFirst() else { throw ResponsesRanOut(request: text) }
                response = repeated
            }
            step = procedure.received(try ATTReply(response))
        }
        #expect(requests.isEmpty, "requests that were not sent")
        switch step {
        case .finished(let output): return .success(output)
        case .failed(let failure): return .failure(failure)
        case .send: throw EndlessProcedure()
        }
    }

    private func check<Output>(
        _ result: Result<Output, GATTFailure>, of recorded: GATTVectors.Case,
        _ compare: (Output, GATTVectors.Expectation) throws -> Void
    ) throws {
        let expected = recorded.expect
        switch (result, expected.result) {
        case (.success(let output), "ok"):
            try compare(output, expected)
        case (.failure(.att(_, let handle, let code)), "att-error"):
            #expect(code.rawValue == expected.error)
            #expect(handle == expected.errorHandle)
        case (.failure(.reliableWriteMismatch), "failed"):
            #expect(expected.reason == "prepare-write-echo-mismatch")
        default:
            Issue.record("\(result) instead of \(expected.result ?? "nothing")")
        }
    }

    private func expect(_ services: [GATTVectors.Service]?, in found: GATTDatabase) throws {
        let expected = try #require(services)
        #expect(found.services.map(\.handles) == expected.map { $0.start...$0.end })
        #expect(try found.services.map(\.uuid) == expected.map { try GATTVectors.uuid($0.uuid) })
        #expect(found.services.map(\.isPrimary) == expected.map { $0.primary ?? true })
    }

    private func expect(
        _ characteristics: [GATTVectors.Characteristic]?, _ found: [GATTCharacteristic]
    ) throws {
        let expected = try #require(characteristics)
        #expect(found.map(\.declarationHandle) == expected.map(\.declarationHandle))
        #expect(found.map(\.valueHandle) == expected.map(\.valueHandle))
        #expect(found.map(\.properties.rawValue) == expected.map(\.properties))
        #expect(try found.map(\.uuid) == expected.map { try GATTVectors.uuid($0.uuid) })
    }
}
