import BLECore
import TestSupport
import Testing

/// The typed views, and one sample of each type put together from the layouts in the Core Specification Supplement,
/// Part A, unless a comment names another source.
@Suite struct AdvertisingViewTests {
    private func data(_ hex: String) throws -> AdvertisingData {
        AdvertisingData(try Hex.decode(hex))
    }

    @Test("service data shorter than its UUID", .row("A05"), arguments: ["02164E", "0320AABB", "0521AABBCCDD"])
    func serviceDataWithoutAWholeUUIDAreNone(hex: String) throws {
        let data = try data(hex)
        #expect(data.serviceData.isEmpty && data.structures.count == 1)
    }

    @Test("manufacturer data of one byte", .row("A06"))
    func manufacturerDataOfOneByteAreNone() throws {
        let data = try data("02FF4C")
        #expect(data.manufacturerData.isEmpty && data.structures.count == 1)
    }

    @Test("values of the wrong size have no typed view", .row("A08"))
    func wrongSizes() throws {
        #expect(try data("0101").flags == nil)
        #expect(try data("030A0000").txPowerLevel == nil)
        #expect(try data("0219C0").appearance == nil)
        #expect(try data("0512060018").connectionIntervalRange == nil)
        #expect(try data("031A0000").advertisingInterval == .zero)
        #expect(try data("021A00").advertisingInterval == nil)
    }

    @Test("hostile names", .row("A09"))
    func hostileNames() throws {
        let name = try #require(try data("0B0941FF1B0AE280AE420043").localName)
        #expect(name.bytes == [0x41, 0xFF, 0x1B, 0x0A, 0xE2, 0x80, 0xAE, 0x42, 0x00, 0x43])
        #expect(name.text == "A\u{FFFD}\u{1B}\n\u{202E}B\0C")
        #expect(name.printable == "A\u{FFFD}\\u{1b}\\u{a}\\u{202e}B")
    }

    /// One of each kind that has no shape, or could control a terminal: C0 and C1, soft hyphen, Arabic and Mongolian
    /// marks, spaces without width, separators, marks of direction, byte order, annotations, tags, planes of private
    /// use, and code points without a character.
    @Test(
        .row("O37"),
        arguments: [
            0x01, 0x7F, 0x85, 0x9F, 0xAD, 0x0378, 0x0600, 0x061C, 0x070F, 0x180E, 0x200B, 0x200D, 0x200F, 0x2028,
            0x2029, 0x202A, 0x202E, 0x2060, 0x2065, 0x2069, 0x206F, 0xE000, 0xF8FF, 0xFDD0, 0xFEFF, 0xFFF9, 0xFFFB,
            0xFFFF, 0x110BD, 0x1BCA0, 0x1D173, 0x1FFFE, 0xE0001, 0xE0041, 0xE007F, 0xF0000, 0x10FFFD,
        ] as [UInt32])
    func whatHasNoShapeIsEscaped(_ number: UInt32) throws {
        let scalar = try #require(Unicode.Scalar(number))
        let name = AdvertisedName(bytes: Array("a\(Character(scalar))b".utf8))
        #expect(name.printable == "a\\u{\(String(number, radix: 16))}b")
    }

    @Test(arguments: ["Küche", "温度計", "e\u{301}", "🔥", "a\u{A0}b", "«½»"]) func otherNamesStay(_ name: String) {
        #expect(AdvertisedName(bytes: Array(name.utf8)).printable == name)
    }

    /// A list of characters would be one of some version of Unicode.
    @Test func theRuleIsThatOfTheCategories() {
        let hidden: Set<Unicode.GeneralCategory> = [
            .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned,
        ]
        for number in 0...0x10FFFF as ClosedRange<UInt32> {
            guard let scalar = Unicode.Scalar(number) else { continue }
            let isHidden = hidden.contains(scalar.properties.generalCategory)
            if AdvertisedName.isUnprintable(scalar) != isHidden { Issue.record("U+\(String(number, radix: 16))") }
        }
    }

    @Test("the first of two wins, and all are kept", .row("A10"))
    func firstWins() throws {
        let data = try data("020106" + "02011A" + "030941410309424203030F1803030A1803FF4C0004FF4C0001")
        #expect(data.flags?.rawValue == 0x06)
        #expect(data.localName?.text == "AA")
        #expect(data.serviceUUIDs == [0x180F, 0x180A])
        #expect(data.manufacturerData(of: 0x004C) == [])
        #expect(data.manufacturerData.count == 2 && data.structures.count == 8)
        #expect(try self.data("01010201060219C0031940").appearance == nil)
        #expect(try self.data("0101020106").flags?.rawValue == 6, "the first that fits")
    }

    @Test func theCompleteNameIsPreferredToTheShortenedOne() throws {
        #expect(try data("0409414243").localName?.text == "ABC")
        #expect(try data("04084142430509444546").name?.text == "ABC", "the complete one is cut off")
        #expect(try data("030841420409444546").name?.text == "DEF")
        #expect(try data("0B30476174652035").broadcastName == nil)
        #expect(try data("0730476174652035").broadcastName?.text == "Gate 5")
    }

    @Test func serviceListsAndServiceDataOfAllWidthsAreRead() throws {
        let uart: BluetoothUUID = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
        let data = try data(
            "05020D180F18" + "050578563412" + "11079ECADC240EE5A9E093F3A3B50100406E"
                + "03141218051F78563412")
        #expect(data.serviceUUIDs == [0x180D, 0x180F, 0x1234_5678, uart])
        #expect(data.solicitedServiceUUIDs == [0x1812, 0x1234_5678])
        #expect(data.hasIncompleteServiceList)
        #expect(data.offers(uart) && data.offers(0x180F) && !data.offers(0x1812))
    }

    @Test func serviceDataIsFoundByItsUUID() throws {
        let data = try data("04160F1864" + "062078563412AA" + "12219ECADC240EE5A9E093F3A3B50100406EBB")
        #expect(data.serviceData.map(\.data) == [[0x64], [0xAA], [0xBB]])
        #expect(data.serviceData(of: 0x180F) == [0x64])
        #expect(data.serviceData(of: 0x1810) == nil)
    }

    @Test func propertiesOfTheDeviceAreRead() throws {
        #expect(try data("02010D").flags?.sentence.contains("BR/EDR not supported") == true)
        #expect(try data("020AF4").txPowerLevel == -12)
        #expect(try data("03194103").appearance == 0x0341)
        #expect(try data("040D0C025A").classOfDevice == 0x5A020C)
        #expect(try data("021C02").leRole == .peripheralPreferred)
        #expect(try data("081B0102030405C601").deviceAddress?.description == "C6:05:04:03:02:01/random")
        #expect(try data("0D17010203040506111213141516").targetAddresses.count == 2)
        #expect(try data("091001004C0002010304").deviceID?.vendor == 0x004C)
    }

    /// The sample of the Supplement's section on URIs.
    @Test func theSchemeOfAURIIsExpanded() throws {
        #expect(
            try data("1524162F2F7777772E626C7565746F6F74682E636F6D").uri?.text
                == "http://www.bluetooth.com")
        #expect(try data("0524C2BA2F2F").uri?.text?.hasSuffix("://") == true, "schemes beyond ASCII take two bytes")
        #expect(try data("0124").uri?.text == nil)
    }

    @Test func intervalsAreReadInTheirUnits() throws {
        let range = try #require(
            try data("05120600800C").connectionIntervalRange)
        #expect(range.shortest == .microseconds(7500) && range.longest == .seconds(4))
        #expect(try data("0512FFFFFFFF").connectionIntervalRange?.longest == nil)
        #expect(try data("031AA000").advertisingInterval == .milliseconds(100))
        #expect(try data("042FA00000").advertisingInterval == .milliseconds(100))
        #expect(try data("052FA0000001").advertisingInterval == .microseconds((0x0100_00A0 as Int64) * 625))
        #expect(try data("0327FF01").leSupportedFeatures == 0x1FF)
        let update = try #require(try data("0828FFFFFFFF1F3412").channelMapUpdate)
        #expect(update.channels == 0x1F_FFFF_FFFF && update.instant == 0x1234)
        let timing = try #require(try data("0932785634120A060408").periodicResponseTiming)
        #expect(timing.accessAddress == 0x1234_5678 && timing.subeventCount == 10)
        #expect(timing.responseSlotDelay == .milliseconds(5) && timing.responseSlotSpacing == .milliseconds(1))
    }

    /// Fields laid out by Core Vol 6 Part B, 4.4.6.11: ISO interval 8, two streams, three subevents.
    @Test func bigInfoIsRead() throws {
        let head =
            "05000410" + "23881300" + "C4090028" + "00" + "D6BE898E" + "10274006" + "BBAA"
        let info = try #require(try data("222C" + head + "FFFFFFFF3F" + "0100000080").bigInfo)
        #expect(info.offset == 5 && !info.offsetInLongUnits && info.isoInterval == 8 && info.streamCount == 2)
        #expect(info.subeventCount == 3 && info.burstNumber == 1 && info.subInterval == 5000)
        #expect(info.streamSpacing == 2500 && info.maximumPDU == 40 && info.seedAccessAddress == 0x8E89_BED6)
        #expect(info.sduInterval == 10000 && info.maximumSDU == 100 && info.baseCRCInit == 0xAABB)
        #expect(info.channels == 0x1F_FFFF_FFFF && info.phyIndex == 1 && info.payloadCount == 1 && info.isFramed)
        #expect(!info.isEncrypted)
    }

    @Test func securityFieldsAreRead() throws {
        let sixteen = String(repeating: "AB", count: 16)
        #expect(try data("1110" + sixteen).securityManagerTKValue?.count == 16)
        #expect(try data("021109").outOfBandFlags == [.dataPresent, .randomAddress])
        #expect(try data("1122" + sixteen).secureConnectionsConfirmation?.count == 16)
        #expect(try data("1123" + sixteen).secureConnectionsRandom?.count == 16)
        #expect(try data("112D" + sixteen).broadcastCode?.count == 16)
        let set = try #require(try data("072E010203040506").resolvableSetIdentifier)
        #expect(set.hash == 0x030201 && set.random == 0x060504)
        let encrypted = try #require(try data("0C310102030405AAAAF1F2F3F4").encryptedData)
        #expect(encrypted.payload == [0xAA, 0xAA] && encrypted.messageCheck == [0xF1, 0xF2, 0xF3, 0xF4])
        #expect(try data("09310102030405F1F2F3").encryptedData == nil)
    }

    @Test func meshFieldsAreRead() throws {
        let step = try #require(try data("08291234567807AABB").meshProvisioning)
        #expect(step.linkID == 0x1234_5678 && step.transaction == 7 && step.pdu == [0xAA, 0xBB])
        #expect(try data("032B00AA").meshBeacon?.kind == .unprovisionedDevice)
        #expect(try data("032AAAAA").meshMessage == nil)
        let blocks = try data("0A26010201AA010202BB").transportDiscovery
        #expect(blocks.isEmpty)
        #expect(try data("0926010201AA01030001").transportDiscovery.count == 2)
        #expect(try data("033D0150").threeDInformation?.pathLossThreshold == 0x50)
        #expect(try data("0334AABB").electronicShelfLabel == [0xAA, 0xBB])
        #expect(try data("022500").indoorPositioning == [0])
    }
}
