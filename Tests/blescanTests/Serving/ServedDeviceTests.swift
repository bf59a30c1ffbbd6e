import BLECore
import BareBLE
import Testing

@testable import blescan

/// Declarations of `blescan serve`.
@Suite struct ServedDeviceTests {
    private func device(_ text: String) throws(Failure) -> ServedDevice {
        try ServedDevice(declaration: text.split(separator: "\n").map { Array($0.utf8) }, file: "device.txt")
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

    @Test func servicesHaveNames() throws {
        let device = try device("service heart-rate\nservice nordic-uart\nservice battery")
        #expect(device.services.map(\.uuid) == [0x180D, "6e400001-b5a3-f393-e0a9-e50e24dcca9e", 0x180F])
    }

    @Test(arguments: [
        ("characteristic 2a1c read", "line 1: a characteristic comes after its service."),
        ("service 1809\ncharacteristic 2a1c fly", "line 2: fly is none of read"),
        ("service 1809\ncharacteristic 2a1c read = 0g", "line 2: the value is hex digits"),
        ("service 180", "line 1: 180 is no UUID"),
        ("service battery-level", "line 1: battery-level is no UUID and no name: write 180f"),
        ("service battery\ncharacteristic battery read", "line 2: battery is no UUID and no name: write 2a19"),
        ("name", "line 1: `name` takes"),
        ("color red", "line 1: color is none of"),
        ("name Empty", "declares no service"),
    ])
    func aWrongLineIsNamed(_ text: String, _ message: String) {
        let error = #expect(throws: Failure.self) { try device(text) }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
        #expect(error?.status == .badData)
    }
}
