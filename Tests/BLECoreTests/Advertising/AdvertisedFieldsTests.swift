import BLECore
import TestSupport
import Testing

/// What a visit of all fields finds.
struct Found: Equatable {
    var services: [BluetoothUUID] = []
    var serviceData: [AdvertisingData.ServiceData] = []
    var manufacturerData: [AdvertisingData.ManufacturerData] = []

    init(_ fields: AdvertisedFields) {
        fields.forEachService { services.append($0) }
        fields.forEachServiceData { service, data in
            serviceData.append(AdvertisingData.ServiceData(service: service, data: Self.copy(data)))
        }
        fields.forEachManufacturerData { company, data in
            manufacturerData.append(AdvertisingData.ManufacturerData(company: company, data: Self.copy(data)))
        }
    }

    init(_ data: AdvertisingData) {
        services = data.serviceUUIDs
        serviceData = data.serviceData
        manufacturerData = data.manufacturerData
    }

    private static func copy(_ bytes: Span<UInt8>) -> [UInt8] {
        var reader = ByteReader(bytes)
        return reader.rest()
    }
}

/// The fields that one walk finds. `AdvertisingVectorTests` compares them with other parsers.
@Suite struct AdvertisedFieldsTests {
    private func fields(_ bytes: [UInt8]) -> AdvertisedFields {
        AdvertisedFields(AdvertisingReport(address: nil, addressType: nil, data: bytes))
    }

    @Test func emptyPayloadHasNoFields() {
        let fields = fields([])
        #expect(fields.name == nil && fields.txPowerLevel == nil)
        #expect(fields.serviceCount == 0 && fields.serviceDataCount == 0 && fields.manufacturerDataCount == 0)
        let found = Found(fields)
        #expect(found.services.isEmpty && found.serviceData.isEmpty && found.manufacturerData.isEmpty)
    }

    @Test("a complete name precedes a shortened one, and the first of several counts")
    func aCompleteNamePrecedesAShortenedOne() throws {
        #expect(fields(try Hex.decode("020841 030942 43 020944")).name?.bytes == [0x42, 0x43])
        #expect(fields(try Hex.decode("020841 020842")).name?.bytes == [0x41])
        #expect(fields(try Hex.decode("0109 020841")).name?.bytes == [])
    }

    @Test("lists join all structures in payload order; those too short for an element are skipped")
    func listsJoinAllStructuresInPayloadOrder() throws {
        let found = Found(
            fields(
                try Hex.decode("0503 0F18 0A18 02FF4C 04FF4C0001 0316 0F18 0416 0A1864 03FFE000 0205AA 05 05 78563412"))
        )
        #expect(found.services == [0x180F, 0x180A, 0x1234_5678])
        #expect(found.serviceData.map(\.service) == [0x180F, 0x180A])
        #expect(found.serviceData.map(\.data) == [[], [0x64]])
        #expect(found.manufacturerData.map(\.company) == [0x004C, 0x00E0])
        #expect(found.manufacturerData.map(\.data) == [[1], []])
    }

    @Test("the payload of the value outlives the report, at every length around the limit of storage in place")
    func payloadsOfEveryLengthOutliveTheirReport() {
        for length in 0...80 {
            let data = (0..<length).map { UInt8($0) }
            let payload = [UInt8(length + 3), 0xFF, 0x4C, 0x00] + data
            let fields = fields(payload)
            #expect(fields.data.bytes == payload)
            #expect(Found(fields).manufacturerData.map(\.data) == [data])
            #expect(fields == AdvertisedFields(AdvertisingReport(address: nil, addressType: nil, data: payload)))
        }
    }

    @Test("no structure after the limit of them is found")
    func structureLimit() {
        let payload = (0..<AdvertisingData.structureLimit + 10).flatMap { _ in [3, 0xFF, 0x4C, 0] as [UInt8] }
        let fields = fields(payload)
        #expect(fields.manufacturerDataCount == AdvertisingData.structureLimit)
        #expect(Found(fields).manufacturerData.count == AdvertisingData.structureLimit)
    }

    @Test("any bytes, at every length, have the fields that the views of the payload have")
    func anyBytes() {
        var numbers = SeededNumbers(seed: 7)
        let types: [UInt8] = [0x02, 0x03, 0x05, 0x07, 0x08, 0x09, 0x0A, 0x16, 0x20, 0x21, 0xFF]
        for _ in 0..<300 {
            var payload: [UInt8] = []
            for _ in 0..<5 {
                let value = (0..<Int.random(in: 0...20, using: &numbers)).map { _ in
                    UInt8.random(in: 0...255, using: &numbers)
                }
                payload += [UInt8(value.count + 1), types.randomElement(using: &numbers) ?? 0] + value
            }
            for length in 0...payload.count {
                let part = Array(payload.prefix(length))
                let (fields, data) = (fields(part), AdvertisingData(part))
                let found = Found(fields)
                guard
                    found == Found(data) && fields.name == data.name && fields.txPowerLevel == data.txPowerLevel
                        && fields.serviceCount == found.services.count
                        && fields.serviceDataCount == found.serviceData.count
                        && fields.manufacturerDataCount == found.manufacturerData.count
                else {
                    Issue.record("\(Hex.encode(part))")
                    return
                }
            }
        }
    }
}
