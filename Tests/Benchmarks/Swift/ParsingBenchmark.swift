import BLECore

/// Parses recorded advertising events over and over.
///
/// Standard input: the events in hexadecimal, a line with a dot, then orders `VARIANT PASSES`. The answer is
/// `NANOSECONDS CHECKSUM`; the checksum depends on all that was read, so nothing can be optimised away, and it is the
/// same for every implementation that reads the same.
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
            let time: Int
            switch words[0] {
            case "walk": time = nanoseconds { for _ in 0..<passes { for event in events { sum &+= walk(event) } } }
            default: return
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
}
