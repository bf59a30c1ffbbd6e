/// The fields of an advertisement that most programs use, found in one walk over the payload.
///
/// The value owns its payload, so it outlives the report. Finding the fields and visiting them takes no memory from the
/// heap: data is passed as a view of the payload, and copied only into the arrays and strings that the caller creates.
/// Malformed structures are handled as by the views of ``AdvertisingData``, which have the same fields and more.
public struct AdvertisedFields: Hashable, Sendable {
    /// The position of bytes in the payload.
    private struct Part: Hashable, Sendable {
        var offset: UInt16 = 0
        var count: UInt16 = 0

        init() {}

        /// Nothing, before the structure at `offset`.
        @inline(__always)
        init(at offset: Int) {
            self.offset = UInt16(truncatingIfNeeded: offset)
        }

        /// What is left of `value`, which began after the length octet at `offset`.
        @inline(__always)
        init(_ value: borrowing ByteReader, in offset: Int) {
            self.offset = UInt16(truncatingIfNeeded: offset &+ 1 &+ value.offset)
            count = UInt16(truncatingIfNeeded: value.remaining)
        }
    }

    /// The elements of a list. Most lists have one: its value is kept, the others are decoded when they are visited.
    private struct List<First: Hashable & Sendable>: Hashable, Sendable {
        var first: First
        /// The data of the first element; in a list without data, where the structure of the first element begins.
        var rest = Part()
        var count: UInt32 = 0

        init(_ first: First) {
            self.first = first
        }

        @inline(__always)
        mutating func add(_ element: First, _ part: @autoclosure () -> Part, count elements: Int = 1) {
            if count == 0 {
                first = element
                rest = part()
            }
            count &+= UInt32(truncatingIfNeeded: elements)
        }
    }

    private let payload: CompactBytes
    private let services: List<BluetoothUUID>
    private let serviceParts: List<BluetoothUUID>
    private let companyParts: List<UInt16>
    private let namePart: Part?
    /// The transmit power of the advertisement, in dBm.
    public let txPowerLevel: Int8?

    /// Finds the fields of a report's payload.
    public init(_ report: borrowing AdvertisingReport) {
        var services = List(BluetoothUUID(high: 0, low: 0))
        var serviceParts = services
        var companyParts = List<UInt16>(0)
        var completeName: Part?
        var shortenedName: Part?
        var power: Int8?
        report.payload.withSpan { bytes in
            var walk = AdvertisingData.Walk(bytes)
            while var structure = walk.next() {
                switch structure.type {
                case .completeLocalName:
                    if completeName == nil { completeName = Part(structure.value, in: structure.offset) }
                case .shortenedLocalName:
                    if shortenedName == nil { shortenedName = Part(structure.value, in: structure.offset) }
                case .txPowerLevel:
                    if power == nil, structure.value.remaining == 1 { power = structure.value.i8() }
                case .manufacturerSpecificData:
                    guard let company = structure.value.u16() else { continue }
                    companyParts.add(company, Part(structure.value, in: structure.offset))
                default:
                    if let size = structure.type.serviceListElementSize {
                        let count = structure.value.remaining / size
                        guard let uuid = structure.value.uuid(size) else { continue }
                        services.add(uuid, Part(at: structure.offset), count: count)
                    } else if let size = structure.type.serviceDataUUIDSize, let uuid = structure.value.uuid(size) {
                        serviceParts.add(uuid, Part(structure.value, in: structure.offset))
                    }
                }
            }
        }
        payload = report.payload
        self.services = services
        self.serviceParts = serviceParts
        self.companyParts = companyParts
        namePart = completeName ?? shortenedName
        txPowerLevel = power
    }

    /// The payload with all its typed views.
    public var data: AdvertisingData { AdvertisingData(payload) }

    /// The complete local name if present, otherwise the shortened one.
    public var name: AdvertisedName? {
        guard let namePart else { return nil }
        return with(namePart) { AdvertisedName(copying: $0) }
    }

    /// The number of offered services.
    public var serviceCount: Int { Int(services.count) }
    /// The number of structures with service data.
    public var serviceDataCount: Int { Int(serviceParts.count) }
    /// The number of structures with manufacturer-specific data.
    public var manufacturerDataCount: Int { Int(companyParts.count) }

    /// Visits the offered services, from complete and incomplete lists of all three UUID sizes, in payload order.
    public func forEachService(_ visit: (BluetoothUUID) -> Void) {
        if services.count == 1 { return visit(services.first) }
        guard services.count > 1 else { return }
        forEachStructure(from: services.rest.offset) { type, value in
            guard let size = type.serviceListElementSize else { return }
            while let uuid = value.uuid(size) { visit(uuid) }
        }
    }

    /// Visits all service data, in payload order. Structures too short for their UUID are skipped.
    public func forEachServiceData(_ visit: (_ service: BluetoothUUID, _ data: Span<UInt8>) -> Void) {
        guard serviceParts.count > 0 else { return }
        with(serviceParts.rest) { visit(serviceParts.first, $0) }
        guard serviceParts.count > 1 else { return }
        forEachStructure(from: serviceParts.rest.offset) { type, value in
            if let size = type.serviceDataUUIDSize, let service = value.uuid(size) { visit(service, value.unread) }
        }
    }

    /// Visits all manufacturer-specific data, in payload order. Structures too short for a company identifier are
    /// skipped.
    public func forEachManufacturerData(_ visit: (_ company: UInt16, _ data: Span<UInt8>) -> Void) {
        guard companyParts.count > 0 else { return }
        with(companyParts.rest) { visit(companyParts.first, $0) }
        guard companyParts.count > 1 else { return }
        forEachStructure(from: companyParts.rest.offset) { type, value in
            if type == .manufacturerSpecificData, let company = value.u16() { visit(company, value.unread) }
        }
    }

    /// Visits the structures from `offset` on, for lists with several elements.
    private func forEachStructure(from offset: UInt16, _ visit: (AdvertisingDataType, inout ByteReader) -> Void) {
        payload.withSpan { bytes in
            var walk = AdvertisingData.Walk(bytes)
            while var structure = walk.next() {
                if structure.offset >= Int(offset) { visit(structure.type, &structure.value) }
            }
        }
    }

    @inline(__always)
    private func with<Result>(_ part: Part, _ body: (Span<UInt8>) -> Result) -> Result {
        payload.withSpan { bytes in
            body(bytes.extracting(droppingFirst: Int(part.offset)).extracting(first: Int(part.count)))
        }
    }
}
