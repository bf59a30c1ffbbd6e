import BLECore
import TestSupport
import Testing

/// Peers that respond to discovery wrongly. The link survives all of them.
@Suite struct GATTDiscoveryHostileTests {
    private func discover(
        _ responses: [String], level: DiscoveryLevel = .full, mtu: UInt16 = 23, isStrict: Bool = false
    ) throws -> Result<GATTDatabase, GATTFailure> {
        var script = try ScriptedResponses(responses)
        return try script.run(GATTDiscovery(level: level, mtu: mtu, isStrict: isStrict))
    }

    /// One service 1...10 of kind 0x180F.
    private static let service = "11 06 0100 0A00 0F18"
    private static let noMoreServices = "01 10 0B00 0A"

    /// A list whose entries say that they have `length` bytes, with enough bytes for two of them.
    private func list(_ opcode: UInt8, entryLength: UInt8) -> String {
        var bytes: [UInt8] = [opcode, entryLength]
        for index in 0..<UInt8(2) {
            let entry: [UInt8] = [2 + 3 * index, 0, 0x02, 3 + 3 * index, 0] + [UInt8](repeating: 0x2A, count: 250)
            bytes += entry.prefix(Int(entryLength))
        }
        return Hex.encode(bytes)
    }

    @Test("impossible entry lengths", .row("G01"), arguments: [0, 1, 3, 5, 7, 19, 21, 255] as [UInt8])
    func impossibleEntryLengthsAreMalformed(length: UInt8) throws {
        let services = try discover([list(0x11, entryLength: length)])
        #expect(services.isMalformed)
        guard length != 7, length != 21 else { return }
        let characteristics = try discover([Self.service, Self.noMoreServices, list(0x09, entryLength: length)])
        #expect(characteristics.isMalformed)
    }

    /// A reference is two handles, and a short UUID or none. One with a long UUID would be longer than the
    /// specification has it.
    @Test("impossible lengths of references", .row("G01"), arguments: [0, 1, 3, 5, 7, 20] as [Int])
    func impossibleIncludeLengthsAreMalformed(length: Int) throws {
        let value = [5, 0, 8, 0, 0x0F, 0x18] + [UInt8](repeating: 0x2A, count: 14)
        let include = Hex.encode([0x09, UInt8(2 + length), 2, 0] + value.prefix(length))
        let found = try discover(
            [Self.service, Self.noMoreServices, "01 08 0200 0A", "05 01 0200 0228", include], mtu: 64)
        #expect(found.isMalformed)
    }

    @Test("a list that is no multiple of its entries", .row("G02"))
    func listIsNoMultiple() throws {
        for cut in 1...5 {
            let services = String(repeating: "00", count: cut)
            #expect(try discover([Self.service + services]).isMalformed)
            let characteristics = "09 07 0200 02 0300 192A" + String(repeating: "00", count: cut)
            #expect(try discover([Self.service, Self.noMoreServices, characteristics]).isMalformed)
        }
    }

    @Test("the same or lower handles again", .row("G03"))
    func handlesThatComeAgainEndTheDiscovery() throws {
        let services = try discover([Self.service, "11 06 0500 0A00 0F18"])
        #expect(services.failure == .noProgress(at: 5))
        let same = try discover(["11 06 0300 0A00 0F18", "11 06 0300 0A00 0F18"])
        #expect(same.failure == .noProgress(at: 3))
        let characteristic = "09 07 0200 02 0300 192A"
        let characteristics = try discover(
            [Self.service, Self.noMoreServices, characteristic, characteristic], level: .structure)
        #expect(characteristics.failure == .noProgress(at: 2))
    }

    @Test("handles outside the range asked for", .row("G04"))
    func handlesOutsideTheRangeEndTheDiscovery() throws {
        let characteristics = try discover([Self.service, Self.noMoreServices, "09 07 0B00 02 0C00 192A"])
        #expect(characteristics.failure == .outOfRange(11))
        let descriptors = try discover(
            [Self.service, Self.noMoreServices, "09 07 0200 02 0300 192A", "05 01 0B00 0229"])
        #expect(descriptors.failure == .outOfRange(11))
        let configurations = try discover(
            [
                Self.service, Self.noMoreServices, "09 07 0200 10 0300 192A 0600 10 0700 1A2A", "01 08 0800 0A",
                "09 04 0100 0000",
            ], level: .subscribable)
        #expect(configurations.failure == .outOfRange(1))
    }

    /// The first entry is fine; the second one is outside the service, or outside the handles that were requested.
    @Test(
        "a later entry of a list is outside the range asked for", .row("G04"),
        arguments: [
            (.subscribable, [service, noMoreServices, "09 07 0200 02 0300 192A 0B00 02 0C00 1A2A"]),
            (
                .subscribable,
                [
                    service, noMoreServices, "09 07 0200 10 0300 192A 0600 10 0700 1A2A", "01 08 0800 0A",
                    "09 04 0400 0000 0B00 0000",
                ]
            ),
            (.full, [service, noMoreServices, "09 07 0200 02 0300 192A", "05 01 0400 0229 0B00 0229"]),
            (
                .full,
                [
                    service, noMoreServices, "01 08 0200 0A", "05 01 0200 0228",
                    "09 08 0200 0500 0800 0F18 0B00 0500 0800 0F18",
                ]
            ),
        ] as [(DiscoveryLevel, [String])])
    func laterEntryOutsideTheRange(level: DiscoveryLevel, responses: [String]) throws {
        #expect(try discover(responses, level: level).failure == .outOfRange(11))
    }

    @Test("a later service is outside the range asked for", .row("G04"))
    func laterServiceOutsideTheRange() throws {
        var script = try ScriptedResponses(["11 06 0100 0500 0F18 0B00 0C00 0A18"])
        #expect(try script.run(GATTDiscovery(in: 1...10, mtu: 23)).failure == .outOfRange(11))
    }

    @Test("a service that begins at 0 or ends ahead of its beginning", .row("G05"))
    func impossibleServiceRangesEndTheDiscovery() throws {
        #expect(try discover(["11 06 0000 0A00 0F18"]).isMalformed)
        #expect(try discover(["11 06 0900 0500 0F18"]).isMalformed)
    }

    @Test("the last handle is 0xFFFF", .row("G06"))
    func theDiscoveryEndsAtTheLastHandle() throws {
        let found = try discover(["11 06 FDFF FFFF 0F18", "09 07 FEFF 02 FFFF 192A", "01 04 0100 0A"]).get()
        #expect(found.characteristics.map(\.valueHandle) == [0xFFFF])
        #expect(found.characteristics.map(\.endHandle) == [0xFFFF])
        #expect(found.quirks == [])
    }

    @Test("a service claims everything up to 0xFFFF", .row("G07"))
    func clampedService() throws {
        let responses = [
            "11 06 0100 FFFF 0018 0600 0800 0F18", "01 10 0900 0A", "09 07 0200 02 0300 002A 0700 02 0800 192A",
            "01 04 0400 0A",
        ]
        let found = try discover(responses).get()
        #expect(found.services.map(\.handles) == [1...5, 6...8])
        #expect(found.quirks == [.serviceEndClamped(1)])
        #expect(try discover(responses, isStrict: true).failure == .quirk(.serviceEndClamped(1)))
    }

    /// The end 0 made another stack search a range that never ended (bluekitchen/btstack#678).
    @Test("a service without an end", .row("G07"))
    func serviceWithoutEnd() throws {
        let found = try discover(
            ["11 06 0100 0000 0018", "11 06 0600 0800 0F18", "01 10 0900 0A", "01 08 0200 0A"], level: .structure
        ).get()
        #expect(found.services.map(\.handles) == [1...5, 6...8])
        #expect(found.quirks == [.serviceEndMissing(1)])
        let alone = try discover(["11 06 0100 0000 0018", "01 10 0200 0A", "01 08 0200 0A"], level: .structure).get()
        #expect(alone.services.map(\.handles) == [1...0xFFFF])
    }

    /// The first service claims everything, and the list ends with it; its gaps show the others.
    @Test("services after one that claims everything", .row("G07"))
    func servicesAfterAGreedyOne() throws {
        var database = ModelDatabase()
        database.service(0x1800)
        database.characteristic(0x2A00, .read)
        database.endService(at: 0xFFFF)
        database.service(0x180F)
        database.characteristic(0x2A19, [.read, .notify])
        database.cccd()
        database.endService()
        var server = TestAttributeServer(database)
        let found = try server.run(GATTDiscovery(level: .full, mtu: 23)).get()
        #expect(found.services.map(\.uuid) == [0x1800, 0x180F])
        #expect(found.services.map(\.handles) == [1...3, 4...7])
        #expect(found.cccd(of: found.characteristics[1])?.handle == 7)
    }

    @Test("services out of order or overlapping", .row("G08"))
    func ofOverlappingServicesTheFirstIsKept() throws {
        let unsorted = try discover(
            ["11 06 0500 0800 0F18 0100 0400 0018", "01 10 0900 0A", "01 08 0600 0A"], level: .structure
        ).get()
        #expect(unsorted.services.map(\.uuid) == [0x180F])
        #expect(unsorted.quirks == [.serviceDropped(1)])
        let overlapping = try discover(
            ["11 06 0100 0600 0F18 0400 0800 0018", "01 10 0700 0A", "01 08 0200 0A"], level: .structure
        ).get()
        #expect(overlapping.services.map(\.handles) == [1...6])
        #expect(overlapping.quirks == [.serviceDropped(4)])
    }

    @Test("one handle in each response, without end", .row("G09"))
    func oneHandleInEachResponseEndsAtTheLimit() throws {
        var server = TestAttributeServer(ModelDatabase())
        server.intercept = { packet in
            switch packet {
            case .readByGroupTypeRequest(let request) where request.startHandle == 1:
                return [0x11, 6, 1, 0, 0xFF, 0xFF, 0x0F, 0x18]
            case .findInformationRequest(let request):
                // Holes only: every second handle exists.
                let handle = request.startHandle | 1
                return [0x05, 1] + handle.wireBytes + [0x01, 0x29]
            default:
                return nil
            }
        }
        let result = try server.run(GATTDiscovery(level: .full, mtu: 23))
        #expect(result.failure == .databaseTooLarge(limit: 4_096))
        #expect(server.requests.count <= 2 * 4_096 + 65)
    }

    /// The list of services continues, but nothing new comes: refused includes of a service that never shows.
    @Test("more requests than attributes", .row("G09"))
    func requestsWithoutAttributesEndAtTheLimit() throws {
        var server = TestAttributeServer(ModelDatabase())
        server.intercept = { packet in
            guard case .readByGroupTypeRequest(let request) = packet else { return nil }
            guard request.startHandle < 200 * 20 else { return nil }
            // Forty gaps of twenty handles in each response at this MTU; every gap costs a request.
            var bytes: [UInt8] = [0x11, 6]
            for index in 0..<40 as Range<UInt16> {
                let start = request.startHandle + 20 * index
                bytes += start.wireBytes + start.wireBytes + [0x0F, 0x18]
            }
            return bytes
        }
        let result = try server.run(GATTDiscovery(level: .full, mtu: 247))
        #expect(result.failure == nil)
        #expect(server.requests.count <= 2 * (try result.get().attributeCount) + 64)
    }

    /// Each reference names a service that is not there and does not say of which kind it is, and comes alone: four
    /// requests for one attribute.
    @Test("references that cost more requests than they are worth", .row("G09"))
    func costlyReferencesEndAtTheLimit() throws {
        var server = TestAttributeServer(ModelDatabase())
        server.intercept = { packet in
            switch packet {
            case .readByGroupTypeRequest(let request) where request.startHandle == 1:
                return [0x11, 6, 1, 0, 101, 0, 0x0F, 0x18]
            case .findInformationRequest(let request) where request.startHandle <= 101:
                return [0x05, 1] + request.startHandle.wireBytes + [0x02, 0x28]
            case .readByTypeRequest(let request) where request.type == .includeDeclaration:
                let target = (1_000 + 2 * request.startHandle).wireBytes
                return [0x09, 6] + request.startHandle.wireBytes + target + target
            case .readRequest:
                return [0x0B]
            default:
                return nil
            }
        }
        let result = try server.run(GATTDiscovery(level: .full, mtu: 23))
        guard case .noProgress? = result.failure else {
            Issue.record("\(result)")
            return
        }
        // A service and a hundred references.
        #expect(server.requests.count <= 2 * 101 + 65)
    }

    @Test("65,535 attributes", .row("G10"))
    func tooManyAttributesEndTheDiscovery() throws {
        for mtu in [23, 517] {
            var server = TestAttributeServer(ModelDatabase(), mtu: mtu)
            server.intercept = { packet in
                guard case .readByGroupTypeRequest(let request) = packet else { return nil }
                var bytes: [UInt8] = [0x11, 20]
                var handle = Int(request.startHandle)
                while bytes.count + 20 <= mtu, handle < 0xFFFF {
                    bytes += UInt16(handle).wireBytes + UInt16(handle).wireBytes + long(UInt64(handle)).attBytes
                    handle += 1
                }
                return bytes
            }
            let result = try server.run(GATTDiscovery(mtu: UInt16(mtu)))
            #expect(result.failure == .databaseTooLarge(limit: 4_096))
        }
    }

    @Test("services that include each other, themselves, and what is not there", .row("G11"))
    func includesMayFormACycle() throws {
        var database = ModelDatabase()
        database.service(0x1800)
        database.include(5...8, uuid: 0x180F)
        database.include(1...4, uuid: 0x1800)
        database.include(9...3000, uuid: 0x1234)
        database.endService()
        database.service(0x180F)
        database.include(1...4, uuid: 0x1800)
        database.append(.includeDeclaration, [9, 0, 5, 0, 0x0F, 0x18])
        database.append(.includeDeclaration, [0, 0, 5, 0, 0x0F, 0x18])
        database.endService()
        var server = TestAttributeServer(database)
        let found = try server.run(GATTDiscovery(level: .full, mtu: 23)).get()
        #expect(found.services.map { $0.includes.map(\.handles) } == [[5...8, 1...4, 9...3000], [1...4]])
        #expect(found.quirks == [.includeDropped(7), .includeDropped(8)])
        #expect(server.requests.count < 20)
    }

    @Test("impossible value handles", .row("G12"), arguments: ["0000", "0100", "0200", "0B00", "0600"])
    func aCharacteristicWithAnImpossibleValueHandleIsDropped(value: String) throws {
        // The second declaration, at 5, is fine; 6 is its value, so the first cannot have it too.
        let found = try discover(
            [
                Self.service, Self.noMoreServices, "09 07 0200 02 \(value) 192A 0500 02 0600 1A2A", "01 08 0700 0A",
            ], level: .structure
        ).get()
        #expect(found.characteristics.map(\.declarationHandle) == [5])
        #expect(found.quirks == [.characteristicDropped(2)])
    }

    @Test(
        "impossible lists of types", .row("G13"), arguments: ["05 00 0400 0129", "05 03 0400 0129", "05 02 0400 0129"])
    func impossibleListsOfTypesAreMalformed(response: String) throws {
        let result = try discover([Self.service, Self.noMoreServices, "09 07 0200 02 0300 192A", response])
        #expect(result.isMalformed)
    }

    @Test("ten configurations, or none", .row("G14"))
    func ofTenConfigurationsTheFirstCounts() throws {
        var database = ModelDatabase()
        database.service(0x180F)
        database.characteristic(0x2A19, .notify)
        for _ in 0..<10 { database.cccd() }
        database.characteristic(0x2A1A, .notify)
        database.append(0x2901)
        database.append(0x2904)
        database.endService()
        for level in [DiscoveryLevel.subscribable, .full] {
            var server = TestAttributeServer(database)
            let found = try server.run(GATTDiscovery(level: level, mtu: 23)).get()
            #expect(found.cccd(of: found.characteristics[0])?.handle == 4)
            #expect(found.cccd(of: found.characteristics[1]) == nil)
        }
    }
}
