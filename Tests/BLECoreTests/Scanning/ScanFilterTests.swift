import BLECore
import Foundation
import TestSupport
import Testing

/// What each condition lets through of the advertisements that other people recorded: Fixtures/adv/reports.txt, whose
/// headings say where each comes from. The devices were picked by reading the bytes, not by a parser.
@Suite struct ScanFilterTests {
    /// A Govee thermometer: name "GVH5072_6FAB", services 0xEC88, data of company 0xEC88 that begins with 00 02.
    private let govee = BluetoothAddress(rawValue: 0xA4C1_38BF_6FAB)
    /// A Ruuvi tag: data of company 0x0499 that begins with 03 (data format 3); no connections.
    private let ruuvi = BluetoothAddress(rawValue: 0xAABB_CCDD_EEFF)

    @Test func everythingPassesNoFilter() throws {
        let all = try Self.scanResults()
        #expect(all.count > 150 && all.allSatisfy { ScanFilter.any.matches($0) })
    }

    @Test func aServiceFilterPassesExactlyTheDevicesThatListIt() throws {
        let found = try passing(.services(0xEC88))
        #expect(found.contains(govee))
        // Recordings that list 88 EC in a list of services (03 03 88EC or 03 02 88EC).
        #expect(found.count == lines { $0.contains("030388ec") || $0.contains("030288ec") })
        // The 128-bit list 11 07 13E9156AED8167B15B420B8805A354CD, whose bytes run backwards.
        let long: BluetoothUUID = "cd54a305-880b-425b-b167-81ed6a15e913"
        #expect(try passing(.services(long)) == [BluetoothAddress(rawValue: 0xD1CF_D920_C155)])
        #expect(try passing(.services(0xEC88, 0xFFF0)).count > found.count)
    }

    @Test func solicitedServicesAreAnotherMatterButTheSameKind() throws {
        // Solicited: AD type 0x14; no recording has one with a 16-bit UUID, so by the Core Specification Supplement.
        let seeking = report(1, [3, 0x14, 0x0D, 0x18])
        let offering = report(2, [3, 0x03, 0x0D, 0x18])
        #expect(try !matches(.services(0x180D), seeking))
        #expect(try matches(.soliciting(0x180D), seeking))
        #expect(try !matches(.soliciting(0x180D), offering))
        var either = ScanFilter.services(0x180D)
        either.solicitedServices = [0x180D]
        #expect(try matches(either, seeking) && matches(either, offering))
        // 32 and 128 bits: AD types 0x1F and 0x15.
        #expect(try matches(.soliciting(0x180D), report(1, [5, 0x1F, 0x0D, 0x18, 0, 0])))
        let long: [UInt8] = [0xFB, 0x34, 0x9B, 0x5F, 0x80, 0, 0, 0x80, 0, 0x10, 0, 0, 0x0D, 0x18, 0, 0]
        #expect(try matches(.soliciting(0x180D), report(1, [17, 0x15] + long)))
    }

    @Test func aNameFilterIsExactUnlessItIsAPrefix() throws {
        #expect(try passing(.name("GVH5072_6FAB")) == [govee])
        #expect(try passing(.name("GVH5072")).isEmpty)
        #expect(try passing(.name("gvh5072_6fab")).isEmpty)
        let prefix = try passing(.name(startingWith: "GVH"))
        #expect(prefix.contains(govee) && prefix.count == 3)
        var either = ScanFilter.name("ABBLE", "Mon 5643")
        #expect(try passing(either).count == 3)
        either.namePrefix = "GVH5072"
        #expect(try passing(either).count == 4)
        #expect(try !matches(.name(""), report(1, [])))
    }

    @Test func aPartOfTheNameMatchesInAnyCase() throws {
        #expect(try passing(.name(containing: "5072_")) == passing(.name(startingWith: "GVH5072")))
        #expect(try passing(.name(containing: "gvh5072")) == passing(.name(startingWith: "GVH5072")))
        #expect(try passing(.name(containing: "gvh5072x")).isEmpty)
        // Together with exact names it is one kind.
        var either = ScanFilter.name("ABBLE")
        either.nameContains = "gvh5072"
        #expect(try passing(either) == passing(.name("ABBLE")).union(passing(.name(startingWith: "GVH5072"))))
        #expect(try !matches(.name(containing: ""), report(1, [])))
    }

    @Test(arguments: [
        ("Θερμόμετρο", "ΘΕΡΜΌ", true), ("ТЕРМОМЕТР 2", "термометр", true), ("Kühlraum", "KÜHL", true),
        ("Kühlraum", "kuhl", false), ("Термометр", "терммо", false), ("\u{212A}elvin", "kelvin", true),
    ]) func aPartOfTheNameMatchesInAnyAlphabet(_ name: String, _ part: String, _ isMatching: Bool) throws {
        let bytes = Array(name.utf8)
        let data = [UInt8(bytes.count + 1), 0x09] + bytes
        #expect(try matches(.name(containing: part), report(1, data)) == isMatching)
    }

    @Test func manufacturerDataMatchByTheirBeginning() throws {
        #expect(try passing(.company(0x0499, startingWith: [3])).contains(ruuvi))
        #expect(try !passing(.company(0x0499, startingWith: [5])).contains(ruuvi))
        #expect(try passing(.company(0xEC88, startingWith: [0x00, 0x02, 0xD0])) == [govee])
        // iBeacons are data of Apple that begins with 02 15.
        let beacons = try passing(.company(0x004C, startingWith: [0x02, 0x15]))
        #expect(beacons.count == lines { $0.contains("ff4c000215") })
        #expect(try passing(.company(0x004C)).count > beacons.count)
        // Longer than the data.
        #expect(try !matches(.company(0x004C, startingWith: [1, 2]), report(1, [4, 0xFF, 0x4C, 0, 1])))
        // `companies` and data are one kind.
        var either = ScanFilter.company(0x0499, startingWith: [3])
        either.companies = [0xEC88]
        #expect(try passing(either).isSuperset(of: [govee, ruuvi]))
    }

    @Test func serviceDataMatchByTheirBeginning() throws {
        // Eddystone URLs: data of service 0xFEAA that begins with 10.
        let urls = try passing(.serviceData(0xFEAA, startingWith: [0x10]))
        #expect(urls.count == lines { $0.contains("16aafe10") })
        let all = try passing(.serviceData(0xFEAA))
        #expect(all.count == lines { $0.contains("16aafe") })
        #expect(try passing(.serviceData(0xFEAA, startingWith: [0x77])).isEmpty)
        #expect(try !matches(.serviceData(0xFEAA), report(1, [3, 3, 0xAA, 0xFE])))
    }

    @Test func addressesStrengthAndConnectabilityAreFiltered() throws {
        #expect(try passing(.address(govee)) == [govee])
        #expect(try passing(.peer(PeerID(address: govee, type: .public))) == [govee])
        #expect(try passing(.peer(PeerID(address: govee, type: .random))).isEmpty)
        var either = ScanFilter.peer(PeerID(address: govee, type: .public))
        either.addresses = [ruuvi]
        #expect(try passing(either) == [govee, ruuvi])
        var strong = ScanFilter.any
        strong.minimumRSSI = -50
        let near = try Self.scanResults().filter { strong.matches($0) }
        #expect(!near.isEmpty && near.allSatisfy { ($0.rssi ?? 0) >= -50 })
        var connectable = ScanFilter.address(govee)
        connectable.connectableOnly = true
        #expect(try passing(connectable) == [govee])
        connectable.addresses = [ruuvi]
        #expect(try passing(connectable).isEmpty)
        var others = ScanFilter.any
        others.excluding = [PeerID(address: govee, type: .public)]
        #expect(try passing(others) == passing(.any).subtracting([govee]))
        let nobody = AdvertisingReport(address: nil, addressType: nil)
        #expect(try matches(.any, nobody))
        #expect(try !matches(either, nobody) && !matches(.address(govee), nobody))
    }

    @Test func anIdentityMatchesWhateverTheAddress() throws {
        let identity = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random)
        let start = BootInstant(nanoseconds: 1_000_000_000)
        var table = DeviceTable()
        let outcome = try #require(record(report(0x4000_0000_0001, []), of: identity, &table, at: start))
        let scanResult = table[outcome.place]
        let onAir = try #require(scanResult.peer)
        for matching in [ScanFilter.peer(identity), .address(identity.address), .peer(onAir), .address(onAir.address)] {
            #expect(matching.matches(scanResult))
        }
        let stranger = report(0x4000_0000_0002, [])
        #expect(!ScanFilter.peer(try #require(stranger.peer)).matches(scanResult))
        #expect(try !matches(.peer(identity), stranger))
        for excluded in [identity, onAir] {
            var filter = ScanFilter.any
            filter.excluding = [excluded]
            #expect(!filter.matches(scanResult))
        }
    }

    @Test func differentKindsMustAllHold() throws {
        var filter = ScanFilter.name(startingWith: "GVH")
        filter.manufacturerData = [ScanFilter.ManufacturerData(company: 0xEC88, prefix: [0, 2])]
        filter.services = [0xEC88]
        #expect(try passing(filter) == [govee])
        filter.serviceData = [ScanFilter.ServiceData(service: 0xFEAA)]
        #expect(try passing(filter).isEmpty)
    }

    @Test func cutAndFlippedAdvertisementsNeverTrap() throws {
        var filter = ScanFilter.services(0x180D)
        filter.solicitedServices = [0x180D]
        filter.manufacturerData = [ScanFilter.ManufacturerData(company: 0x4C, prefix: [2, 0x15])]
        filter.serviceData = [ScanFilter.ServiceData(service: 0xFEAA, prefix: [0x10])]
        filter.names = ["x"]
        for kind in 0..<4 {
            var one = filter
            if kind != 0 { (one.services, one.solicitedServices) = ([], []) }
            if kind != 1 { one.manufacturerData = [] }
            if kind != 2 { one.serviceData = [] }
            if kind != 3 { one.names = [] }
            for known in try Self.scanResults().prefix(60) {
                guard let data = known.advertisement?.data ?? known.scanResponse?.data else { continue }
                for index in data.indices {
                    _ = try matches(one, report(1, Array(data.prefix(index))))
                    var flipped = data
                    flipped[index] ^= 0xFF
                    _ = try matches(one, report(1, flipped))
                }
            }
        }
    }

    // MARK: The recordings

    private static let text: String = {
        let root = RepositoryFiles.root
        return (try? String(contentsOf: root.appending(path: "Fixtures/adv/reports.txt"), encoding: .utf8)) ?? ""
    }()

    /// A scan result for each report, by itself.
    private static func scanResults() throws -> [ScanResult] {
        var assembler = ReportAssembler()
        var scanResults: [ScanResult] = []
        for line in text.split(separator: "\n") where line.hasPrefix("04") {
            let bytes = try Hex.decode(line)
            guard case .advertisingReports(let batch) = try HCIEvent(bytes.span.extracting(1..<bytes.count)) else {
                Issue.record("no report: \(line)")
                continue
            }
            for fragment in batch.reports {
                guard let report = assembler.received(fragment, at: .zero) else { continue }
                scanResults.append(try scanResult(report))
            }
        }
        return scanResults
    }

    private func passing(_ filter: ScanFilter) throws -> Set<BluetoothAddress> {
        try Set(Self.scanResults().filter { filter.matches($0) }.compactMap { $0.peer?.address })
    }

    /// How many addresses have a line with a property of its text. Some lines are no legal advertisements: legacy ones
    /// of more than 31 bytes.
    private func lines(where isMeant: (Substring) -> Bool) -> Int {
        let found = Self.text.split(separator: "\n").filter { line in
            guard line.hasPrefix("04"), isMeant(line) else { return false }
            return line.dropFirst(6).hasPrefix("0d") || line.dropFirst(26).prefix(2) <= "1f"
        }
        return Set(found.map(Self.address)).count
    }

    /// The address's digits: after the event type of 1 (subevent 02) or 2 bytes (0D), and the type of address.
    private static func address(of line: Substring) -> Substring {
        let start = line.dropFirst(6).hasPrefix("0d") ? 16 : 14
        return line.dropFirst(start).prefix(12)
    }

    private static func scanResult(_ report: AdvertisingReport) throws -> ScanResult {
        var table = DeviceTable()
        let outcome = try #require(record(report, &table, at: .zero))
        return table[outcome.place]
    }

    private func matches(_ filter: ScanFilter, _ report: AdvertisingReport) throws -> Bool {
        filter.matches(try Self.scanResult(report))
    }
}
