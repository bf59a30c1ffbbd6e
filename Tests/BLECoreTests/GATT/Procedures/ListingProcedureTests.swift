import BLECore
import TestSupport
import Testing

/// The procedures that list one kind of attribute, on responses recorded from the test suites of BlueZ and NimBLE.
@Suite(.enabled(if: SharedVectors.available(for: "ListingVectorTests"))) struct ListingVectorTests {
    private static func cases(_ operations: String...) -> [GATTVectors.Case] {
        GATTVectors.cases.filter { operations.contains($0.operation) }
    }

    @Test func countsTheCases() {
        let all = Self.cases(
            "discover-primary", "discover-primary-by-uuid", "discover-includes", "discover-characteristics",
            "discover-characteristics-by-uuid", "discover-descriptors")
        #expect(all.count == 22)
    }

    @Test(arguments: cases("discover-primary", "discover-primary-by-uuid"))
    func theServicesOfTheVectorAreFound(recorded: GATTVectors.Case) throws {
        let uuid = try recorded.params.uuid.map { try GATTVectors.uuid($0) }
        var script = try responses(recorded)
        let found = try script.run(ServiceDiscovery(uuid, in: recorded.range)).get()
        let expected = try #require(recorded.findings.services)
        #expect(found.map(\.handles) == expected.map { $0.start...$0.end })
        #expect(try found.map(\.uuid) == expected.map { try GATTVectors.uuid($0.uuid) })
        #expect(found.allSatisfy { $0.isPrimary })
    }

    @Test(arguments: cases("discover-includes"))
    func theIncludedServicesOfTheVectorAreFound(recorded: GATTVectors.Case) throws {
        var script = try responses(recorded)
        let found = try script.run(IncludeDiscovery(in: recorded.range)).get()
        let expected = try #require(recorded.findings.includes)
        #expect(found.map(\.handle) == expected.map(\.handle))
        #expect(found.map(\.handles) == expected.map { $0.start...$0.end })
        #expect(try found.map(\.uuid) == expected.map { try GATTVectors.uuid($0.uuid) })
        #expect(script.requestTexts == recorded.script.compactMap(\.c2s))
    }

    @Test(arguments: cases("discover-characteristics", "discover-characteristics-by-uuid"))
    func theCharacteristicsOfTheVectorAreFound(recorded: GATTVectors.Case) throws {
        let uuids = try recorded.params.uuid.map { [try GATTVectors.uuid($0)] }
        let limit = recorded.params.limit ?? .max
        var script = try responses(recorded)
        let found = try script.run(CharacteristicDiscovery(uuids, in: recorded.range, limit: limit)).get()
        let expected = try #require(recorded.findings.characteristics)
        #expect(found.map(\.declarationHandle) == expected.map(\.declarationHandle))
        #expect(found.map(\.valueHandle) == expected.map(\.valueHandle))
        #expect(found.map(\.properties.rawValue) == expected.map(\.properties))
        #expect(try found.map(\.uuid) == expected.map { try GATTVectors.uuid($0.uuid) })
        for (one, next) in zip(found, found.dropFirst()) { #expect(one.endHandle < next.declarationHandle) }
    }

    @Test(arguments: cases("discover-descriptors"))
    func theDescriptorsOfTheVectorAreFound(recorded: GATTVectors.Case) throws {
        let limit = recorded.params.limit ?? .max
        var script = try responses(recorded)
        let found = try script.run(DescriptorDiscovery(in: recorded.range, limit: limit)).get()
        let expected = try #require(recorded.findings.descriptors)
        #expect(found.map(\.handle) == expected.map(\.handle))
        #expect(try found.map(\.uuid) == expected.map { try GATTVectors.uuid($0.uuid) })
        #expect(script.requestTexts == recorded.script.compactMap(\.c2s))
    }

    /// Every response cut at every length, and with every byte flipped, ends in a list or in a failure.
    @Test func aDamagedResponseEndsInAListOrAFailure() throws {
        for recorded in GATTVectors.cases where recorded.operation.hasPrefix("discover-") {
            for line in recorded.script.compactMap(\.s2c) {
                let packet = try Hex.decode(line)
                var damaged = (1..<packet.count).map { Array(packet.prefix($0)) }
                for index in packet.indices.dropFirst() {
                    for bit in [0x01, 0x80] as [UInt8] {
                        var flipped = packet
                        flipped[index] ^= bit
                        damaged.append(flipped)
                    }
                }
                for pdu in damaged { endsOn(pdu) }
            }
        }
    }

    private func endsOn(_ pdu: [UInt8]) {
        end(ServiceDiscovery(), on: pdu)
        end(ServiceDiscovery(0x1800), on: pdu)
        end(IncludeDiscovery(in: 1...0xFFFF), on: pdu)
        end(CharacteristicDiscovery(in: 1...0xFFFF), on: pdu)
        end(DescriptorDiscovery(in: 1...0xFFFF), on: pdu)
    }

    /// A peer that says the same forever must not be asked forever.
    private func end<Procedure: GATTProcedure>(_ procedure: Procedure, on pdu: [UInt8]) {
        var procedure = procedure
        var step = procedure.begin()
        for _ in 0..<8 {
            guard case .send = step else { return }
            if pdu.first == ATTErrorResponse.opcode.rawValue {
                guard let error = try? ATTErrorResponse(pdu) else { return }
                step = procedure.received(.error(error))
            } else {
                step = procedure.received(.response(pdu))
            }
        }
        Issue.record("\(Procedure.self) goes on after \(Hex.encode(pdu))")
    }

    private func responses(_ recorded: GATTVectors.Case) throws -> ScriptedResponses {
        try ScriptedResponses(recorded.script.compactMap(\.s2c))
    }
}

extension GATTVectors.Case {
    fileprivate var range: ClosedRange<UInt16> { (params.start ?? 1)...(params.end ?? 0xFFFF) }
}

/// What peers get wrong, written by hand after the layouts in Core Vol 3 Part F, 3.4.
@Suite struct ListingProcedureTests {
    @Test func aServiceWithoutEndReachesToTheNext() throws {
        var script = try ScriptedResponses(["1106 0100 0000 0018", "1106 0500 ffff 0118 0900 0c00 0218", "01100d000a"])
        let found = try script.run(ServiceDiscovery()).get()
        #expect(found.map(\.handles) == [1...4, 5...8, 9...12])
    }

    @Test func aListMayEndWithAWrongError() throws {
        var script = try ScriptedResponses(["1106 0100 0400 0018", "0110 0500 10"])
        #expect(try script.run(ServiceDiscovery()).get().count == 1)
        var refused = try ScriptedResponses(["0110 0100 10"])
        #expect(try refused.run(ServiceDiscovery()).failure == .att(.readByGroupTypeRequest, 1, .unsupportedGroupType))
        var locked = try ScriptedResponses(["1106 0100 0400 0018", "0110 0500 05"])
        #expect(
            try locked.run(ServiceDiscovery()).failure
                == .att(.readByGroupTypeRequest, 5, .insufficientAuthentication))
    }

    @Test(.row("G04")) func noEntryMayBeOutsideTheRange() throws {
        func failure<Procedure: GATTProcedure>(_ procedure: Procedure, _ response: String) throws -> GATTFailure? {
            var script = try ScriptedResponses([response])
            return try script.run(procedure).failure
        }
        #expect(
            try failure(ServiceDiscovery(in: 1...10), "11 06 0100 0500 0F18 0B00 0C00 0A18") == .outOfRange(11))
        #expect(
            try failure(CharacteristicDiscovery(in: 2...10), "09 07 0200 02 0300 192A 0B00 02 0C00 1A2A")
                == .outOfRange(11))
        #expect(
            try failure(IncludeDiscovery(in: 2...10), "09 08 0200 0500 0800 0F18 0B00 0500 0800 0F18")
                == .outOfRange(11))
        #expect(
            try failure(DescriptorDiscovery(in: 4...10), "05 01 0400 0229 0B00 0229") == .outOfRange(11))
    }

    /// A declaration has 3 bytes and a UUID of 2 or 16, a reference 4 bytes and a short UUID or none, a service a UUID.
    @Test(.row("G01"), arguments: [0, 1, 3, 4, 6, 18] as [Int]) func entriesHaveALengthOfTheirKind(length: Int) throws {
        func isRefused<Procedure: GATTProcedure>(_ procedure: Procedure, _ list: [UInt8]) throws -> Bool {
            var script = try ScriptedResponses([Hex.encode(list)])
            return try script.run(procedure).isMalformed
        }
        let value = [3, 0, 5, 0, 0x0F, 0x18, 0x2A] + [UInt8](repeating: 0x2A, count: 12)
        let listed = [0x09, UInt8(2 + length), 2, 0] + value.prefix(length)
        #expect(try isRefused(CharacteristicDiscovery(in: 1...20), listed))
        if length != 4, length != 6 { #expect(try isRefused(IncludeDiscovery(in: 1...20), listed)) }
        #expect(try isRefused(ServiceDiscovery(), [0x11, UInt8(4 + length), 2, 0, 9, 0] + value.prefix(length)))
    }

    @Test(.row("G06")) func afterTheLastHandleNothingIsRequested() throws {
        var services = try ScriptedResponses(["1106 0100 0400 0018 0500 ffff 0f18"])
        #expect(try services.run(ServiceDiscovery()).get().map(\.handles) == [1...4, 5...0xFFFF])
        #expect(services.requests.count == 1)
        var characteristics = try ScriptedResponses(["0907 feff 02 ffff 192a"])
        #expect(
            try characteristics.run(CharacteristicDiscovery(in: 0xFFF0...0xFFFF)).get().map(\.valueHandle) == [0xFFFF])
        #expect(characteristics.requests.count == 1)
        var descriptors = try ScriptedResponses(["0501 ffff 0229"])
        #expect(try descriptors.run(DescriptorDiscovery(in: 0xFFF0...0xFFFF)).get().map(\.handle) == [0xFFFF])
        #expect(descriptors.requests.count == 1)
    }

    @Test func secondaryServicesHaveATypeOfTheirOwn() throws {
        var script = try ScriptedResponses(["1106 1000 1400 0f18", "0110 1500 0a"])
        let found = try script.run(ServiceDiscovery(isPrimary: false)).get()
        #expect(found == [GATTService(handles: 16...20, uuid: 0x180F, isPrimary: false)])
        #expect(script.requestTexts == ["100100ffff0128", "101500ffff0128"])
    }

    /// Find By Type Value is for primary services alone: Zephyr's server refuses others as not found.
    @Test func secondaryServicesWithAUUIDAreChosenFromTheList() throws {
        var script = try ScriptedResponses([
            "1106 1000 0000 0f18 1500 1a00 0a18", "1106 1b00 1f00 0f18", "0110 2000 0a",
        ])
        let found = try script.run(ServiceDiscovery(0x180F, isPrimary: false)).get()
        #expect(found.map(\.handles) == [16...20, 27...31])
        #expect(script.requestTexts == ["100100ffff0128", "101b00ffff0128", "102000ffff0128"])
        var other = try ScriptedResponses(["1106 1000 1400 0f18", "0110 1500 0a"])
        #expect(try other.run(ServiceDiscovery(0x180A, isPrimary: false)).get() == [])
    }

    @Test func aPeerThatRepeatsItselfIsLeft() throws {
        var services = try ScriptedResponses(["1106 0100 0400 0018", "1106 0100 0400 0018"])
        #expect(try services.run(ServiceDiscovery()).failure == .noProgress(at: 1))
        var characteristics = try ScriptedResponses(["0907 0200 02 0300 192a", "0907 0200 02 0300 192a"])
        #expect(try characteristics.run(CharacteristicDiscovery(in: 1...20)).failure == .noProgress(at: 2))
        var includes = try ScriptedResponses(["0808 0200"])
        #expect(try includes.run(IncludeDiscovery(in: 1...20)).isMalformed)
    }

    /// Three references in one response: handle, first and last handle of the service, UUID (Core Vol 3 Part G, 4.5.1).
    @Test(arguments: 1...3) func aListOfReferencesEndsAtItsLimit(limit: Int) throws {
        var script = try ScriptedResponses(["0908 0200 1000 1f00 0f18 0300 2000 2f00 0a18 0400 3000 3f00 0518"])
        let found = try script.run(IncludeDiscovery(in: 1...20, limit: limit)).get()
        #expect(found.map(\.handles) == [0x10...0x1F, 0x20...0x2F, 0x30...0x3F].prefix(limit).map { $0 })
        #expect(script.requestTexts.count == 1)
    }

    /// Without a UUID the reference is to a service with a long one, which is read where the list needs it.
    @Test func aReferenceBeyondTheLimitIsNotRead() throws {
        var script = try ScriptedResponses([
            "0906 0200 1000 1f00 0300 2000 2f00", "0b 9ecadc24 0ee5a9e0 93f3a3b5 0100406e",
        ])
        let found = try script.run(IncludeDiscovery(in: 1...20, limit: 1)).get()
        #expect(found.map(\.uuid) == [BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)])
        #expect(script.requestTexts.count == 2)
    }

    @Test func anImpossibleValueHandleIsLeftOut() throws {
        var script = try ScriptedResponses(["0907 0200 02 0200 192a 0400 02 0500 1a2a", "0108 0600 0a"])
        let found = try script.run(CharacteristicDiscovery(in: 1...20)).get()
        #expect(found.map(\.uuid) == [0x2A1A])
        #expect(found.map(\.endHandle) == [20])
    }

    /// Found by fuzzing: one impossible declaration a response, for every handle that there is.
    @Test func aListOfImpossibleDeclarationsHasAnEnd() {
        var characteristics = CharacteristicDiscovery(in: 1...0xFFFF)
        let valueBelow: [UInt8] = [2, 0, 0, 0x19, 0x2A]
        #expect(requests(of: &characteristics, listing: valueBelow) == GATTDatabase.attributeLimit + 1)
        var includes = IncludeDiscovery(in: 1...0xFFFF)
        let backwards: [UInt8] = [9, 0, 8, 0, 0x19, 0x2A]
        #expect(requests(of: &includes, listing: backwards) == GATTDatabase.attributeLimit + 1)
    }

    /// How many requests it takes a procedure to give up.
    private func requests<Procedure: GATTProcedure>(of procedure: inout Procedure, listing value: [UInt8]) -> Int {
        var step = procedure.begin()
        var count = 0
        while case .send(let request) = step {
            count += 1
            step = procedure.received(.response([0x09, UInt8(value.count + 2), request[1], request[2]] + value))
        }
        guard case .failed(.databaseTooLarge) = step else { return 0 }
        return count
    }

    @Test func anIncludedServiceWhoseUUIDCannotBeReadHasNone() throws {
        var script = try ScriptedResponses(["0906 0200 2000 2900", "010a 2000 05", "0108 0300 0a"])
        let found = try script.run(IncludeDiscovery(in: 1...20)).get()
        #expect(found == [GATTService.Include(handle: 2, handles: 0x20...0x29, uuid: nil)])
    }

    // MARK: What is known

    private let known = GATTDatabase(
        services: [GATTService(handles: 1...9, uuid: 0x180F), GATTService(handles: 10...19, uuid: 0x180A)],
        characteristics: [
            GATTCharacteristic(
                declarationHandle: 2, valueHandle: 3, endHandle: 5, properties: .read, uuid: 0x2A19)
        ],
        descriptors: [GATTDescriptor(handle: 4, uuid: 0x2902)])

    @Test func whatIsKnownAlreadyStays() {
        #expect(known.including(known.services) == known)
        #expect(known.including(known.characteristics) == known)
        #expect(known.including(known.descriptors) == known)
    }

    @Test func aServiceThatChangedTakesWhatWasInIt() {
        let changed = known.including([GATTService(handles: 1...8, uuid: 0x1805)])
        #expect(changed.services.map(\.uuid) == [0x1805, 0x180A])
        #expect(changed.characteristics.isEmpty)
        #expect(changed.descriptors.isEmpty)
    }

    @Test func includesGoIntoTheirService() {
        let include = GATTService.Include(handle: 11, handles: 1...9, uuid: 0x180F)
        #expect(known.including([include]).services.map(\.includes) == [[], [include]])
        #expect(known.including([include]).including([include]).services.map(\.includes) == [[], [include]])
    }

    @Test func aServiceThatOverlapsSeveralReplacesThemAll() {
        let whole = GATTService(handles: 5...19, uuid: 0x180A)
        let changed = known.including([GATTService(handles: 1...2, uuid: 0x1801), whole])
        #expect(changed.services.map(\.uuid) == [0x1801, 0x180A])
        #expect(changed.services.last == whole)
        #expect(changed.characteristics.isEmpty, "they were in a service of another kind")
        #expect(known.including([GATTService(handles: 10...12, uuid: 0x180A)]).characteristics == known.characteristics)
    }

    /// Against what is meant, entry by entry.
    @Test func whatIsFoundTakesThePlaceOfWhatWasThere() {
        var numbers = SeededNumbers(seed: 11)
        for _ in 0..<200 {
            let (old, new) = (Self.listed(&numbers), Self.listed(&numbers))
            let database = GATTDatabase(characteristics: old.characteristics, descriptors: old.descriptors)
            let renewed = new.characteristics.map { $0.declarationHandle...$0.valueHandle }
            let kept = old.characteristics.filter { old in
                !renewed.contains { $0.contains(old.declarationHandle) || $0.contains(old.valueHandle) }
            }
            let found = database.including(new.characteristics)
            #expect(
                found.characteristics.map(\.declarationHandle)
                    == (kept + new.characteristics).map(\.declarationHandle).sorted())
            #expect(
                found.descriptors
                    == old.descriptors.filter { old in !renewed.contains { $0.contains(old.handle) } })
            let handles = Set(new.descriptors.map(\.handle))
            #expect(
                database.including(new.descriptors).descriptors
                    == (old.descriptors.filter { !handles.contains($0.handle) } + new.descriptors)
                    .sorted { $0.handle < $1.handle })
        }
    }

    /// Characteristics and descriptors in the order of their handles, with gaps.
    private static func listed(
        _ numbers: inout SeededNumbers
    ) -> (characteristics: [GATTCharacteristic], descriptors: [GATTDescriptor]) {
        var (characteristics, descriptors): ([GATTCharacteristic], [GATTDescriptor]) = ([], [])
        var handle: AttributeHandle = 1
        while handle < 40 {
            let value = handle + AttributeHandle.random(in: 1...3, using: &numbers)
            if numbers.chance(60) {
                characteristics.append(
                    GATTCharacteristic(
                        declarationHandle: handle, valueHandle: value, endHandle: value, properties: .read,
                        uuid: BluetoothUUID(UInt16.random(in: 0x2A00...0x2A03, using: &numbers))))
                handle = value
            } else {
                let uuid: BluetoothUUID = numbers.chance(50) ? 0x2901 : 0x2902
                descriptors.append(GATTDescriptor(handle: handle, uuid: uuid))
            }
            handle += AttributeHandle.random(in: 1...3, using: &numbers)
        }
        return (characteristics, descriptors)
    }

    @Test func aDatabaseStaysBounded() {
        let many = (100..<(100 + GATTDatabase.attributeLimit)).map {
            GATTDescriptor(handle: UInt16($0), uuid: 0x2901)
        }
        #expect(known.including(many) == known)
    }
}
