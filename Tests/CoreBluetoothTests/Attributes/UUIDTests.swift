import CoreBluetooth
import Testing

/// UUIDs in all their forms.
@Suite struct UUIDTests {
    private static let long = "0000180D-0000-1000-8000-00805F9B34FB"

    @Test(arguments: ["180D", "180d", "0000180D", long, long.lowercased()]) func allFormsAreEqual(_ text: String) {
        let uuid = CBUUID(string: text)
        let short = CBUUID(string: "180D")
        #expect(uuid == short)
        #expect(uuid.hash == short.hash)
        #expect(uuid.uuidString == "180D")
        #expect(uuid.data == Data([0x18, 0x0D]))
        #expect(Set([uuid, short]).count == 1)
        #expect([short: 1][uuid] == 1)
    }

    @Test func dataHasTheMostSignificantByteFirst() {
        let text = "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"
        let bytes: [UInt8] = [
            0x6E, 0x40, 0x00, 0x01, 0xB5, 0xA3, 0xF3, 0x93, 0xE0, 0xA9, 0xE5, 0x0E, 0x24, 0xDC, 0xCA, 0x9E,
        ]
        let uuid = CBUUID(string: text)
        #expect(uuid.data == Data(bytes))
        #expect(CBUUID(data: Data(bytes)) == uuid)
        #expect(uuid.uuidString == text)
        #expect(uuid.description == text)
        #expect(UUID(uuidString: text).map(CBUUID.init(nsuuid:)) == uuid)
        #expect(CBUUID(data: Data([0x12, 0x34, 0x56, 0x78])).uuidString == "12345678")
        #expect(CBUUID(string: "12345678").data == Data([0x12, 0x34, 0x56, 0x78]))
    }

    @Test func aCopyIsTheSame() {
        let uuid = CBUUID(string: "2A37")
        #expect(uuid.copy() as? CBUUID === uuid)
    }

    @Test func aWrongTextStopsTheProgramWithAMessage() async throws {
        let end = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = CBUUID(string: "heart rate")
        }
        let message = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
        #expect(message.contains("String heart rate does not represent a valid UUID"))
    }

    @Test func aWrongNumberOfBytesStopsTheProgramWithAMessage() async throws {
        let end = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = CBUUID(data: Data([1, 2, 3]))
        }
        let message = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
        #expect(message.contains("Data with 3 bytes does not represent a valid UUID"))
    }
}
