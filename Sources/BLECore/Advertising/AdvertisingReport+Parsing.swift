// The three LE Meta subevents that carry reports.
//
// An event holds Num_Reports consecutive reports. If a report's length cannot be determined, the start of the next one
// is unknown, so the rest of the event is lost. A report that can be delimited but violates a rule is skipped alone.
// Neither case is an error: valid reports are delivered and the others are counted (rows H01 to H04 and H08 to H10 of
// the reliability catalogue).

extension AdvertisingReport {
    /// Counts of the reports in an event that were not delivered.
    public struct Losses: Hashable, Sendable {
        /// Reports that the event announced but was too short to hold.
        public var missing = 0
        /// Reports with a reserved event type, data status or address type.
        public var reserved = 0
        /// Legacy reports with more data than the 31 bytes that a legacy packet can hold.
        public var oversized = 0
        /// Bytes after the last announced report.
        public var trailingBytes = 0

        /// No losses.
        public init() {}

        /// The total number of lost reports.
        public var reports: Int { missing &+ reserved &+ oversized }
        /// A Boolean value that indicates whether the event was well formed.
        public var isEmpty: Bool { self == Losses() }

        /// Adds the losses of another event.
        package static func += (left: inout Losses, right: Losses) {
            left.missing &+= right.missing
            left.reserved &+= right.reserved
            left.oversized &+= right.oversized
            left.trailingBytes &+= right.trailingBytes
        }
    }

    /// The contents of one event.
    package struct Batch: Hashable, Sendable {
        /// The reports in event order.
        package var reports: [AdvertisingReport]
        /// The reports that could not be delivered.
        package var losses: Losses
    }

    /// Reads the reports of one LE Meta event.
    ///
    /// - Parameters:
    ///   - subevent: The subevent code: 0x02, 0x0B or 0x0D.
    ///   - parameters: The bytes after the subevent code.
    /// - Returns: The reports and the losses, or `nil` if the subevent carries no reports.
    package static func parse(subevent: UInt8, parameters: Span<UInt8>) -> Batch? {
        var reports: [AdvertisingReport] = []
        guard let losses = parse(subevent: subevent, parameters: parameters, { reports.append($0) }) else { return nil }
        return Batch(reports: reports, losses: losses)
    }

    /// Reads the reports of one LE Meta event and passes them on one at a time, without collecting them.
    ///
    /// - Parameters:
    ///   - subevent: The subevent code: 0x02, 0x0B or 0x0D.
    ///   - parameters: The bytes after the subevent code.
    ///   - keepingOversized: Pass true to deliver legacy reports with more than 31 bytes as well; they are counted
    ///     either way. Scans never need them; programs that display recordings do.
    ///   - receive: Called with each report, in event order.
    /// - Returns: The losses, or `nil` if the subevent carries no reports.
    public static func parse(
        subevent: UInt8, parameters: Span<UInt8>, keepingOversized: Bool = false, _ receive: (AdvertisingReport) -> Void
    ) -> Losses? {
        switch subevent {
        case 0x02: read(.legacy, parameters, keepingOversized, receive)
        case 0x0B: read(.directed, parameters, keepingOversized, receive)
        case 0x0D: read(.extended, parameters, keepingOversized, receive)
        default: nil
        }
    }

    /// The maximum advertising data of a legacy packet, in bytes.
    private static let legacyLimit: UInt8 = 31

    /// The outcome of reading one report. A valid report was already delivered: returning it here would copy it.
    private enum Outcome {
        case delivered
        case reserved
        case oversized
        case cutOff
    }

    @inline(__always)
    private static func read(
        _ event: Event, _ parameters: Span<UInt8>, _ keepingOversized: Bool, _ receive: (AdvertisingReport) -> Void
    ) -> Losses {
        var losses = Losses()
        var reader = ByteReader(parameters)
        guard let announced = reader.u8() else {
            losses.missing = 1
            return losses
        }
        for index in 0..<Int(announced) {
            let outcome =
                switch event {
                case .legacy: legacyReport(&reader, keepingOversized, receive)
                case .directed: directedReport(&reader, receive)
                case .extended: extendedReport(&reader, keepingOversized, receive)
                }
            switch outcome {
            case .delivered:
                break
            case .reserved:
                losses.reserved += 1
            case .oversized:
                losses.oversized += 1
            case .cutOff:
                losses.missing += Int(announced) - index
                return losses
            }
        }
        losses.trailingBytes = reader.remaining
        return losses
    }

    /// Event_Type 1 | Address_Type 1 | Address 6 | Data_Length 1 | Data | RSSI 1
    @inline(__always)
    private static func legacyReport(
        _ reader: inout ByteReader, _ keepingOversized: Bool, _ receive: (AdvertisingReport) -> Void
    ) -> Outcome {
        // One check for all fields of fixed length.
        guard var head = reader.take(9), let eventType = head.u8(), let addressType = head.u8(),
            let address = head.address(), let length = head.u8(), let data = reader.take(Int(length)),
            let rssi = reader.i8()
        else { return .cutOff }
        let properties: Properties
        switch eventType {
        case 0: properties = [.legacy, .connectable, .scannable]
        case 1: properties = [.legacy, .connectable, .directed]
        case 2: properties = [.legacy, .scannable]
        case 3: properties = [.legacy]
        case 4: properties = [.legacy, .scanResponse]
        default: return .reserved
        }
        guard let advertiser = Advertiser(type: addressType, address: address) else { return .reserved }
        let isOversized = length > legacyLimit
        guard !isOversized || keepingOversized else { return .oversized }
        receive(
            AdvertisingReport(
                event: .legacy, eventType: UInt16(eventType), properties: properties, address: advertiser.address,
                addressType: advertiser.type, rssi: rssi == 127 ? nil : rssi,
                payload: CompactBytes(copying: data.unread)))
        return isOversized ? .oversized : .delivered
    }

    /// Event_Type 1 | Address_Type 1 | Address 6 | Direct_Address_Type 1 | Direct_Address 6 | RSSI 1
    private static func directedReport(_ reader: inout ByteReader, _ receive: (AdvertisingReport) -> Void) -> Outcome {
        guard let eventType = reader.u8(), let addressType = reader.u8(), let address = reader.address(),
            let directType = reader.u8(), let directAddress = reader.address(), let rssi = reader.i8()
        else { return .cutOff }
        guard eventType == 1, let advertiser = Advertiser(type: addressType, address: address),
            let direct = Advertiser(target: directType, address: directAddress)
        else { return .reserved }
        var report = AdvertisingReport(
            event: .directed, eventType: UInt16(eventType), properties: [.legacy, .connectable, .directed],
            address: advertiser.address, addressType: advertiser.type, rssi: rssi == 127 ? nil : rssi,
            payload: CompactBytes())
        report.directAddress = direct.address
        report.directAddressType = direct.type
        receive(report)
        return .delivered
    }

    /// Event_Type 2 | Address_Type 1 | Address 6 | Primary_PHY 1 | Secondary_PHY 1 | Advertising_SID 1 | TX_Power 1 |
    /// RSSI 1 | Periodic_Advertising_Interval 2 | Direct_Address_Type 1 | Direct_Address 6 | Data_Length 1 | Data
    @inline(__always)
    private static func extendedReport(
        _ reader: inout ByteReader, _ keepingOversized: Bool, _ receive: (AdvertisingReport) -> Void
    ) -> Outcome {
        // One check for all fields of fixed length.
        guard var head = reader.take(24), let eventType = head.u16(), let addressType = head.u8(),
            let address = head.address(), let primaryPHY = head.u8(), let secondaryPHY = head.u8(),
            let sid = head.u8(), let txPower = head.i8(), let rssi = head.i8(), let interval = head.u16(),
            let directType = head.u8(), let directAddress = head.address(), let length = head.u8(),
            let data = reader.take(Int(length))
        else { return .cutOff }
        guard let advertiser = Advertiser(type: addressType, address: address) else { return .reserved }
        let properties = Properties(rawValue: UInt8(truncatingIfNeeded: eventType & 0x1F))
        let isOversized = properties.contains(.legacy) && length > legacyLimit
        guard !isOversized || keepingOversized else { return .oversized }
        var report = AdvertisingReport(
            event: .extended, eventType: eventType, properties: properties, address: advertiser.address,
            addressType: advertiser.type, rssi: rssi == 127 ? nil : rssi,
            payload: CompactBytes(copying: data.unread))
        switch eventType >> 5 & 0b11 {
        case 0b00: report.dataStatus = .complete
        case 0b01: report.dataStatus = .incomplete
        case 0b10: report.dataStatus = .truncated
        default: return .reserved
        }
        // Some controllers use the upper bits for something else (row W18).
        report.primaryPHY = PHY(rawValue: primaryPHY & 0x1F)
        report.secondaryPHY = secondaryPHY & 0x1F == 0 ? nil : PHY(rawValue: secondaryPHY & 0x1F)
        report.sid = sid == 0xFF ? nil : sid
        report.txPower = txPower == 127 ? nil : txPower
        report.periodicInterval = interval == 0 ? nil : interval
        if properties.contains(.directed) {
            guard let direct = Advertiser(target: directType, address: directAddress) else { return .reserved }
            report.directAddress = direct.address
            report.directAddressType = direct.type
        }
        receive(report)
        return isOversized ? .oversized : .delivered
    }

    /// An address and its type as encoded in reports.
    private struct Advertiser {
        let address: BluetoothAddress?
        let type: AddressType?

        /// 0xFF means an anonymous advertiser, 0xFE an address that could not be resolved. In both cases the six bytes
        /// are meaningless.
        init?(type: UInt8, address: BluetoothAddress) {
            if type >= 0xFE {
                self.address = nil
                self.type = nil
            } else {
                guard let known = AddressType(rawValue: type) else { return nil }
                self.address = address
                self.type = known
            }
        }

        /// Reads the target of a directed advertisement, where 0xFE is a random address that the controller could not
        /// resolve.
        init?(target: UInt8, address: BluetoothAddress) {
            guard let known = AddressType(rawValue: target == 0xFE ? 1 : target) else { return nil }
            self.address = address
            self.type = known
        }
    }
}
