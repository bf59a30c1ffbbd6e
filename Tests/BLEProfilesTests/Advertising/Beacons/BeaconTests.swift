import BLECore
import BLEProfiles
import TestSupport
import Testing

/// Beacons. The golden bytes are recorded ones that test-suites of other projects quote; each case says which.
@Suite struct BeaconTests {
    private func data(_ hex: String) throws -> AdvertisingData {
        AdvertisingData(try Hex.decode(hex))
    }

    /// As quoted by RuuviCollector's fixtures.
    @Test func anIBeaconIsRead() throws {
        let beacon = try #require(
            try data("02011A1AFF4C000215FDA50693A4E24FB1AFCFC6EB0764782500010002C5").iBeacon)
        #expect(beacon.proximityUUID.description == "fda50693-a4e2-4fb1-afcf-c6eb07647825")
        #expect(beacon.major == 1 && beacon.minor == 2 && beacon.measuredPower == -59)
        #expect(try data("05FF4C000215").iBeacon == nil)
    }

    /// As quoted by beacontools' tests.
    @Test func eddystoneUIDIsDecoded() throws {
        let frame = try data("0201060303AAFE1516AAFE00E312345678901234567890123456789012")
            .eddystone
        guard case .uid(let uid) = frame else {
            Issue.record("no UID frame: \(String(describing: frame))")
            return
        }
        #expect(uid.txPower == -29 && Hex.encode(uid.namespace) == "12345678901234567890")
        #expect(Hex.encode(uid.instance) == "123456789012")
    }

    /// As quoted by beacontools' tests.
    @Test func eddystoneURLIsDecoded() throws {
        let frame = try data("0201060303AAFE1316AAFE10F803676F6F2E676C2F623652546D65").eddystone
        guard case .url(let url) = frame else {
            Issue.record("no URL frame: \(String(describing: frame))")
            return
        }
        #expect(url.url == "https://goo.gl/b6RTme" && url.txPower == -8)
        let short = try data("0816AAFE10F8006707").eddystone
        guard case .url(let page) = short else {
            Issue.record("no URL frame: \(String(describing: short))")
            return
        }
        #expect(page.url == "http://www.g.com")
        #expect(try data("0816AAFE10F8006720").eddystone == nil, "no blanks in addresses")
    }

    /// As quoted by beacontools' tests; the fields by the frame's layout.
    @Test func eddystoneTelemetryIsRead() throws {
        let frame = try data("0201060303AAFE1116AAFE20000B181300000014660000423D").eddystone
        guard case .telemetry(let telemetry) = frame else {
            Issue.record("no TLM frame: \(String(describing: frame))")
            return
        }
        #expect(telemetry.batteryMillivolts == 2840 && telemetry.temperature == 19.0)
        #expect(telemetry.advertisementCount == 5222 && telemetry.uptime == .milliseconds(1_695_700))
    }

    /// Put together from the frame's layout.
    @Test func encryptedFramesAreReadWithoutTheirContents() throws {
        let sealed = "0102030405060708090A0B0C"
        guard case .encryptedTelemetry(let telemetry) = try data("1516AAFE2001" + sealed + "12345678").eddystone else {
            Issue.record("no encrypted TLM frame")
            return
        }
        #expect(telemetry.payload.count == 12 && telemetry.salt == 0x1234 && telemetry.messageCheck == 0x5678)
        guard case .ephemeral(let frame) = try data("0D16AAFE30EE0102030405060708").eddystone else {
            Issue.record("no EID frame")
            return
        }
        #expect(frame.txPower == -18 && frame.identifier == [1, 2, 3, 4, 5, 6, 7, 8])
    }

    /// Recorded frames: every Eddystone and iBeacon record in the vectors that is long enough has its view.
    @Test(.enabled(if: SharedVectors.available(for: "BeaconTests"))) func everyRecordedBeaconHasItsView() throws {
        var found = 0
        for event in try AdvertisingVectors.events() {
            for report in AdvertisingVectors.parse(try Hex.decode(event.hex))?.reports ?? [] {
                let data = report.advertisingData
                if let apple = data.manufacturerData(of: 0x004C), apple.starts(with: [0x02, 0x15]), apple.count >= 23 {
                    #expect(data.iBeacon != nil, "\(event.id ?? "")")
                    found += 1
                }
            }
        }
        #expect(found > 0)
    }
}
