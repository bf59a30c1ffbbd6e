import BLECore

/// Parses recorded advertising events over and over.
///
/// Standard input: the events in hexadecimal, a line with a dot, then orders `VARIANT PASSES`. The answer is
/// `NANOSECONDS CHECKSUM`; the checksum depends on all that was read, so nothing can be optimised away.
enum ParsingBenchmark {
    static func run() {
        // All events in one array, as they are in the buffer that a socket is read into.
        var bytes: [UInt8] = []
        var events: [Range<Int>] = []
        while let line = readLine(), line != "." {
            guard let event = try? Hex.decode(line), event.count > 4 else { continue }
            events.append(bytes.count..<(bytes.count + event.count))
            bytes += event
        }
        while let order = readLine() {
            let words = order.split(separator: " ")
            guard words.count == 2, let passes = Int(words[1]) else { break }
            var sum = 0
            let span = bytes.span
            let time =
                switch words[0] {
                case "walk":
                    nanoseconds {
                        for _ in 0..<passes { for event in events { sum &+= walk(span.extracting(event)) } }
                    }
                default:
                    nanoseconds {
                        for _ in 0..<passes { for event in events { sum &+= fields(span.extracting(event)) } }
                    }
                }
            answer("\(time) \(sum)")
        }
    }

    /// Address, signal strength and every structure in place.
    private static func walk(_ event: Span<UInt8>) -> Int {
        var sum = 0
        _ = AdvertisingReport.parse(subevent: event[3], parameters: event.extracting(4...)) { report in
            sum &+= Int(truncatingIfNeeded: report.address?.rawValue ?? 0) &+ Int(report.rssi ?? 0)
            report.advertisingData.forEachStructure { type, value in
                sum &+= Int(type.rawValue) &+ value.count
            }
        }
        return sum
    }

    /// Address, signal strength and, each in a value of its own, what bluetooth-data-tools gives out: the name, the
    /// services, the data of services and makers, the power.
    private static func fields(_ event: Span<UInt8>) -> Int {
        var sum = 0
        _ = AdvertisingReport.parse(subevent: event[3], parameters: event.extracting(4...)) { report in
            let fields = AdvertisedFields(report)
            sum &+= Int(truncatingIfNeeded: report.address?.rawValue ?? 0) &+ Int(report.rssi ?? 0)
            if let name = fields.name { sum &+= name.text.utf8.count }
            fields.forEachService { sum &+= Int(truncatingIfNeeded: $0.high) }
            fields.forEachServiceData { sum &+= Int(truncatingIfNeeded: $0.high) &+ $1.count }
            fields.forEachManufacturerData { sum &+= Int($0) &+ $1.count }
            sum &+= Int(fields.txPowerLevel ?? 0)
        }
        return sum
    }
}
