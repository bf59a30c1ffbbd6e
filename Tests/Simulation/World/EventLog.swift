import BLECore

/// Everything that happened, as one number; the lines themselves are kept only on request.
struct EventLog {
    /// FNV-1a over all that was said, with the times.
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private(set) var count = 0
    private(set) var lines: [String] = []
    let keepsLines: Bool

    mutating func add(_ time: BootInstant, _ kind: Character, _ subject: String, _ bytes: [UInt8]) {
        mix(UInt64(bitPattern: time.nanoseconds))
        for byte in String(kind).utf8 { mix(byte) }
        for byte in subject.utf8 { mix(byte) }
        for byte in bytes { mix(byte) }
        count += 1
        if keepsLines { lines.append("\(Self.text(time)) \(kind) \(subject) \(Hex.encode(bytes))") }
    }

    mutating func add(_ time: BootInstant, _ kind: Character, _ text: String) {
        mix(UInt64(bitPattern: time.nanoseconds))
        for byte in String(kind).utf8 { mix(byte) }
        for byte in text.utf8 { mix(byte) }
        count += 1
        if keepsLines { lines.append("\(Self.text(time)) \(kind) \(text)") }
    }

    private mutating func mix(_ number: UInt64) {
        for shift in stride(from: UInt64(0), to: 64, by: 8) { mix(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    private mutating func mix(_ byte: UInt8) {
        hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
    }

    private static func text(_ time: BootInstant) -> String {
        let digits = String(time.nanoseconds / 1000 % 1_000_000)
        return "\(time.nanoseconds / 1_000_000_000)." + String(repeating: "0", count: 6 - digits.count) + digits
    }
}

/// The number of times that each event happened, over one run or many: a run without an event has shown nothing about
/// it.
struct EventCounts {
    private(set) var counts: [String: Int] = [:]

    mutating func add(_ name: String, _ count: Int = 1) {
        counts[name, default: 0] += count
    }

    mutating func add(_ others: EventCounts) {
        counts.merge(others.counts, uniquingKeysWith: +)
    }
}
