import BLECapture
import BLECore

/// The output of `replay --check`: one line if everything is consistent, otherwise the first packet that is not.
struct CheckOutput {
    let path: String
    let json: Bool

    func run() throws {
        let name = InputFile.name(of: path)
        var check = CaptureCheck()
        var isDialogue = false
        var finding: CaptureCheck.Finding?
        // Its number in the output of `replay`, which counts the steps of a dialogue and not its lines.
        var shownNumber = 0
        let warning = try Recording.read(path) { packet in
            guard finding == nil else { return }
            shownNumber += 1
            finding = check.received(packet)
        } dialogue: { dialogue in
            guard !dialogue.isServed else {
                throw Failure(
                    message: "\(name) was recorded by a server, such as `blescan serve`, and --check checks clients",
                    hint: "Check a recording of the client; `blescan replay \(InputFile.word(path))` prints this one.",
                    status: .notFound)
            }
            isDialogue = true
            check = CaptureCheck(dialogue)
            for step in dialogue.steps where finding == nil {
                shownNumber += 1
                finding = check.received(step)
            }
        }
        if let warning { Console.warn(warning) }
        let place = { (number: Int) in "\(isDialogue ? "line" : "packet") \(number)" }
        guard let finding else {
            guard check.packetCount > 0 else {
                throw Failure(
                    message: "\(name) has no ATT packets of a link that its host has made",
                    hint: "`blescan replay \(InputFile.word(path))` prints what it has.", status: .notFound)
            }
            return show(check, place)
        }
        let reason = finding.disagreement.reason.sentence(place)
        if json { Console.out(Self.object(check, finding, reason).text) }
        let packet = place(finding.disagreement.number) + (finding.peer.map { ", \($0)" } ?? "")
        throw Failure(
            message: "\(name), \(packet): \(Self.text(of: finding.disagreement)). \(reason)",
            hint: "`blescan replay \(InputFile.word(path)) --only att` shows it as #\(shownNumber), "
                + "and what led to it.",
            status: .refused)
    }

    private func show(_ check: CaptureCheck, _ place: (Int) -> String) {
        if let (first, count) = check.unanswered {
            Console.warn(
                "no response came to \(count.counted("request")), first to that of \(place(first)): the link, or the "
                    + "recording, ends before it.")
        }
        if json { return Console.out(Self.object(check, nil, nil).text) }
        let counts = [
            check.linkCount.counted("link"), check.packetCount.counted("ATT packet"),
            check.requestCount.counted("request"),
        ]
        Console.out(counts.joined(separator: ", ") + ": no disagreement")
    }

    private static func object(
        _ check: CaptureCheck, _ finding: CaptureCheck.Finding?, _ reason: String?
    ) -> JSONLine {
        .object([
            "v": 1, "agrees": .bool(finding == nil), "links": .integer(check.linkCount),
            "packets": .integer(check.packetCount), "requests": .integer(check.requestCount),
            "unanswered": .integer(check.unanswered?.count ?? 0),
            "n": finding.map { .integer($0.disagreement.number) },
            "peer": finding?.peer.map { .string("\($0)") },
            "direction": finding.map { $0.disagreement.isSent ? "sent" : "received" },
            "hex": finding.map { .string(Hex.encode($0.disagreement.packet)) },
            "reason": reason.map { .string($0) },
        ])
    }

    /// Returns the packet by name and in bytes.
    private static func text(of disagreement: SessionCheck.Disagreement) -> String {
        var printer = PacketPrinter()
        let step: Dialogue.Event =
            disagreement.isSent ? .sent(disagreement.packet) : .received(disagreement.packet)
        let title = printer.print(Dialogue.Step(step)).title
        return "\(disagreement.isSent ? "<" : ">") \(title) [\(Hex.encode(disagreement.packet))]"
    }
}

extension Dialogue {
    /// Whether the recorded program was the server alone. A trace has no header that indicates it, but its packets do.
    fileprivate var isServed: Bool {
        if RecordedLink(self).isServed { return true }
        let directions = steps.compactMap { step -> Bool? in
            switch step.event {
            case .sent(let pdu): return Self.isOfClient(pdu)
            case .received(let pdu): return !Self.isOfClient(pdu)
            case .wait, .linkLost: return nil
            }
        }
        return !directions.isEmpty && !directions.contains(true)
    }

    /// Returns whether a client sends packets of this kind, and not a server.
    private static func isOfClient(_ pdu: [UInt8]) -> Bool {
        switch ATTOpcode(rawValue: pdu.first ?? 0).kind {
        case .request, .command, .confirmation: true
        case .response, .notification, .indication: false
        }
    }
}
