import BLECore
import BareBLE
import BareBLETestKit
import Testing

@testable import blescan

/// Declarations of `blescan serve`.
@Suite struct ServedDeviceTests {
    private func device(_ text: String) throws(Failure) -> ServedDevice {
        try ServedDevice(declaration: text.split(separator: "\n").map { InputLine($0.utf8) }, file: "device.txt")
    }

    @Test func aDeclarationIsRead() throws {
        let device = try device(
            """
            name My thermometer   # what it is called
            service 1809
              characteristic 2a1c indicate
              characteristic temperature-type read = 02
            service b1e50001-7d1c-4f0a-9c3e-2a5b6c7d8e9f
              characteristic fff1 read,write,encrypted = 00 01ff
            """)
        #expect(device.name == "My thermometer")
        #expect(device.services.map(\.uuid) == [0x1809, "b1e50001-7d1c-4f0a-9c3e-2a5b6c7d8e9f"])
        #expect(device.services[0].characteristics.map(\.uuid) == [0x2A1C, 0x2A1D])
        #expect(device.services[0].characteristics.map(\.properties) == [.indicate, .read])
        let last = device.services[1].characteristics[0]
        #expect(last.properties == [.read, .write])
        #expect(last.access == AttributeAccess(.encrypted))
    }

    @Test(arguments: [
        ("name Room #3", "Room #3"), ("name C# player # a comment", "C# player"), ("\tname  Room # 3", "Room"),
    ])
    func aNameMayHaveTheSignOfAComment(_ line: String, _ name: String) throws {
        #expect(try device("#name Hall\n# name Hall\n" + line + "\nservice 1809#3").name == name)
    }

    @Test func servicesHaveNames() throws {
        let device = try device("service heart-rate\nservice nordic-uart\nservice battery")
        #expect(device.services.map(\.uuid) == [0x180D, "6e400001-b5a3-f393-e0a9-e50e24dcca9e", 0x180F])
    }

    @Test(arguments: [
        ("characteristic 2a1c read", "line 1: a characteristic comes after its service."),
        ("service 1809\ncharacteristic 2a1c fly", "line 2: 'fly' is none of read"),
        ("service 1809\ncharacteristic 2a1c read = 0g", "line 2: the value is hex digits"),
        ("service 1809\ncharacteristic fff1 read, write = 02", "line 2: write the properties without blanks"),
        ("service 1809\ncharacteristic fff1 read ,write", "line 2: write the properties without blanks"),
        ("service 1809\ncharacteristic fff1 read write = 02", "line 2: write the properties without blanks"),
        ("service 1809\ncharacteristic fff1 read 02", "line 2: the value is hex digits"),
        ("service 1809\ncharacteristic 2a1c encrypted", "line 2: the properties state how centrals use"),
        ("service 180", "line 1: '180' is no UUID"),
        ("service 1809\nservice 1800", "line 2: blescan serves 1800 itself"),
        ("service 1801", "line 1: blescan serves 1801 itself"),
        ("service battery-level", "line 1: 'battery-level' is no UUID and no name: write 180f"),
        ("service battery\ncharacteristic battery read", "line 2: 'battery' is no UUID and no name: write 2a19"),
        ("name", "line 1: `name` takes"),
        ("name " + String(repeating: "ä", count: 125), "line 1: a name has 248 bytes at most"),
        ("name Hall\nservice 1809\nname Room", "line 3: the name is in line 1 already"),
        ("color red", "line 1: 'color' is none of"),
        ("name Empty", "declares no service"),
    ])
    func aWrongLineIsNamed(_ text: String, _ message: String) {
        let error = #expect(throws: Failure.self) { try device(text) }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
        #expect(error?.status == .badData && error?.hint != nil)
    }

    /// A file that is no declaration may be one long line.
    @Test(arguments: [
        "WORD", "service WORD", "service 1809\ncharacteristic WORD read", "service 1809\ncharacteristic fff1 read,WORD",
    ])
    func theEndsOfALongWordAreQuoted(_ text: String) throws {
        let text = text.replacing("WORD", with: "a" + String(repeating: "\u{301}", count: 30_000) + "z")
        let failure = try #require(throws: Failure.self) { try device(text) }
        #expect(failure.message.unicodeScalars.count < 300, "\(failure.message)")
        #expect(failure.message.contains("z' is n"), "\(failure.message)")
    }

    @Test func aLineThatIsTooLongIsNamed() {
        let text = "service 1809\n" + String(repeating: "#", count: 65_537)
        let error = #expect(throws: Failure.self) { try device(text) }
        #expect(error?.message == "device.txt, line 2: the line is too long: more than 65536 bytes.")
        #expect(error?.status == .badData)
    }

    @Test func theHintOfAServiceThatIsThereNamesTheName() {
        let error = #expect(throws: Failure.self) { try device("service 1800") }
        #expect(error?.hint == "Set the name with `name`, and leave the service out.")
    }

    // MARK: The Appearance

    /// Core Specification Supplement, Part A, 1.12; the values are those of Assigned Numbers, 2.6.3.
    @Test(arguments: [(VirtualDevice.heartRate, "03194103"), (VirtualDevice.lock, "03190807")])
    func aVirtualDeviceAdvertisesItsAppearance(_ virtual: VirtualDevice, _ structure: String) throws {
        let device = ServedDevice(virtual)
        let payload = try device.advertisement(named: device.name).data.payload(fitting: .legacy)
        #expect(Self.contains(payload.advertisingData, try Hex.decode(structure)))
        let name = [0x09] + Array(device.name.utf8)
        #expect(Self.contains(payload.advertisingData + payload.scanResponse, name), "the name is whole")
    }

    @Test func anUnknownAppearanceIsNotAdvertised() throws {
        let device = ServedDevice(.battery)
        #expect(device.appearance == 0)
        let payload = try device.advertisement(named: device.name).data.payload(fitting: .legacy)
        #expect(AdvertisingData(payload.advertisingData).appearance == nil)
        #expect(AdvertisingData(payload.scanResponse).appearance == nil)
    }

    /// The flags take 3 bytes, the lists of services 4 or 8 and 18, and the Appearance 4. So it takes room from the
    /// name in the scan response only where there are more services.
    @Test(arguments: [(false, 29, true), (false, 60, true), (true, 25, true), (true, 26, false), (true, 60, false)])
    func theAppearanceTakesNothingFromTheName(_ hasMoreServices: Bool, _ length: Int, _ hasAppearance: Bool) throws {
        var device = ServedDevice(.lock)
        if hasMoreServices { device.services += [LocalService(0x1809, []), LocalService(0x181A, [])] }
        let name = String(repeating: "n", count: length)
        let payload = try device.advertisement(named: name).data.payload(fitting: .legacy)
        let parts = [AdvertisingData(payload.advertisingData), AdvertisingData(payload.scanResponse)]
        #expect(parts.contains { $0.appearance == 0x0708 } == hasAppearance)
        let sent = parts.flatMap(\.structures).first { $0.type == .completeLocalName || $0.type == .shortenedLocalName }
        #expect(sent?.value == Array(name.utf8.prefix(29)))
    }

    private static func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: part) }
    }
}
