import BLECore
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// Captures that other hosts have made, as recordings. Origin: shared/vectors/captures, whose index counts ATT packets
/// with tshark.
@Suite(
    "Recorded links", .enabled(if: SharedVectors.available(for: "Recorded links")), .timeLimit(.minutes(10)))
struct RecordedLinkTests {
    private struct Entry: Decodable {
        struct Counts: Decodable {
            let attOpcodes: [String: Int]?
        }

        let file: String
        let size: Int
        let tshark: Counts
    }

    private static let captures: [Entry] = {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let entries = try? decoder.decode([Entry].self, from: SharedVectors.data("captures/index.json"))
        return (entries ?? []).filter { $0.file.hasSuffix(".btsnoop") && $0.size < 400_000 }
    }()

    private func path(_ entry: Entry) throws -> String {
        try #require(SharedVectors.root).appending(path: "captures/\(entry.file)").path
    }

    @Test("Each link plays through for a client that does what was recorded")
    func eachLinkIsPlayedForAClientThatDoesWhatWasRecorded() async throws {
        var played = 0
        for entry in Self.captures {
            let links = try RecordedLink.links(in: path(entry))
            let packets = links.map { link in link.dialogue.steps.count { $0.event.isPacket } }.reduce(0, +)
            // Links in which the host was the peripheral are left out.
            #expect(packets <= entry.tshark.attOpcodes?.values.reduce(0, +) ?? 0, "\(entry.file)")
            played += packets
            let replay = Replay(links)
            for link in links {
                var client = RawClient(try await replay.connect())
                for step in link.dialogue.steps {
                    switch step.event {
                    case .sent(let pdu): client.send(Hex.encode(pdu))
                    case .received(let pdu): #expect(client.next() == Hex.encode(pdu), "\(entry.file) \(step.line)")
                    case .linkLost: #expect(client.next() == "end")
                    case .wait: continue
                    }
                }
            }
            try await replay.finish()
        }
        #expect(played > 1000)
    }

    @Test("A damaged capture is read as far as it goes, or refused")
    func aDamagedCaptureIsReadAsFarAsItGoesOrRefused() throws {
        let entry = try #require(Self.captures.min { $0.size < $1.size })
        let whole = [UInt8](try SharedVectors.data("captures/\(entry.file)").prefix(6000))
        let folder = try Folder()
        let file = folder["damaged"]
        for step in 0..<400 {
            var bytes = whole
            if step % 2 == 0 { bytes = Array(bytes.prefix(step * 7)) } else { bytes[step * 13 % bytes.count] ^= 0x55 }
            try Data(bytes).write(to: URL(filePath: file))
            do throws(UnreadableRecording) {
                _ = try RecordedLink.links(in: file)
            } catch {
                #expect(error.path == file)
            }
        }
    }
}
