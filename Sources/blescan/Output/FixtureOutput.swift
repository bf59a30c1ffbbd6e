import BLECore
import BLELinux
import BareBLETestKit
import Glibc

/// What `replay --as-fixture` writes: a dialogue for each link, and a line about it.
struct FixtureOutput {
    let path: String
    let name: String
    let json: Bool

    func run() throws {
        // Who may not read it, or has a damaged or a cut one, is told what `replay` tells.
        let warning = try Recording.read(path) { _ in
        } dialogue: { _ in
        }
        let links: [RecordedLink]
        do throws(ReplayError) {
            links = try RecordedLink.links(in: path).filter { $0.packetCount > 0 }
        } catch {
            throw Failure(
                message: "\(error). Name a capture or a dialogue that `blescan replay` prints.", status: .badData)
        }
        guard !links.isEmpty else {
            throw Failure(message: "\(path) has no ATT packets of a link that its host has made.", status: .notFound)
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
        do throws(SystemCallError) {
            try AppendedFile(file, isReplacing: false).append(Array(dialogue.text.utf8))
        } catch {
            guard error.errno != EEXIST else {
                throw Failure(
                    message: "\(file) is there already, and --as-fixture replaces nothing. Choose another name.",
                    status: .usage)
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
            return Console.out("\(file)  \(link.packetCount.counted("packet"))\(peer)")
        }
        Console.out(
            JSONLine.object([
                "v": 1, "file": .string(file), "packets": .integer(link.packetCount),
                "peer": link.peer.map { .string("\($0)") }, "whole": .bool(link.isWhole),
            ]).text)
    }
}
