import BLECore
import Foundation
import Testing

@Suite struct BluetoothUUIDTests {
    @Test func shortFormsEqualTheirLongForms() {
        #expect(BluetoothUUID("180d") == "0000180D-0000-1000-8000-00805F9B34FB")
        #expect(BluetoothUUID("0000180d") == 0x180D)
        #expect(BluetoothUUID("180D").description == "180d")
        #expect(BluetoothUUID("6E400001-B5A3-F393-E0A9-E50E24DCCA9E").short == nil)
    }

    @Test(arguments: ["180d", "0000180D", "0000180D-0000-1000-8000-00805F9B34FB"])
    func textIsReadInEveryForm(text: String) {
        #expect(BluetoothUUID(text) == 0x180D)
    }

    @Test func wireFormIsLittleEndian() throws {
        let uart: BluetoothUUID = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
        #expect(Hex.encode(uart.attBytes) == "9ecadc240ee5a9e093f3a3b50100406e")
        #expect(BluetoothUUID(littleEndian: uart.attBytes.span) == uart)
        #expect(BluetoothUUID(0x2A37 as UInt16).attBytes == [0x37, 0x2A])
        #expect(uart.description == "6e400001-b5a3-f393-e0a9-e50e24dcca9e")
    }

    @Test(arguments: [
        "", "18", "180g", "180d-0000", "6e400001b5a3f393e0a9e50e24dcca9e", "6e400001-b5a3-f393-e0a9_e50e24dcca9e",
    ])
    func refusesOtherForms(text: String) {
        #expect(BluetoothUUID(text) == nil)
    }
}
