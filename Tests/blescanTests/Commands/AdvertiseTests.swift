import ArgumentParser
import BLECore
import BLELinux
import BareBLE
import Testing

@testable import blescan

/// What `blescan advertise` puts on air. Golden bytes: recorded beacons as other projects' tests quote them, as in
/// `AdvertisementDataTests`, with the power and the uptime of each case in their places.
@Suite struct AdvertiseTests {
    private func bytes(_ arguments: [String]) throws -> String {
        let payload = try Advertise.parse(arguments).advertisement().data.payload(fitting: .legacy)
        return Hex.encode(payload.advertisingData)
    }

    @Test(arguments: [([], "c5"), (["--measured-power", "-77"], "b3"), (["--measured-power", "20"], "14")])
    func iBeaconsStateTheirPower(_ option: [String], _ power: String) throws {
        #expect(
            try bytes(["--ibeacon", "fda50693-a4e2-4fb1-afcf-c6eb07647825/1/2"] + option)
                == "0201061aff4c000215fda50693a4e24fb1afcfc6eb0764782500010002" + power)
    }

    @Test(arguments: [([], "ec"), (["--measured-power", "-8"], "f8"), (["--measured-power", "-100"], "9c")])
    func eddystoneStatesItsPower(_ option: [String], _ power: String) throws {
        #expect(
            try bytes(["--url", "https://goo.gl/b6RTme"] + option)
                == "0303aafe1316aafe10\(power)03676f6f2e676c2f623652546d65")
        #expect(
            try bytes(["--eddystone-uid", "12345678901234567890/123456789012"] + option)
                == "0303aafe1716aafe00\(power)123456789012345678901234567890120000")
    }

    @Test func telemetryIsSentAsGiven() throws {
        #expect(
            try bytes(["--eddystone-tlm", "2840/19/5222/1695"]) == "0303aafe1116aafe20000b1813000000146600004236")
        #expect(try bytes(["--eddystone-tlm", "-/-40.5"]) == "0303aafe1116aafe20000000d7800000000000000000")
        #expect(try bytes(["--eddystone-tlm", "1/-"]) == "0303aafe1116aafe200000018000" + "0000000000000000")
    }

    private static let longName = String(repeating: "n", count: 66)

    /// No adapter is needed to find out.
    @Test(arguments: [
        (["--name", "x", "--interval", "5ms"], "20ms to 10.24s"),
        (["--name", "x", "--interval", "10241ms"], "20ms to 10.24s"),
        (["--name", longName], "leave something out"),
        (["--extended", "--name", String(repeating: "n", count: 255)], "leave something out"),
    ])
    func whatNoAdapterSendsIsWrongUsage(_ arguments: [String], _ words: String) async throws {
        let outcome = try await BuiltProgram.run(["advertise"] + arguments)
        #expect(outcome.status == 64 && outcome.errors.contains(words), "\(outcome.errors)")
    }

    @Test(arguments: [
        ["--name", "x", "--interval", "20ms"], ["--name", "x", "--interval", "10.24s"],
        ["--extended", "--name", longName],
    ])
    func theLimitsAreAllowed(_ arguments: [String]) throws {
        _ = try Advertise.parse(arguments)
    }

    @Test func theKernelAdvertisesOnlyIfItIsAskedTo() throws {
        let asked = try Advertise.parse(["--name", "x", "--management"])
        #expect(try asked.advertisement().backEnd == .management && asked.keptForRadio == [.netRaw, .netAdmin])
        let other = try Advertise.parse(["--name", "x"])
        #expect(try other.advertisement().backEnd == .automatic && other.keptForRadio == [.netRaw])
    }

    /// The identifier takes 28 of the 31 bytes, and a name goes into the scan response.
    @Test func aNameGoesBesideABeacon() throws {
        let payload = try Advertise.parse([
            "--eddystone-uid", "12345678901234567890/123456789012", "--name", "Room 7",
        ]).advertisement().data.payload(fitting: .legacy)
        let both = AdvertisingData(payload.advertisingData + payload.scanResponse)
        #expect(both.localName?.text == "Room 7")
        #expect(both.serviceData.map(\.data.count) == [20])
    }
}
