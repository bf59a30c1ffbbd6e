import BLECore
import Testing

/// What a faulty peer sends in place of the correct response. The bytes are laid out by hand after Core Vol 3 Part F,
/// 3.4.
@Suite struct TestAttributeServerTests {
    struct Row: CustomTestStringConvertible {
        let quirk: TestAttributeServer.Quirk
        let request: String
        let correct: String
        let altered: String
        var testDescription: String { "\(quirk): \(request)" }
    }

    /// Services at 1, 2 (long), 3 to 10, 11 and 12; characteristics at 4, 7 (long) and 9; a configuration at 6.
    private static var database: ModelDatabase {
        var database = ModelDatabase()
        database.service(0x1800)
        database.endService()
        database.service(long(1))
        database.endService()
        database.service(0x180F)
        database.characteristic(0x2A19, [.read, .notify], value: [1, 2])
        database.cccd()
        database.characteristic(long(2), .read)
        database.characteristic(0x2A1A, .read)
        database.endService()
        database.service(0x180A)
        database.endService()
        database.service(0x1801)
        database.endService()
        return database
    }

    static let rows = [
        // The list is full before the last service.
        Row(
            quirk: .skipsOtherLengths, request: "10 0100 FFFF 0028", correct: "11 06 0100 0100 0018",
            altered: "11 06 0100 0100 0018 0300 0A00 0F18 0B00 0B00 0A18"),
        Row(
            quirk: .skipsOtherLengths, request: "08 0100 FFFF 0328", correct: "09 07 0400 12 0500 192A",
            altered: "09 07 0400 12 0500 192A 0900 02 0A00 1A2A"),
        Row(
            quirk: .hidesConfigurations, request: "08 0100 FFFF 0229", correct: "09 04 0600 0000",
            altered: "01 08 0600 02"),
        Row(
            quirk: .refusesBlobOfOnePacket, request: "0C 0500 0000", correct: "0D 0102", altered: "01 0C 0500 0B"),
        Row(
            quirk: .errorsNameHandleZero, request: "08 0100 FFFF 2A2B", correct: "01 08 0100 0A",
            altered: "01 08 0000 0A"),
    ]

    @Test(arguments: rows)
    func aQuirkAltersTheCorrectResponse(row: Row) throws {
        let request = try Hex.decode(row.request)
        var correct = TestAttributeServer(Self.database)
        let response = try correct.reply(to: request)
        #expect(response == (try Hex.decode(row.correct)))
        var faulty = TestAttributeServer(Self.database, quirks: [row.quirk])
        let altered = try faulty.reply(to: request)
        #expect(altered == (try Hex.decode(row.altered)))
        #expect(faulty.requests == correct.requests)
    }
}
