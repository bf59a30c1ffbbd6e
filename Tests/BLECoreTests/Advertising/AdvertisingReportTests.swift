import BLECore
import TestSupport
import Testing

/// The golden bytes are reports that other people recorded (btsnoop files of public repositories) or are put
/// together from the layouts in Core Vol 4 Part E, 7.7.65.
@Suite struct AdvertisingReportTests {
    /// ADV_IND of E1:FF:13:DF:80:C6 with flags, -30 dBm; the layout of Core Vol 4 Part E, 7.7.65.2.
    static let advert: [UInt8] = [0x00, 0x01, 0xC6, 0x80, 0xDF, 0x13, 0xFF, 0xE1, 0x03, 0x02, 0x01, 0x06, 0xE2]

    static func extended(
        type: UInt16 = 0x0013, addressType: UInt8 = 1, secondaryPHY: UInt8 = 0, sid: UInt8 = 0xFF, power: UInt8 = 0x7F,
        rssi: UInt8 = 0xAE, interval: UInt16 = 0, directType: UInt8 = 0, direct: [UInt8] = [0, 0, 0, 0, 0, 0],
        data: [UInt8] = [0x02, 0x01, 0x1A]
    ) -> [UInt8] {
        [
            UInt8(type & 0xFF), UInt8(type >> 8), addressType, 0xA2, 0x18, 0xEF, 0xD6, 0x80, 0x41, 0x01, secondaryPHY,
            sid, power,
        ]
            + [rssi, UInt8(interval & 0xFF), UInt8(interval >> 8), directType] + direct + [UInt8(data.count)] + data
    }

    private func batch(_ subevent: UInt8, _ parameters: [UInt8]) throws -> AdvertisingReport.Batch {
        let batch = AdvertisingReport.parse(subevent: subevent, parameters: parameters.span)
        return try #require(batch)
    }

    /// Reserved bits of the event type and of the PHYs.
    @Test(.row("W18")) func reservedBitsAreMasked() throws {
        // Event type 0x2513, a random address, primary PHY 1M and secondary PHY 2M with bit 5, and no data.
        let head: [UInt8] = [0x13, 0x25, 0x01, 1, 2, 3, 4, 5, 0xC6, 0x21, 0x22, 0x00, 0x7F, 0xC5]
        let report = try #require(try batch(0x0D, [1] + head + [UInt8](repeating: 0, count: 10)).reports.first)
        #expect(report.primaryPHY == .le1M && report.secondaryPHY == .le2M)
        #expect(report.properties == [.connectable, .scannable, .legacy])
    }

    @Test func aLegacyReportIsRead() throws {
        let batch = try batch(0x02, [1] + Self.advert)
        #expect(batch.losses.isEmpty)
        let report = try #require(batch.reports.first)
        #expect(report.peer?.description == "E1:FF:13:DF:80:C6/random")
        #expect(report.rssi == -30)
        #expect(report.isConnectable && report.isScannable && report.isLegacy)
        #expect(!report.isDirected && !report.isScanResponse)
        #expect(report.data == [0x02, 0x01, 0x06])
        #expect(report.sid == nil && report.secondaryPHY == nil && report.primaryPHY == .le1M)
    }

    /// Core Vol 4 Part E, 7.7.65.2, Event_Type.
    @Test(arguments: [
        (0 as UInt8, [.legacy, .connectable, .scannable] as AdvertisingReport.Properties),
        (1 as UInt8, [.legacy, .connectable, .directed] as AdvertisingReport.Properties),
        (2 as UInt8, [.legacy, .scannable] as AdvertisingReport.Properties),
        (3 as UInt8, [.legacy] as AdvertisingReport.Properties),
        (4 as UInt8, [.legacy, .scanResponse] as AdvertisingReport.Properties),
    ])
    func aLegacyEventTypeHasItsProperties(type: UInt8, properties: AdvertisingReport.Properties) throws {
        let report = try #require(try batch(0x02, [1, type] + Self.advert.dropFirst()).reports.first)
        #expect(report.properties == properties)
        #expect(report.eventType == UInt16(type))
    }

    @Test func aDirectedReportIsRead() throws {
        let bytes: [UInt8] = [1, 1, 1, 1, 2, 3, 4, 5, 0xC6, 0xFE, 9, 8, 7, 6, 5, 0x44, 0xC4]
        let report = try #require(try batch(0x0B, bytes).reports.first)
        #expect(report.event == .directed && report.isDirected && report.isConnectable && report.data.isEmpty)
        #expect(report.address?.description == "C6:05:04:03:02:01")
        #expect(report.directAddress?.description == "44:05:06:07:08:09")
        #expect(report.directAddressType == .random)
        #expect(report.rssi == -60)
    }

    @Test func anExtendedReportIsRead() throws {
        let bytes = Self.extended(
            type: 0x0005, secondaryPHY: 2, sid: 7, power: 0xF4, interval: 0x0140, directType: 0xFE,
            direct: [1, 2, 3, 4, 5, 0x46])
        let report = try #require(try batch(0x0D, [1] + bytes).reports.first)
        #expect(report.event == .extended && !report.isLegacy && report.isConnectable && report.isDirected)
        #expect(report.secondaryPHY == .le2M && report.sid == 7 && report.txPower == -12)
        #expect(report.periodicInterval == 0x0140)
        #expect(report.directAddress?.description == "46:05:04:03:02:01" && report.directAddressType == .random)
        #expect(report.dataStatus == .complete && report.rssi == -82)
    }

    @Test func otherSubeventsCarryNoReports() {
        let batch = AdvertisingReport.parse(subevent: 0x01, parameters: Self.advert.span)
        #expect(batch == nil)
    }

    @Test("the number of reports is 0, or far too high", .row("H01"))
    func wrongNumberOfReports() throws {
        let none = try batch(0x02, [0] + Self.advert)
        #expect(none.reports.isEmpty && none.losses.trailingBytes == 13)
        let many = try batch(0x02, [255] + Self.advert)
        #expect(many.reports.count == 1 && many.losses.missing == 254)
        #expect(try batch(0x0D, []).losses.missing == 1)
    }

    @Test("several reports of mixed sizes", .row("H02", "W27"), arguments: 2...10)
    func severalReports(count: Int) throws {
        var bytes = [UInt8(count)]
        for index in 0..<count {
            let data = [UInt8](repeating: UInt8(index), count: (index * 7) % 32)
            bytes += [UInt8(index % 5), UInt8(index % 4), UInt8(index), 2, 3, 4, 5, 6, UInt8(data.count)] + data
            bytes.append(UInt8(bitPattern: Int8(-40 - index)))
        }
        let batch = try batch(0x02, bytes)
        #expect(batch.losses.isEmpty && batch.reports.count == count)
        for (index, report) in batch.reports.enumerated() {
            #expect(
                report.eventType == UInt16(index % 5) && report.address?.rawValue == 0x0605_0403_0200 + UInt64(index))
            #expect(report.data.count == (index * 7) % 32 && report.rssi == Int8(-40 - index))
        }
    }

    @Test("the data ends past the event, or the RSSI is missing", .row("H03"))
    func cutOffReports() throws {
        for cut in 1...Self.advert.count {
            let batch = try batch(0x02, [1] + Self.advert.dropLast(cut))
            #expect(batch.reports.isEmpty && batch.losses.missing == 1)
        }
        for cut in 1...27 {
            let batch = try batch(0x0D, [1] + Self.extended().dropLast(cut))
            #expect(batch.reports.isEmpty && batch.losses.missing == 1)
        }
        let second = try batch(0x02, [2] + Self.advert + Self.advert.dropLast())
        #expect(second.reports.count == 1 && second.losses.missing == 1)
    }

    @Test("truncated data is delivered flagged, a reserved status is not delivered", .row("H08"))
    func dataStatus() throws {
        #expect(try batch(0x0D, [1] + Self.extended(type: 0x0041)).reports.first?.dataStatus == .truncated)
        #expect(try batch(0x0D, [1] + Self.extended(type: 0x0021)).reports.first?.dataStatus == .incomplete)
        let reserved = try batch(0x0D, [2] + Self.extended(type: 0x0061) + Self.extended())
        #expect(reserved.reports.count == 1 && reserved.losses.reserved == 1)
    }

    @Test("no RSSI, anonymous and unresolved advertisers", .row("H09", "W35"), arguments: [0xFF, 0xFE] as [UInt8])
    func unnamedAdvertisers(type: UInt8) throws {
        let report = try #require(try batch(0x0D, [1] + Self.extended(addressType: type, rssi: 127)).reports.first)
        #expect(report.rssi == nil && report.address == nil && report.addressType == nil && report.peer == nil)
        #expect(!report.isConnectable)
        #expect(try batch(0x0D, [1] + Self.extended(addressType: 4)).losses.reserved == 1)
    }

    @Test("a legacy packet holds 31 bytes at most", .row("H10", "W24"))
    func oversizedLegacyData() throws {
        let data = [UInt8](repeating: 0, count: 32)
        let batch = try batch(0x0D, [2] + Self.extended(data: data) + Self.extended())
        #expect(batch.reports.count == 1 && batch.losses.oversized == 1)
        #expect(try self.batch(0x0D, [1] + Self.extended(type: 0x0003, data: data)).reports.first?.data.count == 32)
        let legacy: [UInt8] = [1, 3, 0, 1, 2, 3, 4, 5, 6, 32] + data + [0xC0]
        #expect(try self.batch(0x02, legacy).losses.oversized == 1)
    }
}
