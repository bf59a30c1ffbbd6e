// What an advertisement of this host contains, and how it is laid out in the advertising data and the scan response.
//
// The rule of placement, which is public (`payload(fitting:)` documents it for users):
// - Elements are in order of priority. Each goes, whole, into the advertising data if it fits into what is left there,
//   otherwise into the scan response.
// - Flags are allowed in the advertising data only.
// - A name that may be shortened comes after everything else, whatever its place: it gives way before anything is
//   refused. It is shortened only if it fits whole into neither part.
// - UUIDs of one size form one list, at the place of the first; a list is never split, because a list on air indicates
//   whether it is complete.
// - Nothing is left out: what does not fit is an error.
//
// Whatever this type builds, `AdvertisingData` reads back without defects.

/// The contents of an advertisement that this host sends: elements in order of priority.
///
///     let data: AdvertisementData = [
///         .flags([.generalDiscoverable, .classicNotSupported]),
///         .services([0x180D]),
///         .localName("Heart Rate Sensor", mayBeShortened: true),
///     ]
///
/// An element takes two bytes more than its value. A legacy advertisement holds 31 bytes, and 31 more in its scan
/// response if it has one; an extended advertisement up to 1650, as the controller allows.
///
/// Spec: Core Vol 3 Part C, 11; Core Specification Supplement, Part A, 1.
public struct AdvertisementData: Hashable, Sendable {
    /// The elements, the most important one first.
    public var elements: [Element]

    /// Creates contents from elements in order of priority.
    public init(_ elements: [Element] = []) {
        self.elements = elements
    }

    /// The flags, or `nil` if there are none.
    public var flags: AdvertisingData.Flags? {
        for element in elements {
            if case .structure(.flags, let value) = element.content {
                return value.first.map { AdvertisingData.Flags(rawValue: $0) }
            }
        }
        return nil
    }

    /// The numbers of bytes that the parts of an advertisement can hold.
    public struct Limits: Hashable, Sendable {
        /// The maximum length of the advertising data.
        public let advertisingData: Int
        /// The maximum length of the scan response; 0 without one.
        public let scanResponse: Int

        /// Creates limits; each is at most 1650 bytes.
        public init(advertisingData: Int, scanResponse: Int = 0) {
            self.advertisingData = min(max(advertisingData, 0), Self.largest)
            self.scanResponse = min(max(scanResponse, 0), Self.largest)
        }

        /// A legacy advertisement with a scan response: 31 bytes each.
        public static let legacy = Limits(advertisingData: 31, scanResponse: 31)
        /// A legacy advertisement without a scan response: 31 bytes.
        public static let legacyWithoutScanResponse = Limits(advertisingData: 31)

        /// Returns the limits of an extended advertisement, which has no scan response, on a controller with this
        /// maximum.
        public static func extended(maximum: Int) -> Limits { Limits(advertisingData: maximum) }

        /// Returns the limits of a scannable extended advertisement, all of whose data are in the scan response.
        public static func extendedScannable(maximum: Int) -> Limits {
            Limits(advertisingData: 0, scanResponse: maximum)
        }

        /// Spec: Core Vol 4 Part E, 7.8.54.
        private static let largest = 1650
    }

    /// The encoded parts of an advertisement.
    public struct Payload: Hashable, Sendable {
        /// The advertising data, in the format that ``AdvertisingData`` reads.
        public let advertisingData: [UInt8]
        /// The scan response data, in the same format; empty without one.
        public let scanResponse: [UInt8]

        package init(advertisingData: [UInt8], scanResponse: [UInt8] = []) {
            self.advertisingData = advertisingData
            self.scanResponse = scanResponse
        }
    }

    /// The rule that the contents violate.
    public enum Invalid: Error, Hashable, Sendable, CustomStringConvertible {
        /// The structures take `bytes` bytes in all; the one of `type`, with `size` bytes, finds no room in `limits`.
        case tooLong(bytes: Int, limits: Limits, type: AdvertisingDataType, size: Int)
        /// The value of a structure has `bytes` bytes, and at most 254 are possible.
        case valueTooLong(AdvertisingDataType, bytes: Int)
        /// There are two structures of a type that may occur once.
        case repeated(AdvertisingDataType)
        /// There are more structures than receivers keep, which is `AdvertisingData.structureLimit`.
        case tooManyStructures(Int)
        /// A connection interval is outside 7.5 ms to 4 s.
        case connectionInterval
        /// The URL begins with neither `http://` nor `https://`, has characters that a beacon cannot send, or takes
        /// `bytes` encoded bytes, of which at most 17 fit.
        case eddystoneURL(bytes: Int)
        /// The namespace of the beacon does not have 10 bytes, or the instance does not have 6.
        case eddystoneIdentifier(namespace: Int, instance: Int)
        /// The temperature is outside -128 to 128 °C, or the uptime outside 0 to 4,971 days.
        case eddystoneTelemetry

        /// The reason, as part of a sentence.
        public var description: String {
            switch self {
            case .tooLong(let bytes, let limits, let type, let size):
                let space =
                    limits.scanResponse == 0
                    ? "\(limits.advertisingData) fit"
                    : "\(limits.advertisingData) and \(limits.scanResponse) in the scan response fit"
                return "the data take \(bytes) bytes, and \(space): no room for the \(size) bytes of \(Self.name(type))"
            case .valueTooLong(let type, let bytes):
                return "the value of \(Self.name(type)) has \(bytes) bytes, and at most 254 are possible"
            case .repeated(let type):
                return "\(Self.name(type)) may occur only once"
            case .tooManyStructures(let count):
                return "there are \(count) structures, and receivers keep \(AdvertisingData.structureLimit)"
            case .connectionInterval:
                return "connection intervals are 7.5 ms to 4 s"
            case .eddystoneURL(let bytes):
                return bytes > AdvertisementData.Element.eddystoneURLLimit
                    ? "the URL takes \(bytes) encoded bytes, and \(AdvertisementData.Element.eddystoneURLLimit) fit"
                    : "the URL does not begin with http:// or https://, or has characters other than printable ASCII"
            case .eddystoneIdentifier(let namespace, let instance):
                return "a namespace has 10 bytes and an instance 6; these have \(namespace) and \(instance)"
            case .eddystoneTelemetry:
                return "temperatures are -128 to 128 °C, and uptimes 0 to 4,971 days"
            }
        }

        private static func name(_ type: AdvertisingDataType) -> String {
            AssignedNumbers.adTypeName(type.rawValue) ?? "type 0x" + Hex.encode([type.rawValue])
        }
    }
}

extension AdvertisementData: ExpressibleByArrayLiteral {
    /// Creates contents from elements in order of priority.
    public init(arrayLiteral elements: Element...) {
        self.init(elements)
    }
}

// MARK: - Elements

extension AdvertisementData {
    /// One piece of information in an advertisement.
    public struct Element: Hashable, Sendable {
        enum Content: Hashable, Sendable {
            case structure(AdvertisingDataType, [UInt8])
            case name(String, mayBeShortened: Bool)
            case services([BluetoothUUID], isComplete: Bool)
            case solicitedServices([BluetoothUUID])
            /// Data of a service that is to be listed as well.
            case beacon(BluetoothUUID, AdvertisingData.Structure)
        }

        let content: Content

        init(_ content: Content) {
            self.content = content
        }

        init(_ type: AdvertisingDataType, _ value: consuming ByteWriter) {
            self.init(.structure(type, value.bytes))
        }

        /// Discoverability and transports; 3 bytes, never in the scan response. A connectable advertisement needs
        /// them, or general discovery does not find it.
        public static func flags(_ flags: AdvertisingData.Flags) -> Element {
            Element(.structure(.flags, [flags.rawValue]))
        }

        /// The device's name; 2 bytes and its UTF-8.
        ///
        /// A name that may be shortened is placed after all other elements. If it fits whole into neither part, its
        /// beginning is sent as the Shortened Local Name, cut between two characters.
        public static func localName(_ name: String, mayBeShortened: Bool = false) -> Element {
            Element(.name(name, mayBeShortened: mayBeShortened))
        }

        /// Services that the device offers; 2 bytes for each size of UUID, and 2, 4 or 16 bytes for each service.
        ///
        /// UUIDs of one size form one list, from all elements of this kind, each UUID once. The list is marked as
        /// complete unless one of the elements specifies that it is not.
        public static func services(_ services: [BluetoothUUID], isComplete: Bool = true) -> Element {
            Element(.services(services, isComplete: isComplete))
        }

        /// Services that the device looks for in a central; the sizes are those of `services(_:isComplete:)`.
        public static func solicitedServices(_ services: [BluetoothUUID]) -> Element {
            Element(.solicitedServices(services))
        }

        /// Data of a service, in its own format; 4, 6 or 18 bytes and the data.
        public static func serviceData(_ data: [UInt8], of service: BluetoothUUID) -> Element {
            let structure = structure(of: service, data)
            return Element(.structure(structure.type, structure.value))
        }

        static func structure(of service: BluetoothUUID, _ data: [UInt8]) -> AdvertisingData.Structure {
            var value = ByteWriter(reserving: 16 + data.count)
            let size = value.shortest(service)
            value.array(data)
            return AdvertisingData.Structure(
                type: size == 2 ? .serviceData16Bit : size == 4 ? .serviceData32Bit : .serviceData128Bit,
                value: value.bytes)
        }

        /// Data in a company's own format; 4 bytes and the data.
        public static func manufacturerData(_ data: [UInt8], company: UInt16) -> Element {
            var value = ByteWriter(reserving: 2 + data.count)
            value.u16(company)
            value.array(data)
            return Element(.manufacturerSpecificData, value)
        }

        /// The transmit power in dBm; 3 bytes.
        public static func txPowerLevel(_ power: Int8) -> Element {
            Element(.structure(.txPowerLevel, [UInt8(bitPattern: power)]))
        }

        /// The appearance code, such as 833 for a heart rate belt; 4 bytes.
        public static func appearance(_ appearance: UInt16) -> Element {
            var value = ByteWriter(reserving: 2)
            value.u16(appearance)
            return Element(.appearance, value)
        }

        /// The connection intervals that the device prefers, rounded down to multiples of 1.25 ms; 6 bytes.
        ///
        /// - Throws: `Invalid.connectionInterval` outside 7.5 ms to 4 s.
        public static func connectionIntervals(_ range: ClosedRange<Duration>) throws(Invalid) -> Element {
            guard range.lowerBound >= .microseconds(7500), range.upperBound <= .seconds(4) else {
                throw .connectionInterval
            }
            var value = ByteWriter(reserving: 4)
            value.u16(range.lowerBound.units(of: 1_250_000))
            value.u16(range.upperBound.units(of: 1_250_000))
            return Element(.peripheralConnectionIntervalRange, value)
        }

        /// A URI; 3 or 4 bytes and what follows its scheme, or the whole URI where the scheme has no number.
        ///
        /// Spec: Core Specification Supplement, Part A, 1.18; Assigned Numbers, 2.7.
        public static func uri(_ uri: String) -> Element {
            let scheme = String(uri.unicodeScalars.prefix { $0 != ":" }) + ":"
            guard uri.unicodeScalars.starts(with: scheme.unicodeScalars),
                let code = schemeCode(of: scheme)
            else { return Element(.structure(.uri, [1] + uri.utf8)) }
            return Element(.structure(.uri, Array(String(code).utf8) + uri.utf8.dropFirst(scheme.utf8.count)))
        }

        /// The character that stands for a scheme with its colon.
        private static func schemeCode(of scheme: String) -> Unicode.Scalar? {
            var code: Unicode.Scalar?
            AssignedNumbers.uriSchemes.forEach { _, number, name in
                if name == scheme { code = Unicode.Scalar(UInt32(truncatingIfNeeded: number)) }
            }
            return code
        }

        /// A structure of any type; 2 bytes and the value.
        public static func structure(_ type: AdvertisingDataType, _ value: [UInt8]) -> Element {
            Element(.structure(type, value))
        }
    }
}

// MARK: - Layout

extension AdvertisementData {
    /// Returns the encoded parts.
    ///
    /// Elements are placed in their order: into the advertising data, or into the scan response where there is not
    /// enough room left in the former. Flags are placed in the advertising data only. Names that may be shortened come
    /// last, and are shortened if they fit whole into neither part. Nothing is left out.
    ///
    /// - Throws: `Invalid` if the contents do not fit into `limits`, or violate another rule.
    public func payload(fitting limits: Limits) throws(Invalid) -> Payload {
        let structures = try structures()
        let name = shortenableName
        let total = structures.reduce(0) { $0 + $1.size } + (name.map { $0.utf8.count + 2 } ?? 0)
        var layout = Layout(limits, total: total)
        for structure in structures { try layout.place(structure) }
        if let name { try layout.place(name: name) }
        return layout.payload
    }

    private var shortenableName: String? {
        for element in elements {
            if case .name(let name, mayBeShortened: true) = element.content { return name }
        }
        return nil
    }

    /// The structures in order, all but a name that may be shortened.
    private func structures() throws(Invalid) -> [AdvertisingData.Structure] {
        var lists = ServiceLists(of: elements)
        var structures: [AdvertisingData.Structure] = []
        for element in elements {
            switch element.content {
            case .structure(let type, let value):
                structures.append(AdvertisingData.Structure(type: type, value: value))
            case .name(let name, mayBeShortened: false):
                structures.append(AdvertisingData.Structure(type: .completeLocalName, value: Array(name.utf8)))
            case .name: break
            case .services(let services, _):
                for service in services { structures += lists.takeList(with: service, isSolicitation: false) }
            case .solicitedServices(let services):
                for service in services { structures += lists.takeList(with: service, isSolicitation: true) }
            case .beacon(let service, let data):
                structures += lists.takeList(with: service, isSolicitation: false)
                structures.append(data)
            }
        }
        try check(structures)
        return structures
    }

    private func check(_ structures: [AdvertisingData.Structure]) throws(Invalid) {
        guard elements.count(where: { $0.isName }) <= 1 else { throw .repeated(.completeLocalName) }
        var present: Set<UInt8> = []
        if shortenableName != nil { present.insert(AdvertisingDataType.completeLocalName.rawValue) }
        for structure in structures {
            guard structure.value.count <= Self.longestValue else {
                throw .valueTooLong(structure.type, bytes: structure.value.count)
            }
            if let kind = structure.type.kindThatOccursOnce, !present.insert(kind.rawValue).inserted {
                throw .repeated(structure.type)
            }
        }
        let count = structures.count + (shortenableName == nil ? 0 : 1)
        guard count <= AdvertisingData.structureLimit else { throw .tooManyStructures(count) }
    }

    /// The length octet counts the type as well.
    private static let longestValue = 254

    /// The lists of UUIDs, one for each size, of offered and of solicited services.
    private struct ServiceLists {
        private struct List {
            let size: Int
            let isSolicitation: Bool
            var services: [BluetoothUUID] = []
            var isComplete = true
            var isTaken = false

            var type: AdvertisingDataType {
                switch (size, isSolicitation) {
                case (2, false): isComplete ? .complete16BitServiceUUIDs : .incomplete16BitServiceUUIDs
                case (4, false): isComplete ? .complete32BitServiceUUIDs : .incomplete32BitServiceUUIDs
                case (_, false): isComplete ? .complete128BitServiceUUIDs : .incomplete128BitServiceUUIDs
                case (2, true): .solicited16BitServiceUUIDs
                case (4, true): .solicited32BitServiceUUIDs
                case (_, true): .solicited128BitServiceUUIDs
                }
            }
        }

        private var lists: [List] = []

        init(of elements: [Element]) {
            for element in elements {
                switch element.content {
                case .services(let services, let isComplete): add(services, false, isComplete: isComplete)
                case .solicitedServices(let services): add(services, true)
                case .beacon(let service, _): add([service], false)
                case .structure, .name: break
                }
            }
        }

        private mutating func add(_ services: [BluetoothUUID], _ isSolicitation: Bool, isComplete: Bool = true) {
            for service in services {
                let index = index(service, isSolicitation) ?? lists.count
                if index == lists.count {
                    lists.append(List(size: service.shortestSize, isSolicitation: isSolicitation))
                }
                if !isComplete { lists[index].isComplete = false }
                if !lists[index].services.contains(service) { lists[index].services.append(service) }
            }
        }

        /// Returns the list that this service is in, once.
        mutating func takeList(with service: BluetoothUUID, isSolicitation: Bool) -> [AdvertisingData.Structure] {
            guard let index = index(service, isSolicitation), !lists[index].isTaken else { return [] }
            lists[index].isTaken = true
            let list = lists[index]
            var value = ByteWriter(reserving: list.size * list.services.count)
            for service in list.services { value.shortest(service) }
            return [AdvertisingData.Structure(type: list.type, value: value.bytes)]
        }

        private func index(_ service: BluetoothUUID, _ isSolicitation: Bool) -> Int? {
            lists.firstIndex { $0.size == service.shortestSize && $0.isSolicitation == isSolicitation }
        }
    }

    /// The two parts while they are filled.
    private struct Layout {
        private let limits: Limits
        /// What all structures take.
        private let total: Int
        private var advertisingData: [UInt8] = []
        private var scanResponse: [UInt8] = []

        init(_ limits: Limits, total: Int) {
            self.limits = limits
            self.total = total
        }

        var payload: Payload { Payload(advertisingData: advertisingData, scanResponse: scanResponse) }

        private var space: (advertisingData: Int, scanResponse: Int) {
            (limits.advertisingData - advertisingData.count, limits.scanResponse - scanResponse.count)
        }

        mutating func place(_ structure: AdvertisingData.Structure) throws(Invalid) {
            guard append(structure) else {
                throw .tooLong(bytes: total, limits: limits, type: structure.type, size: structure.size)
            }
        }

        mutating func place(name: String) throws(Invalid) {
            let whole = AdvertisingData.Structure(type: .completeLocalName, value: Array(name.utf8))
            if append(whole) { return }
            let room = min(max(space.advertisingData, space.scanResponse) - 2, AdvertisementData.longestValue)
            var beginning: [UInt8] = []
            for character in name.unicodeScalars {
                let encoded = String(character).utf8
                guard beginning.count + encoded.count <= room else { break }
                beginning += encoded
            }
            guard !beginning.isEmpty,
                append(AdvertisingData.Structure(type: .shortenedLocalName, value: beginning))
            else { throw .tooLong(bytes: total, limits: limits, type: whole.type, size: whole.size) }
        }

        private mutating func append(_ structure: AdvertisingData.Structure) -> Bool {
            guard structure.value.count <= AdvertisementData.longestValue else { return false }
            if structure.size <= space.advertisingData {
                advertisingData += structure.bytes
            } else if structure.size <= space.scanResponse, structure.type != .flags {
                scanResponse += structure.bytes
            } else {
                return false
            }
            return true
        }
    }
}

extension AdvertisementData.Element {
    fileprivate var isName: Bool {
        if case .name = content { return true }
        return false
    }
}

extension AdvertisingData.Structure {
    /// The number of bytes that the structure takes.
    fileprivate var size: Int { value.count + 2 }

    fileprivate var bytes: [UInt8] { [UInt8(clamping: value.count + 1), type.rawValue] + value }
}

extension AdvertisingDataType {
    /// The kind of which one structure is allowed: the type, or the one that stands for both of its forms.
    ///
    /// Spec: Core Specification Supplement, Part A, 1.1 to 1.12.
    fileprivate var kindThatOccursOnce: AdvertisingDataType? {
        switch self {
        case .flags, .appearance, .peripheralConnectionIntervalRange: self
        case .solicited16BitServiceUUIDs, .solicited32BitServiceUUIDs, .solicited128BitServiceUUIDs: self
        case .completeLocalName, .shortenedLocalName: .completeLocalName
        case .complete16BitServiceUUIDs, .incomplete16BitServiceUUIDs: .complete16BitServiceUUIDs
        case .complete32BitServiceUUIDs, .incomplete32BitServiceUUIDs: .complete32BitServiceUUIDs
        case .complete128BitServiceUUIDs, .incomplete128BitServiceUUIDs: .complete128BitServiceUUIDs
        default: nil
        }
    }
}

extension BluetoothUUID {
    /// The number of bytes of the shortest form: 2, 4 or 16.
    fileprivate var shortestSize: Int { short != nil ? 2 : medium != nil ? 4 : 16 }
}

extension ByteWriter {
    /// Writes the shortest form of a UUID, and returns its size.
    @discardableResult
    fileprivate mutating func shortest(_ uuid: BluetoothUUID) -> Int {
        if let short = uuid.short {
            u16(short)
        } else if let medium = uuid.medium {
            u32(medium)
        } else {
            u64(uuid.low)
            u64(uuid.high)
        }
        return uuid.shortestSize
    }
}
