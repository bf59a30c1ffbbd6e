import BLECapture
import BLECore
import Foundation
import TestSupport

/// A capture of advertisements that a test constructs, as `btmon -w` would have written it.
struct AirCapture {
    private let writer = BTSnoopWriter()
    private var records: [[UInt8]] = []
    private var time: Duration

    /// Begins on 2026-11-21 08:00:00 UTC; each advertisement follows the previous one after 10 ms.
    init() {
        time = .seconds(1_795_248_000)
    }

    /// Adds an LE Advertising Report event: connectable advertisement 0, not connectable 3, scan response 4.
    ///
    /// The layout is that of Core Vol 4 Part E, 7.7.65.2.
    mutating func add(
        _ payload: String, from address: String, isRandom: Bool = false, type: UInt8 = 3, rssi: Int8 = -60
    ) {
        let (payload, address) = (Self.bytes(payload), Self.bytes(address.replacing(":", with: "")))
        let report = [type, isRandom ? 1 : 0] + address.reversed() + [UInt8(payload.count)] + payload
        let parameters = [0x02, 0x01] + report + [UInt8(bitPattern: rssi)]
        add(.received, .event, [0x3E, UInt8(parameters.count)] + parameters)
    }

    /// Adds an ATT packet that the host sends on a link that has begun before, by its connection handle.
    ///
    /// The layouts are those of Core Vol 4 Part E, 5.4.2, and Vol 3 Part A, 3.1.
    mutating func send(_ pdu: String, on handle: UInt8 = 0x40) {
        let pdu = Self.bytes(pdu)
        let frame = [UInt8(pdu.count), 0, 0x04, 0x00] + pdu
        add(.sent, .asynchronousData, [handle, 0x00, UInt8(frame.count), 0] + frame)
    }

    private mutating func add(_ direction: CapturedPacket.Direction, _ kind: CapturedPacket.Kind, _ bytes: [UInt8]) {
        let packet = CapturedPacket(direction: direction, kind: kind, bytes: bytes, timestamp: time)
        records.append(writer.record(packet) ?? [])
        time += .milliseconds(10)
    }

    func write(to path: String) throws {
        try Data(writer.header + records.flatMap(\.self)).write(to: URL(filePath: path))
    }

    static func bytes(_ digits: String) -> [UInt8] {
        var digits = digits[...]
        var bytes: [UInt8] = []
        while let byte = UInt8(digits.prefix(2), radix: 16) {
            bytes.append(byte)
            digits = digits.dropFirst(2)
        }
        return bytes
    }
}

/// The files that the repository ships.
enum Fixtures {
    static let folder = RepositoryFiles.root.appending(path: "Fixtures")
    static let threeDevices = folder.appending(path: "hci/three-devices.btsnoop").path

    /// Returns the advertisements that other decoders, each named there, have decoded: payload, kind, fields.
    static func meanings(by decoder: String) throws -> [(payload: String, kind: String, fields: [String: String])] {
        var isWanted = false
        var found: [(payload: String, kind: String, fields: [String: String])] = []
        for line in try String(contentsOf: folder.appending(path: "adv/meanings.txt"), encoding: .utf8).split(
            separator: "\n")
        {
            if line.hasPrefix("#") {
                isWanted = line.hasPrefix("# \(decoder)")
                continue
            }
            let parts = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard isWanted, parts.count >= 2 else { continue }
            var fields: [String: String] = [:]
            for field in parts.dropFirst(2).joined().components(separatedBy: ", ") where field.contains("=") {
                let pair = field.split(separator: "=")
                fields[String(pair[0])] = String(pair[1])
            }
            found.append((parts[0], parts[1], fields))
        }
        return found
    }
}
