import BLECore

/// Parses recorded advertising events over and over.
///
/// Standard input: the events in hexadecimal, a line with a dot, then orders `VARIANT PASSES`. The answer is
/// `NANOSECONDS CHECKSUM`; the checksum depends on all that was read, so nothing can be optimised away.
enum ParsingBenchmark {
    static func run() {
        var events: [[UInt8]] = []
        while let line = readLine(), line != "." {
            if let event = try? Hex.decode(line) { events.append(event) }
        }
        while let order = readLine() {
            let words = order.split(separator: " ")
            guard words.count == 2, let passes = Int(words[1]) else { break }
            var sum = 0
            let time =
                switch words[0] {
                case "walk": nanoseconds { for _ in 0..<passes { for event in events { sum &+= walk(event) } } }
                default: nanoseconds { for _ in 0..<passes { for event in events { sum &+= fields(event) } } }
                }
            answer("\(time) \(sum)")
        }
    }

    /// Address, signal strength and every structure in place.
    private static func walk(_ event: [UInt8]) -> Int {
        guard event.count > 4 else { return 0 }
        var sum = 0
        _ = AdvertisingReport.parse(subevent: event[3], parameters: event.span.extracting(4...)) { report in
            sum &+= Int(truncatingIfNeeded: report.address?.rawValue ?? 0) &+ Int(report.rssi ?? 0)
            report.advertisingData.forEachStructure { type, value in
                sum &+= Int(type.rawValue) &+ value.count
            }
        }
        return sum
    }

    /// Address, signal strength and, each in a value of its own, what bluetooth-data-tools gives out: the name, the
    /// services, the data of services and makers, the power.
    private static func fields(_ event: [UInt8]) -> Int {
        guard event.count > 4 else { return 0 }
        var sum = 0
        _ = AdvertisingReport.parse(subevent: event[3], parameters: event.span.extracting(4...)) { report in
            let data = report.advertisingData
            sum &+= Int(truncatingIfNeeded: report.address?.rawValue ?? 0) &+ Int(report.rssi ?? 0)
            sum &+= data.name?.text.utf8.count ?? 0
            sum &+= data.serviceUUIDs.count &+ data.serviceData.count &+ data.manufacturerData.count
            sum &+= Int(data.txPowerLevel ?? 0)
        }
        return sum
    }
}
