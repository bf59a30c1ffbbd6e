import BLECore
import Foundation
import TestSupport
import Testing

/// Packets that other people's devices and programs really sent.
@Suite(.enabled(if: SharedVectors.available(for: "ATTSessionTests")))
struct ATTSessionTests {
    private struct RealSession: Decodable {
        struct Packet: Decodable {
            var milliseconds: Double
            var isSent: Bool
            var channel: Int
            var hex: String

            init(from decoder: any Decoder) throws {
                var fields = try decoder.unkeyedContainer()
                milliseconds = try fields.decode(Double.self)
                isSent = try fields.decode(String.self) == "tx"
                channel = try fields.decode(Int.self)
                hex = try fields.decode(String.self)
            }
        }

        var id: String
        var pdus: [Packet]
    }

    private struct Script: Decodable {
        struct Line: Decodable {
            var c2s: String?
            var s2c: String?
        }

        private enum CodingKeys: String, CodingKey {
            case name = "case"
            case setup
            case script
        }

        var name: String
        var lines: [Line]

        init(from decoder: any Decoder) throws {
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            name = try fields.decode(String.self, forKey: .name)
            // A setup can also be the name of one that is kept elsewhere.
            let setup = try? fields.decode([Line].self, forKey: .setup)
            lines = try (setup ?? []) + (fields.decodeIfPresent([Line].self, forKey: .script) ?? [])
        }
    }

    /// A test of how servers treat a command that does not exist.
    private static let expected: Set = ["robustness/unkown-command ff00: unknown opcode 0xff"]

    /// What is wrong with a packet: it does not decode, or decodes to something else than it was.
    private func complaint(about hex: String) throws -> String? {
        let bytes = try Hex.decode(hex)
        do {
            let packet = try ATTPacket(bytes)
            if case .unknown(let opcode, _) = packet { return "unknown opcode \(opcode)" }
            return packet.bytes == bytes ? nil : "encodes to \(Hex.encode(packet.bytes))"
        } catch {
            return "\(error)"
        }
    }

    @Test func realSessionsDecodeAndEncodeToTheSameBytes() throws {
        var count = 0
        var complaints: [String: Int] = [:]
        for session in try SharedVectors.lines("gatt/real_sessions.jsonl", as: RealSession.self) {
            for packet in session.pdus where packet.channel == 4 {
                count += 1
                if let complaint = try complaint(about: packet.hex) {
                    complaints["\(packet.hex): \(complaint)", default: 0] += 1
                }
            }
        }
        #expect(count > 10_000)
        #expect(complaints.isEmpty, "\(complaints)")
    }

    @Test(arguments: ["gatt/profile_sessions.jsonl", "gatt/server_exchanges.jsonl", "gatt/client_cases.jsonl"])
    func scriptsDecodeAndEncodeToTheSameBytes(file: String) throws {
        var count = 0
        var complaints: [String: Int] = [:]
        for script in try SharedVectors.lines(file, as: Script.self) {
            for hex in script.lines.flatMap({ [$0.c2s, $0.s2c] }).compactMap(\.self) where !hex.isEmpty {
                count += 1
                if let complaint = try complaint(about: hex) {
                    complaints["\(script.name) \(hex): \(complaint)", default: 0] += 1
                }
            }
        }
        #expect(count > 50)
        #expect(Set(complaints.keys).subtracting(Self.expected).isEmpty, "\(complaints)")
    }

    /// With each recorded client, the queue would have found the same responses, without a stray.
    @Test func theQueueFindsTheResponsesOfRealSessions() throws {
        var answered = 0
        for session in try SharedVectors.lines("gatt/real_sessions.jsonl", as: RealSession.self) {
            let packets = session.pdus.filter { $0.channel == 4 }
            // A recording may begin in the middle; what was agreed before is not known then.
            let hasExchange = packets.contains { $0.hex.hasPrefix("03") }
            let link = QueueOwner(mtu: hasExchange ? 23 : 517)
            let start = link.now
            var pending: RequestID?
            for packet in packets {
                link.now = start + .microseconds(Int64(packet.milliseconds * 1_000))
                guard let opcode = UInt8(packet.hex.prefix(2), radix: 16).map(ATTOpcode.init) else { continue }
                if packet.isSent {
                    guard opcode.isRequest || opcode.isCommand else { continue }
                    let id = link.enqueue(packet.hex)
                    if opcode.isRequest { pending = id }
                } else {
                    link.receive(packet.hex)
                    if opcode.isResponse, let id = pending {
                        answered += 1
                        let expected = opcode == .errorResponse ? "refused \(packet.hex.suffix(2))" : packet.hex
                        #expect(link.result(id) == expected, "\(session.id)")
                        pending = nil
                    }
                }
            }
            #expect(link.closed == nil, "\(session.id)")
            #expect(link.wrongs.isEmpty, "\(session.id)")
            let dropped = link.statistics.unexplainedResponses + link.statistics.oversizedValues
            #expect(dropped == 0, "\(session.id) \(link.statistics)")
        }
        #expect(answered > 1_000)
    }
}
