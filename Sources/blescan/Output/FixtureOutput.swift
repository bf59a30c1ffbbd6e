import BLECore
import BLELinux
import BareBLETestKit
import Glibc

/// The output of `replay --as-fixture`: a dialogue for each link, and a line about it.
struct FixtureOutput {
    let path: String
    let name: String
    let json: Bool

    func run() throws {
        var capture = CapturedLinks(source: path)
        var dialogue: RecordedLink?
        let warning = try Recording.read(path) { packet in
            capture.received(packet)
        } dialogue: {
            dialogue = RecordedLink($0, source: path)
        }
        let links = (dialogue.map { [$0] } ?? capture.links).filter { $0.packetCount > 0 }
        guard !links.isEmpty else {
            throw Failure(
                message: "\(path) has no ATT packets of a link that its host has made",
                hint: "`blescan replay \(InputFile.word(path))` prints what it has.", status: .notFound)
        }
        if let warning { Console.warn("\(warning) The last link may lack its end.") }
        let base = name.hasSuffix(".dialogue") ? String(name.dropLast(".dialogue".count)) : name
        for (index, link) in links.enumerated() {
            let file = base + (index == 0 ? "" : "-\(index + 1)") + ".dialogue"
            let title = file.split(separator: "/").last?.dropLast(".dialogue".count).description ?? base
            try write(link.fixture(named: title), to: file)
            show(link, in: file)
        }
    }

    private func write(_ dialogue: Dialogue, to file: String) throws(Failure) {
        let bytes = Array(dialogue.text.utf8)
        do throws(SystemCallError) {
            let appended = try AppendedFile(file, isReplacing: false)
            do throws(SystemCallError) {
                try appended.append(bytes)
            } catch {
                // A part of a dialogue is none, and would only prevent the next attempt.
                appended.remove(ifAtMost: bytes.count)
                throw error
            }
        } catch {
            guard error.errno != EEXIST else {
                throw Failure(
                    message: "\(file) already exists, and --as-fixture never overwrites",
                    hint: "Choose another name.", status: .usage)
            }
            throw Failure(cannot: "write", file, for: .writing, errno: error.errno)
        }
    }

    private func show(_ link: RecordedLink, in file: String) {
        if !link.isWhole {
            Console.warn("the link in \(file) began before the capture; add \"mtu: N\" on top if it was not 23")
        }
        guard json else {
            let peer = link.peer.map { " with \($0)" } ?? ""
            return Console.out("\(file)  \(link.packetCount.counted("packet"))\(peer)".printable)
        }
        Console.out(
            JSONLine.object([
                "v": 1, "file": .string(file), "packets": .integer(link.packetCount),
                "peer": link.peer.map { .string("\($0)") }, "whole": .bool(link.isWhole),
            ]).text)
    }
}
