import BLECapture
import BLECore
import BLELinux
import BLEProfiles
import Dispatch

/// `blescan replay FILE --screen`: the advertisements of a recording in the live table, at the recorded speed, and what
/// it has of links.
struct ReplayScreen {
    let path: String
    let speed: Double
    let look: ScreenLook
    /// Whether addresses and names are masked.
    let redacts: Bool

    /// The end of the file.
    private enum End {
        case whole
        case cutOff
        /// The part before was shown.
        case damaged(Failure)

        /// The text for the heading, and its short form.
        var words: (mode: String, brief: String) {
            switch self {
            case .whole: ("end of the recording", "ended")
            case .cutOff: ("end of the recording, which is cut off", "cut off")
            case .damaged: ("end: damaged from here on", "damaged")
            }
        }
    }

    /// Shows them until the user quits; the last state stays when the file is at its end, or cannot be read any
    /// further.
    ///
    /// - Throws: The file's defect, after the terminal has been restored.
    func run() async throws {
        let pace = ReplayPace(speed)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let mode = speed == 1 ? "recording" : "recording ×\(Self.number(speed))"
        let table = ScanScreen(.init(source: name, address: nil, mode: mode), look)
        let (path, redacts) = (path, redacts)
        let failure = Lock<Failure?>(nil)
        let links: ScanBrowser.Links =
            redacts ? .unavailable("--redact masks the addresses; replay without it to see recorded links") : .recorded
        let last = try await LiveScreen.during(ScanBrowser(table, links)) {
            pace.now()
        } _: { live in
            let end = try await withTaskCancellationHandler {
                try await Self.play(path, redacts, pace, live)
            } onCancel: {
                pace.stop()
            }
            if Task.isCancelled { return }
            pace.end()
            if case .damaged(let damage) = end { failure.withLock { $0 = damage } }
            let (mode, brief) = end.words
            live.change { $0.finish(mode, brief: brief, at: pace.now()) }
            // Until the user quits.
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            for await _ in stream {}
            continuation.finish()
        }.table
        Console.note("blescan: " + last.closing(after: pace.elapsed))
        if let failure = failure.withLock({ $0 }) { throw failure }
    }

    /// Reads the file in a thread of its own, which waits until each report is due; returns how the file ended.
    private static func play(
        _ path: String, _ redacts: Bool, _ pace: ReplayPace, _ live: LiveScreen<ScanBrowser>
    ) async throws -> End {
        try await withCheckedThrowingContinuation { ended in
            DispatchQueue(label: "replay").async {
                ended.resume(with: Result { try read(path, redacts, pace, live) })
            }
        }
    }

    private static func read(
        _ path: String, _ redacts: Bool, _ pace: ReplayPace, _ live: LiveScreen<ScanBrowser>
    ) throws -> End {
        var printer = PacketPrinter()
        var assembler = ReportAssembler()
        var table = DeviceTable()
        var redaction = redacts ? AdvertisementRedaction() : nil
        var links = AttributeTraffic()
        var peers: [Int: PeerID] = [:]
        var (isEmpty, hasAdvertisements) = (true, false)
        // Without advertisements there is no row to choose a link in: the first one is shown at once.
        func show(_ pdu: [UInt8], isSent: Bool, ofLinkWith peer: PeerID?, at now: BootInstant) {
            let isFirst = isEmpty && !hasAdvertisements
            isEmpty = false
            guard !redacts else { return }
            live.change { screen in
                screen.take(pdu, isSent: isSent, ofLinkWith: peer, at: now)
                if isFirst { screen.showRecorded(peer, name: nil, at: now) }
            }
        }
        do {
            let warning = try Recording.read(path) { packet in
                for occurrence in links.received(packet) {
                    switch occurrence.event {
                    case .began(let peer, _): peers[occurrence.link] = peer
                    case .packet(let pdu, let isSent):
                        // The clock is that of the advertisements, if there are any.
                        let due = hasAdvertisements ? pace.now() : pace.wait(until: packet.timestamp)
                        guard let now = due else { throw CancellationError() }
                        show(pdu, isSent: isSent, ofLinkWith: peers[occurrence.link], at: now)
                    case .ended: peers[occurrence.link] = nil
                    }
                }
                for fragment in printer.print(packet).reports {
                    (isEmpty, hasAdvertisements) = (false, true)
                    guard let now = pace.wait(until: packet.timestamp) else { throw CancellationError() }
                    guard let report = assembler.received(fragment, at: now) else { continue }
                    guard let outcome = table.record(report, at: now) else { continue }
                    let scanResult = redaction?.redacted(table[outcome.place]) ?? table[outcome.place]
                    let evicted = outcome.evicted.map { redaction?.redacted($0) ?? $0 }
                    live.change { screen in
                        for gone in evicted { screen.remove(gone.id) }
                        screen.take(scanResult)
                    }
                }
            } dialogue: { dialogue in
                let peer = RecordedLink(dialogue).peer
                var time = Duration.zero
                for step in dialogue.steps {
                    switch step.event {
                    case .wait(let pause): time += pause
                    case .linkLost: continue
                    case .sent(let pdu), .received(let pdu):
                        guard let now = pace.wait(until: time) else { throw CancellationError() }
                        var isSent = false
                        if case .sent = step.event { isSent = true }
                        show(pdu, isSent: isSent, ofLinkWith: peer, at: now)
                    }
                }
            }
            if isEmpty {
                throw Failure(message: "\(path) has no advertisements, and no links of its host", status: .notFound)
            }
            return warning == nil ? .whole : .cutOff
        } catch is CancellationError {
            return .whole
        } catch let failure as Failure where !isEmpty {
            return .damaged(failure)
        }
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value))" : "\(value)"
    }
}
