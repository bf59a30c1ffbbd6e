import BLECapture
import BLECore
import Foundation
import TestSupport
import Testing

/// The recorded captures beside the checkout, with what tshark 4.0.17 counted in each.
struct CaptureIndexEntry: Decodable, CustomTestStringConvertible {
    struct Counts: Decodable {
        var packets: Int
        var kinds: [String: Int]?
        var subevents: [String: Int]?
        var attributes: [String: Int]?

        enum CodingKeys: String, CodingKey {
            case packets
            case kinds = "hci_packet_types"
            case subevents = "le_meta_subevents"
            case attributes = "att_opcodes"
        }
    }

    var file: String
    var level: String
    var encapsulation: String
    var tshark: Counts

    var testDescription: String { file }

    var bytes: [UInt8] {
        get throws { [UInt8](try SharedVectors.data("captures/\(file)")) }
    }

    static let all: [CaptureIndexEntry] = {
        guard let data = try? SharedVectors.data("captures/index.json") else { return [] }
        return (try? JSONDecoder().decode([CaptureIndexEntry].self, from: data)) ?? []
    }()
}

/// What a capture holds, and how reading it ended.
struct ReadCapture {
    var packets: [CapturedPacket] = []
    var error: CaptureError?

    init(_ bytes: [UInt8], chunk: Int = 65536) {
        var reader = CaptureReader()
        do throws(CaptureError) {
            for start in stride(from: 0, to: bytes.count, by: chunk) {
                reader.append(Array(bytes[start..<min(start + chunk, bytes.count)]))
                while let packet = try reader.next() { packets.append(packet) }
            }
            try reader.finish()
        } catch {
            self.error = error
        }
    }
}
