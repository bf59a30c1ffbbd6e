import BLECore

/// A device of the live table: its scan result, and the state of its row.
struct ScreenRow: Sendable {
    /// A trend of the strength.
    enum Trend: Hashable, Sendable {
        case rising, falling, steady
    }

    private(set) var scanResult: ScanResult
    /// The data of the advertisement and of the scan response before their last changes.
    private(set) var former: (advertisement: AdvertisingData?, scanResponse: AdvertisingData?) = (nil, nil)
    /// The printable name; `nil` for a device without one.
    private(set) var name: String?
    private var contents: DeviceData
    /// The contents of the advertisements, in words.
    private(set) var data: String
    /// The time of the first report of the row: a device that was silent for long has a new row.
    private(set) var began: BootInstant
    /// The number of reports before it.
    private var formerCount: Int
    /// The weakest and the strongest report of the row.
    private(set) var range: ClosedRange<Int8>?
    /// The sum of the strengths in that range, and their number.
    private var measured = (sum: 0, count: 0)
    /// The strength at the last sorting: it follows the average in steps, so that rows do not change places all the
    /// time. The table shows it, and is in its order.
    private(set) var heldStrength: Int?
    /// The strength over more reports than the scan result's average.
    private var slowStrength: Double?
    /// The strengths and the gaps of its reports.
    private(set) var history = SignalHistory()
    private var words: String

    /// The difference from the average, in dB, at which that strength follows.
    private static let stickiness = 3.0
    /// The difference of the averages, in dB, at which a device comes nearer or goes away.
    private static let slope = 3.0

    init(_ scanResult: ScanResult) {
        self.scanResult = scanResult
        (began, formerCount) = (scanResult.lastSeen, scanResult.count - 1)
        name = scanResult.shownName
        contents = DeviceData(scanResult)
        data = contents.text
        words = ""
        measure()
        describe()
    }

    mutating func take(_ newest: ScanResult) {
        let isNews =
            scanResult.advertisement?.advertisingData != newest.advertisement?.advertisingData
            || scanResult.scanResponse?.advertisingData != newest.scanResponse?.advertisingData
            || scanResult.isConnectable != newest.isConnectable
        if let data = scanResult.advertisement?.advertisingData, data != newest.advertisement?.advertisingData {
            former.advertisement = data
        }
        if let data = scanResult.scanResponse?.advertisingData, data != newest.scanResponse?.advertisingData {
            former.scanResponse = data
        }
        if newest.firstSeen != scanResult.firstSeen {
            // The scan has forgotten the device meanwhile, and its count begins again.
            (began, formerCount) = (newest.lastSeen, newest.count - 1)
            range = nil
            measured = (0, 0)
        }
        scanResult = newest
        measure()
        guard isNews else { return contents.repeated(at: newest.lastSeen) }
        name = newest.shownName
        contents.take(newest)
        data = contents.text
        describe()
    }

    /// The smoothed strength in dBm.
    var strength: Int? { scanResult.averageRSSI.map { Int($0.rounded()) } }

    /// The mean strength of the row in dBm. The smoothed one is that of the scan, and need not be in the range.
    var average: Int? {
        measured.count > 0 ? Int((Double(measured.sum) / Double(measured.count)).rounded()) : nil
    }

    /// The number of reports of the row.
    var count: Int { scanResult.count - formerCount }

    /// The strength that the table shows.
    var shownStrength: Int? { heldStrength ?? strength }

    /// Takes the average over for the order of the table, if it differs enough.
    mutating func holdStrength() {
        guard let average = scanResult.averageRSSI else { return }
        if let heldStrength, abs(average - Double(heldStrength)) < Self.stickiness { return }
        heldStrength = Int(average.rounded())
    }

    /// Takes the average over as it is.
    mutating func settleStrength() { heldStrength = strength }

    var trend: Trend {
        guard let average = scanResult.averageRSSI, let slowStrength else { return .steady }
        if average - slowStrength >= Self.slope { return .rising }
        return slowStrength - average >= Self.slope ? .falling : .steady
    }

    /// Returns whether the table shows the text, in lower case, for the device, or would where it has more room: the
    /// names of measurements.
    func matches(_ text: String) -> Bool {
        words.contains(text) || hasMeasurements && contents.measurements.lowercased().contains(text)
    }

    /// Whether the advertisements have measurements.
    var hasMeasurements: Bool { contents.hasMeasurements }

    /// Returns the time since the last report.
    func silence(at now: BootInstant) -> Duration { max(.zero, now - scanResult.lastSeen) }

    /// Returns a text such as `now`, `38s` or `2min`.
    static func age(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        if seconds < 1 { return "now" }
        return seconds < 60 ? "\(seconds)s" : "\(seconds / 60)min"
    }

    private mutating func measure() {
        history.record(scanResult.rssi, at: scanResult.lastSeen)
        if let rssi = scanResult.rssi {
            range = range.map { min($0.lowerBound, rssi)...max($0.upperBound, rssi) } ?? rssi...rssi
            measured = (measured.sum + Int(rssi), measured.count + 1)
        }
        guard let average = scanResult.averageRSSI else { return }
        slowStrength = slowStrength.map { $0 + (average - $0) / 16 } ?? average
    }

    private mutating func describe() {
        let parts = [name, scanResult.id.peer?.address.description, scanResult.id.peer?.kind.rawValue, data]
        words = parts.compactMap(\.self).joined(separator: "\n").lowercased()
    }
}
