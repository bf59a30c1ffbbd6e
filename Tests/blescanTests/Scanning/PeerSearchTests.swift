import BLECore
import BareBLE
import BareBLETestKit
import Testing

@testable import blescan

/// A device that the command line describes by what it advertises.
@Suite struct PeerSearchTests {
    private static let timeLimit: Duration = .seconds(15)

    private func wanted(_ argument: String) throws -> AdvertisedPeer {
        try #require(try AdvertisedPeer(argument: argument))
    }

    private func device(_ name: String) -> VirtualDevice {
        VirtualDevice(
            name: name, services: [VirtualService(0x180F, [VirtualCharacteristic(0x2A19, .read, value: [64])])])
    }

    /// Searches among devices with these names, and returns which one is found, or the failure.
    private func search(
        _ argument: String, among names: [String], isConnectable: Bool = true, after silence: Duration = .zero,
        timeLimit: Duration = timeLimit
    ) async throws -> Result<String, Failure> {
        let wanted = try wanted(argument)
        return try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            var peers: [PeerID: String] = [:]
            var waiting: [VirtualPeripheral] = []
            for name in names {
                let peripheral = await radio.add(device(name), proximity: silence > .zero ? .outOfRange : .near)
                if !isConnectable {
                    await radio.advertise(peripheral, VirtualAdvertisement(device(name), isConnectable: false))
                }
                if let id = await radio.id(of: peripheral) { peers[id] = name }
                waiting.append(peripheral)
            }
            let coming = time.task { [waiting] in
                try await time.clock.sleep(for: silence)
                for peripheral in waiting { await radio.move(peripheral, to: .near) }
            }
            defer { coming.cancel() }
            do {
                let match = try await PeerSearch.run(wanted, by: central, for: timeLimit)
                #expect(match.rssi != nil)
                #expect(await !radio.isScanning(), "a scan that goes on would delay the connection")
                return .success(peers[match.peer] ?? "\(match.peer)")
            } catch let failure as Failure {
                return .failure(failure)
            }
        }
    }

    @Test(arguments: [
        ("name:thermo*", "Thermo 4A"), ("name:SCALE", "Scale"), ("name:*4a", "Thermo 4A"), ("name:T*4*", "Thermo 4A"),
    ])
    func theOnlyDeviceOfThatNameIsFound(_ argument: String, _ name: String) async throws {
        #expect(try await search(argument, among: ["Thermo 4A", "Scale", "Therm"]).get() == name)
    }

    @Test(arguments: ["service:180f", "service:battery"]) func theOnlyDeviceWithAServiceIsFound(_ argument: String)
        async throws
    {
        #expect(try await search(argument, among: ["Lamp"]).get() == "Lamp")
        let none = try await search("service:heart-rate", among: ["Lamp"])
        #expect(throws: Failure.self) { try none.get() }
    }

    @Test func aDeviceMayBeLate() async throws {
        #expect(try await search("name:Lamp", among: ["Lamp"], after: .seconds(10)).get() == "Lamp")
    }

    /// The table shows such a name without the zeros.
    @Test(arguments: ["name:Thermo", "name:*mo"]) func zerosAtTheEndAreNoPartOfAName(_ argument: String) async throws {
        #expect(try await search(argument, among: ["Thermo\0\0", "Scale"]).get() == "Thermo\0\0")
    }

    /// Also if the first is waited for as long as the others.
    @Test(arguments: [timeLimit, PeerSearch.settling]) func severalDevicesAreListed(_ timeLimit: Duration) async throws
    {
        let result = try await search("name:Thermo*", among: ["Thermo 1", "Thermo 2", "Scale"], timeLimit: timeLimit)
        let failure = try #require(throws: Failure.self) { try result.get() }
        #expect(failure.status == .usage && failure.hint == "Name one by its address.")
        #expect(failure.message.hasPrefix("name:Thermo* matches 2 devices: "))
        #expect(failure.message.contains("\"Thermo 1\"") && failure.message.contains("\"Thermo 2\""))
        #expect(failure.message.contains("/") && failure.message.contains(" dBm"))
    }

    /// Nobody, somebody else, or a beacon, which cannot be connected to.
    @Test(arguments: [([], true), (["Scale"], true), (["Thermo"], false)])
    func noDeviceIsReportedWithAHint(_ names: [String], _ isConnectable: Bool) async throws {
        let result = try await search("name:Thermo*", among: names, isConnectable: isConnectable)
        let failure = try #require(throws: Failure.self) { try result.get() }
        #expect(failure.status == .notFound)
        #expect(
            failure.message == "no device that matches name:Thermo* and accepts connections was heard in 15 s")
        #expect(failure.hint?.contains("`sudo blescan scan --name Thermo`") == true)
    }

    @Test(arguments: [
        (Duration.milliseconds(500), "500 ms"), (.milliseconds(1500), "1.5 s"), (.seconds(90), "90 s"),
    ])
    func theTimeOfTheSearchIsNamed(_ time: Duration, _ words: String) throws {
        let search = PeerSearch(try wanted("name:Thermo*"))
        let failure = try #require(throws: Failure.self) { try search.result(after: time) }
        #expect(failure.message.hasSuffix(" was heard in \(words)"), "\(failure.message)")
    }

    @Test(arguments: [
        ("name:Thermo*", "thermo", true), ("name:Thermo*", "My Thermo", false), ("name:*o*o*", "foo", true),
        ("name:*o*o*", "fo", false), ("name:ab*ba", "aba", false), ("name:ab*ba", "abba", true),
        ("name:Tempé*", "TEMPÉRATURE", true), ("name:a", "ab", false), ("name:**a", "ba", true),
        ("name:θερμο*", "ΘΕΡΜΟ 1", true),
    ])
    func anAsteriskIsAnyText(_ argument: String, _ name: String, _ isMatch: Bool) throws {
        guard case .name(let pattern) = try wanted(argument) else { throw Failure(message: "no name", status: .usage) }
        #expect(pattern.matches(name) == isMatch)
    }

    @Test(arguments: ["name:", "name:*", "name:**", "service:", "service:tea", "service:battery-level"])
    func everyDeviceIsNoDescription(_ argument: String) {
        #expect(throws: BadValue.self) { try PeerDesignation(argument: argument) }
    }

    @Test(arguments: [
        (["pair", "name:Lock"], "name the device by its address here"),
        (["forget", "service:180d"], "name the device by its address here"),
        (["doctor", "--connect", "name:Lock"], "name the device by its address here"),
        (["read", "name:Lock", "2a19", "--pair"], "--pair needs the address of the device"),
    ])
    func aPairingNamesItsDevice(_ words: [String], _ reason: String) async throws {
        let outcome = try await BuiltProgram.run(words)
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(outcome.errors.contains(reason), "\(outcome.errors)")
    }
}
