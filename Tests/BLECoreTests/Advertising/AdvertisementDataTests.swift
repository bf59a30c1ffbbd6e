import BLECore
import BLEProfiles
import TestSupport
import Testing

/// Payloads built here. Golden bytes: recorded beacons as other projects' tests quote them (each case says which), and
/// where there is none, the layouts of the Core Specification Supplement, Part A, laid out by hand.
@Suite struct AdvertisementDataTests {
    private typealias Invalid = AdvertisementData.Invalid
    private typealias Limits = AdvertisementData.Limits

    private func bytes(_ data: AdvertisementData, _ limits: AdvertisementData.Limits = .legacy) throws -> String {
        Hex.encode(try data.payload(fitting: limits).advertisingData)
    }

    @Test func eachElementHasItsLayout() throws {
        #expect(try bytes([.flags([.generalDiscoverable, .classicNotSupported])]) == "020106")
        #expect(try bytes([.localName("Ab")]) == "03094162")
        #expect(try bytes([.services([0x180D, 0x180F])]) == "05030d180f18")
        #expect(try bytes([.services([0x180D], isComplete: false)]) == "03020d18")
        #expect(try bytes([.services([0x1234_5678])]) == "050578563412")
        let long: BluetoothUUID = "00112233-4455-6677-8899-aabbccddeeff"
        let longBytes = "ffeeddccbbaa99887766554433221100"
        #expect(try bytes([.services([long])]) == "1107" + longBytes)
        #expect(try bytes([.services([long], isComplete: false)]) == "1106" + longBytes)
        #expect(try bytes([.services([0x1234_5678], isComplete: false)]) == "050478563412")
        #expect(try bytes([.solicitedServices([0x180D])]) == "03140d18")
        #expect(try bytes([.solicitedServices([0x1234_5678])]) == "051f78563412")
        #expect(try bytes([.solicitedServices([long])]) == "1115" + longBytes)
        #expect(try bytes([.serviceData([1, 2], of: 0xFEAA)]) == "0516aafe0102")
        #expect(try bytes([.serviceData([1], of: 0x1234_5678)]) == "06207856341201")
        #expect(try bytes([.serviceData([1], of: long)]) == "1221" + longBytes + "01")
        #expect(try bytes([.manufacturerData([7], company: 0x0059)]) == "04ff590007")
        #expect(try bytes([.txPowerLevel(-20)]) == "020aec")
        #expect(try bytes([.appearance(833)]) == "03194103")
        #expect(try bytes([.connectionIntervals(.milliseconds(20)...(.milliseconds(40)))]) == "051210002000")
        #expect(try bytes([.uri("https://a.b")]) == "0724172f2f612e62")
        #expect(try bytes([.uri("x-y:z")]) == "072401782d793a7a")
        #expect(try bytes([.structure(AdvertisingDataType(rawValue: 0x2A), [9])]) == "022a09")
        #expect(try bytes([]) == "")
    }

    @Test func listsOfServicesAreJoinedAndNotRepeated() throws {
        #expect(
            try bytes([.services([0x180D, 0x180D]), .txPowerLevel(0), .services([0x180F])]) == "05030d180f18020a00")
        // One element that says so makes the list incomplete.
        #expect(try bytes([.services([0x180D]), .services([0x180F], isComplete: false)]) == "05020d180f18")
        // One list for each size, and those that are looked for apart.
        #expect(
            try bytes([.services([0x180D, 0x1234_5678]), .solicitedServices([0x180D])])
                == "03030d1805057856341203140d18")
        #expect(try bytes([.services([])]) == "")
    }

    @Test func beaconsAreThoseOfOthers() throws {
        // RuuviCollector's fixtures.
        let flags = AdvertisementData.Element.flags([.generalDiscoverable, .simultaneousController, .simultaneousHost])
        let apple = AdvertisementData.Element.iBeacon(
            "fda50693-a4e2-4fb1-afcf-c6eb07647825", major: 1, minor: 2, measuredPower: -59)
        #expect(try bytes([flags, apple]) == "02011a1aff4c000215fda50693a4e24fb1afcfc6eb0764782500010002c5")
        // beacontools' tests.
        let general = AdvertisementData.Element.flags([.generalDiscoverable, .classicNotSupported])
        #expect(
            try bytes([general, .eddystoneURL("https://goo.gl/b6RTme", txPower: -8)])
                == "0201060303aafe1316aafe10f803676f6f2e676c2f623652546d65")
        #expect(
            try bytes([
                general,
                .eddystoneTLM(
                    batteryMillivolts: 2840, temperature: 19, advertisementCount: 5222, uptime: .milliseconds(1_695_700)
                ),
            ]) == "0201060303aafe1116aafe20000b181300000014660000423d")
        // The frame of beacontools' tests with the two reserved bytes of the format.
        #expect(
            try bytes([
                general,
                .eddystoneUID(
                    namespace: Hex.decode("12345678901234567890"), instance: Hex.decode("123456789012"), txPower: -29),
            ]) == "0201060303aafe1716aafe00e3123456789012345678901234567890120000")
    }

    @Test func beaconsAreReadBack() throws {
        for url in ["http://www.a.com", "https://www.b.org/x", "http://c.info/", "https://d.gov", "https://e.biz/.com"]
        {
            let payload = try AdvertisementData([.eddystoneURL(url, txPower: 1)]).payload(fitting: .legacy)
            guard case .url(let frame) = AdvertisingData(payload.advertisingData).eddystone else {
                Issue.record("no URL frame for \(url)")
                continue
            }
            #expect(frame.url == url && frame.txPower == 1)
        }
        let telemetry = try AdvertisementData([
            .eddystoneTLM(batteryMillivolts: nil, temperature: nil, advertisementCount: .max, uptime: .zero)
        ]).payload(fitting: .legacy)
        guard case .telemetry(let frame) = AdvertisingData(telemetry.advertisingData).eddystone else {
            Issue.record("no TLM frame")
            return
        }
        #expect(frame.batteryMillivolts == nil && frame.temperature == nil && frame.advertisementCount == .max)
        let cold = try AdvertisementData([
            .eddystoneTLM(batteryMillivolts: 1, temperature: -40.5, advertisementCount: 0, uptime: .seconds(1))
        ]).payload(fitting: .legacy)
        guard case .telemetry(let frame) = AdvertisingData(cold.advertisingData).eddystone else {
            Issue.record("no TLM frame")
            return
        }
        #expect(frame.temperature == -40.5)
    }

    @Test func beaconsWithImpossibleValuesAreRefused() {
        typealias Element = AdvertisementData.Element
        #expect(throws: Invalid.eddystoneIdentifier(namespace: 9, instance: 6)) {
            try Element.eddystoneUID(
                namespace: [UInt8](repeating: 0, count: 9), instance: [0, 0, 0, 0, 0, 0], txPower: 0)
        }
        #expect(throws: Invalid.eddystoneIdentifier(namespace: 10, instance: 7)) {
            try Element.eddystoneUID(
                namespace: [UInt8](repeating: 0, count: 10), instance: [0, 0, 0, 0, 0, 0, 0], txPower: 0)
        }
        #expect(throws: Invalid.eddystoneURL(bytes: 18)) {
            try Element.eddystoneURL("https://123456789012345678", txPower: 0)
        }
        #expect(throws: Never.self) { try Element.eddystoneURL("https://12345678901234567", txPower: 0) }
        for url in ["ftp://a.com", "", "https://a b", "https://a\u{7F}", "https://\u{E4}"] {
            #expect(throws: Invalid.eddystoneURL(bytes: 0)) { try Element.eddystoneURL(url, txPower: 0) }
        }
        for temperature in [128, -128, Double.nan, .infinity, 1e300] {
            #expect(throws: Invalid.eddystoneTelemetry) {
                try Element.eddystoneTLM(
                    batteryMillivolts: nil, temperature: temperature, advertisementCount: 0, uptime: .zero)
            }
        }
        for uptime in [Duration.milliseconds(-1), .seconds(429_496_730), .seconds(Int64.max)] {
            #expect(throws: Invalid.eddystoneTelemetry) {
                try Element.eddystoneTLM(
                    batteryMillivolts: nil, temperature: nil, advertisementCount: 0, uptime: uptime)
            }
        }
        for range in [Duration.milliseconds(7)...(.seconds(1)), .milliseconds(8)...(.milliseconds(4001))] {
            #expect(throws: Invalid.connectionInterval) { try Element.connectionIntervals(range) }
        }
    }

    // MARK: What goes where

    @Test func whatDoesNotFitGoesIntoTheScanResponseWhole() throws {
        let data: AdvertisementData = [
            .flags(.generalDiscoverable), .services(["00112233-4455-6677-8899-aabbccddeeff"]),
            .localName("a name of 18 chars"), .txPowerLevel(4),
        ]
        let payload = try data.payload(fitting: .legacy)
        // 3 + 18 bytes leave no room for 20, but for the 3 of the power after them.
        #expect(AdvertisingData(payload.advertisingData).structures.map(\.type.rawValue) == [0x01, 0x07, 0x0A])
        #expect(AdvertisingData(payload.scanResponse).localName?.text == "a name of 18 chars")
        #expect(AdvertisingData(payload.scanResponse).structures.count == 1)
    }

    @Test func theOrderIsThePriority() throws {
        let first = try AdvertisementData([
            .manufacturerData([UInt8](repeating: 1, count: 20), company: 1),
            .serviceData([UInt8](repeating: 2, count: 20), of: 0x180D),
        ]).payload(fitting: .legacy)
        #expect(first.advertisingData.count == 24 && first.advertisingData[1] == 0xFF && first.scanResponse[1] == 0x16)
        let second = try AdvertisementData([
            .serviceData([UInt8](repeating: 2, count: 20), of: 0x180D),
            .manufacturerData([UInt8](repeating: 1, count: 20), company: 1),
        ]).payload(fitting: .legacy)
        #expect(second.advertisingData[1] == 0x16 && second.scanResponse[1] == 0xFF)
    }

    @Test func aNameIsShortenedOnlyIfItMayBe() throws {
        let name = "A name with thirty-six characters..."
        let big = AdvertisementData.Element.manufacturerData([UInt8](repeating: 1, count: 20), company: 1)
        // 2 + 36 bytes fit nowhere; 31 are free in the scan response.
        let payload = try AdvertisementData([.localName(name, mayBeShortened: true), big]).payload(fitting: .legacy)
        #expect(AdvertisingData(payload.advertisingData).structures.map(\.type.rawValue) == [0xFF])
        #expect(AdvertisingData(payload.scanResponse).shortenedLocalName?.text == String(name.prefix(29)))
        #expect(AdvertisingData(payload.scanResponse).localName == nil)
        // Without a scan response 7 are free, in spite of the name's place.
        let alone = try AdvertisementData([.localName(name, mayBeShortened: true), big])
            .payload(fitting: .legacyWithoutScanResponse)
        #expect(AdvertisingData(alone.advertisingData).shortenedLocalName?.text == "A nam")
        // A name that fits whole is not shortened.
        let whole = try AdvertisementData([.localName("Lamp", mayBeShortened: true), big]).payload(fitting: .legacy)
        #expect(AdvertisingData(whole.advertisingData).localName?.text == "Lamp")
        #expect(throws: Invalid.tooLong(bytes: 62, limits: .legacy, type: .completeLocalName, size: 38)) {
            try AdvertisementData([.localName(name), big]).payload(fitting: .legacy)
        }
    }

    @Test func aShortenedNameEndsBetweenTwoCharacters() throws {
        let big = AdvertisementData.Element.manufacturerData([UInt8](repeating: 1, count: 21), company: 1)
        // 6 bytes are left, 4 of them for the name: two letters of two bytes, or one with one of three.
        for (name, shortened) in [("äöüäöü", "äö"), ("aäöü", "aä"), ("a€€€", "a€"), ("aaa€€€", "aaa")] {
            let payload = try AdvertisementData([.localName(name, mayBeShortened: true), big])
                .payload(fitting: .legacyWithoutScanResponse)
            #expect(AdvertisingData(payload.advertisingData).shortenedLocalName?.text == shortened)
        }
        // Not even one character: refused.
        let bigger = AdvertisementData.Element.manufacturerData([UInt8](repeating: 1, count: 24), company: 1)
        #expect(
            throws: Invalid.tooLong(
                bytes: 36, limits: .legacyWithoutScanResponse, type: .completeLocalName, size: 8)
        ) {
            try AdvertisementData([.localName("€€", mayBeShortened: true), bigger])
                .payload(fitting: .legacyWithoutScanResponse)
        }
    }

    @Test func whatDoesNotFitIsRefusedWithTheNumbers() {
        let data: AdvertisementData = [
            .flags(.generalDiscoverable), .manufacturerData([UInt8](repeating: 1, count: 25), company: 1),
        ]
        let invalid = Invalid.tooLong(
            bytes: 32, limits: .legacyWithoutScanResponse, type: .manufacturerSpecificData, size: 29)
        #expect(throws: invalid) { try data.payload(fitting: .legacyWithoutScanResponse) }
        #expect(
            invalid.description
                == "the data take 32 bytes, and 31 fit: no room for the 29 bytes of Manufacturer Specific Data")
        #expect(
            Invalid.tooLong(bytes: 90, limits: .legacy, type: .uri, size: 40).description
                == "the data take 90 bytes, and 31 and 31 in the scan response fit: no room for the 40 bytes of URI")
    }

    @Test func flagsAreNeverInTheScanResponse() {
        #expect(throws: Invalid.tooLong(bytes: 3, limits: .extendedScannable(maximum: 251), type: .flags, size: 3)) {
            try AdvertisementData([.flags(.generalDiscoverable)]).payload(fitting: .extendedScannable(maximum: 251))
        }
    }

    @Test func extendedPayloadsAreLimitedByTheControllerAndTheSpecification() throws {
        let parts = (0..<7).map {
            AdvertisementData.Element.manufacturerData([UInt8](repeating: 1, count: 250), company: $0)
        }
        // 254 bytes each.
        let six = try AdvertisementData(Array(parts.prefix(6))).payload(fitting: .extended(maximum: 1650))
        #expect(six.advertisingData.count == 1524 && six.scanResponse.isEmpty)
        #expect(throws: Invalid.self) { try AdvertisementData(parts).payload(fitting: .extended(maximum: 65_535)) }
        #expect(Limits.extended(maximum: 65_535).advertisingData == 1650)
        #expect(Limits.extended(maximum: -1).advertisingData == 0)
        let scannable = try AdvertisementData(Array(parts.prefix(2))).payload(fitting: .extendedScannable(maximum: 600))
        #expect(scannable.advertisingData.isEmpty && scannable.scanResponse.count == 508)
    }

    @Test func theRulesOfTheSupplementAreKept() {
        let long = [UInt8](repeating: 0, count: 255)
        #expect(throws: Invalid.valueTooLong(.uri, bytes: 255)) {
            try AdvertisementData([.structure(.uri, long)]).payload(fitting: .extended(maximum: 1650))
        }
        let repeated: [(AdvertisementData, AdvertisingDataType)] = [
            ([.flags([]), .flags([])], .flags),
            ([.localName("a"), .localName("b")], .completeLocalName),
            ([.localName("a", mayBeShortened: true), .localName("b", mayBeShortened: true)], .completeLocalName),
            ([.localName("a", mayBeShortened: true), .structure(.shortenedLocalName, [65])], .shortenedLocalName),
            ([.localName("a"), .structure(.shortenedLocalName, [65])], .shortenedLocalName),
            ([.appearance(1), .appearance(1)], .appearance),
            ([.services([0x180D]), .structure(.incomplete16BitServiceUUIDs, [1, 2])], .incomplete16BitServiceUUIDs),
        ]
        for (data, type) in repeated {
            #expect(throws: Invalid.repeated(type)) { try data.payload(fitting: .legacy) }
        }
        let many = AdvertisementData(
            [AdvertisementData.Element](repeating: .structure(AdvertisingDataType(rawValue: 0x2A), []), count: 257))
        #expect(throws: Invalid.tooManyStructures(257)) { try many.payload(fitting: .extended(maximum: 1650)) }
        #expect(throws: Never.self) {
            try AdvertisementData(Array(many.elements.dropLast())).payload(fitting: .extended(maximum: 1650))
        }
    }

    @Test func flagsAreKnown() {
        #expect(AdvertisementData([.txPowerLevel(1), .flags(.limitedDiscoverable)]).flags == .limitedDiscoverable)
        #expect(AdvertisementData([.txPowerLevel(1)]).flags == nil)
        #expect(AdvertisementData([.structure(.flags, [])]).flags == nil)
    }

    // MARK: Read back

    /// 5,000 random contents: the parser finds in both parts together what went in, or the builder refused it.
    @Test func whatIsBuiltIsReadBackTheSame() throws {
        var random = SeededNumbers(seed: 7)
        var built = 0
        var shortened = 0
        var refused = 0
        for _ in 0..<5000 {
            let contents = Contents(using: &random)
            let limits =
                [
                    Limits.legacy, .legacyWithoutScanResponse, .extended(maximum: 251), .extended(maximum: 1650),
                ].randomElement(using: &random) ?? .legacy
            let payload: AdvertisementData.Payload
            do {
                payload = try contents.data.payload(fitting: limits)
            } catch {
                guard case .tooLong(let bytes, _, _, let size) = error else {
                    Issue.record("\(error)")
                    continue
                }
                // First-fit refuses only what exceeds the space that is left in both parts.
                #expect(size <= bytes && bytes > min(limits.advertisingData, 31))
                refused += 1
                continue
            }
            built += 1
            #expect(payload.advertisingData.count <= limits.advertisingData)
            #expect(payload.scanResponse.count <= limits.scanResponse)
            let advertising = AdvertisingData(payload.advertisingData)
            let response = AdvertisingData(payload.scanResponse)
            #expect(advertising.defects.isEmpty && response.defects.isEmpty)
            #expect(response.flags == nil)
            let both = AdvertisingData(payload.advertisingData + payload.scanResponse)
            if contents.checkName(both) { shortened += 1 }
            contents.check(both)
        }
        #expect(built > 1000 && refused > 100 && shortened > 20)
    }

    /// What went in, so that it can be compared with what comes out.
    private struct Contents {
        var data = AdvertisementData()
        var flags: AdvertisingData.Flags?
        var name: String?
        var mayBeShortened = false
        var services: Set<BluetoothUUID> = []
        var isComplete = true
        var solicited: Set<BluetoothUUID> = []
        var serviceData: Set<AdvertisingData.ServiceData> = []
        var manufacturerData: Set<AdvertisingData.ManufacturerData> = []
        var power: Int8?
        var appearance: UInt16?
        var uri: String?
        var interval: ClosedRange<Duration>?

        init(using random: inout SeededNumbers) {
            var elements: [AdvertisementData.Element] = []
            if Bool.random(using: &random) {
                let flags = AdvertisingData.Flags(rawValue: .random(in: 0...31, using: &random))
                self.flags = flags
                elements.append(.flags(flags))
            }
            if Bool.random(using: &random) {
                let letters = Array("abc äöü€😀Z")
                let name = String(
                    (0...Int.random(in: 0...40, using: &random)).map { _ in letters.randomElement(using: &random) ?? "a"
                    })
                self.name = name
                mayBeShortened = Bool.random(using: &random)
                elements.append(.localName(name, mayBeShortened: mayBeShortened))
            }
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let some = (0..<Int.random(in: 0...3, using: &random)).map { _ in Self.uuid(&random) }
                services.formUnion(some)
                elements.append(.services(some))
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                let some = (0..<Int.random(in: 0...2, using: &random)).map { _ in Self.uuid(&random) }
                solicited.formUnion(some)
                elements.append(.solicitedServices(some))
            }
            if Int.random(in: 0..<3, using: &random) == 0 {
                let service = Self.uuid(&random)
                let value = Self.bytes(&random)
                serviceData.insert(.init(service: service, data: value))
                elements.append(.serviceData(value, of: service))
            }
            if Int.random(in: 0..<3, using: &random) == 0 {
                let company = UInt16.random(in: 0...UInt16.max, using: &random)
                let value = Self.bytes(&random)
                manufacturerData.insert(.init(company: company, data: value))
                elements.append(.manufacturerData(value, company: company))
            }
            if Int.random(in: 0..<3, using: &random) == 0 {
                let power = Int8.random(in: Int8.min...Int8.max, using: &random)
                self.power = power
                elements.append(.txPowerLevel(power))
            }
            if Int.random(in: 0..<3, using: &random) == 0 {
                let appearance = UInt16.random(in: 0...UInt16.max, using: &random)
                self.appearance = appearance
                elements.append(.appearance(appearance))
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                let uri = ["https://a.example/ä", "nothing", "", ":", "tel:+49", "own-scheme:x", "geo:1,2"]
                    .randomElement(using: &random)
                self.uri = uri
                elements.append(.uri(uri ?? ""))
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                let low = Int64.random(in: 6...3200, using: &random)
                let high = Int64.random(in: low...3200, using: &random)
                let range = Duration.microseconds(low * 1250)...(.microseconds(high * 1250))
                interval = range
                if let element = try? AdvertisementData.Element.connectionIntervals(range) { elements.append(element) }
            }
            elements.shuffle(using: &random)
            data = AdvertisementData(elements)
        }

        /// Returns whether the name was shortened.
        func checkName(_ both: AdvertisingData) -> Bool {
            guard let short = both.shortenedLocalName?.text else {
                #expect(both.localName?.text == name)
                return false
            }
            #expect(mayBeShortened && both.localName == nil)
            #expect(!short.isEmpty && short != name && (name ?? "").unicodeScalars.starts(with: short.unicodeScalars))
            return true
        }

        func check(_ both: AdvertisingData) {
            #expect(both.flags == flags)
            #expect(Set(both.serviceUUIDs) == services && both.serviceUUIDs.count == services.count)
            #expect(!both.hasIncompleteServiceList)
            #expect(Set(both.solicitedServiceUUIDs) == solicited)
            #expect(Set(both.serviceData) == serviceData)
            #expect(Set(both.manufacturerData) == manufacturerData)
            #expect(both.txPowerLevel == power)
            #expect(both.appearance == appearance)
            #expect(both.uri?.text == uri)
            #expect(both.connectionIntervalRange?.shortest == interval?.lowerBound)
            #expect(both.connectionIntervalRange?.longest == interval?.upperBound)
        }

        private static func uuid(_ random: inout SeededNumbers) -> BluetoothUUID {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: BluetoothUUID(high: random.next(), low: random.next())
            case 1: BluetoothUUID(UInt32.random(in: 0x10000...UInt32.max, using: &random))
            default: BluetoothUUID(UInt16.random(in: 0...UInt16.max, using: &random))
            }
        }

        private static func bytes(_ random: inout SeededNumbers) -> [UInt8] {
            (0..<Int.random(in: 0...20, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
    }
}
