// Plays a recording on the live table.
//
// Duties: reads the file on the thread of its caller, waits until each report is due, and changes the screen then.
// After a seek back the file is read again, into a screen of its own that takes the place of the shown one once it has
// got to the time that was sought; the shown one stands meanwhile.
//
// Invariants
// - `earlier` is the screen that is being changed, while there is one; else that is the shown one.
// - No advertisement is shown before it is due. In a capture with advertisements, packets of links have the time of the
//   advertisement before.
// - A defect of the file ends the recording after everything before it was shown; without anything before it is an
//   error.
// - Only the thread of `run` uses it. The shown screen is changed by the closure that the player was given.

import BLECapture
import BLECore
import BLEProfiles
import Glibc

/// The reader of a recording that is shown in the live table.
final class RecordingPlayer {
    /// The reason that the file is not read on.
    private enum Interruption: Error {
        /// It is to be read again.
        case restart
        /// The user has quit.
        case over
    }

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

    private let path: String
    private let redacts: Bool
    private let pace: ReplayPace
    private let blank: ScanBrowser
    private let changeShown: ((inout ScanBrowser) -> Void) -> Void
    /// The screen of the recording as far as it has been read again; `nil` while that is the one that is shown.
    private var earlier: ScanBrowser?
    /// The time of the newest report that has been read; `nil` before the first one.
    private var reached: BootInstant?

    /// Creates a reader.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - redacts: Whether addresses and names are masked.
    ///   - pace: The clock of the recording.
    ///   - blank: The screen before the first report.
    ///   - change: Changes the screen that is shown.
    init(
        _ path: String, redacts: Bool, _ pace: ReplayPace, blank: ScanBrowser,
        change: @escaping ((inout ScanBrowser) -> Void) -> Void
    ) {
        self.path = path
        self.redacts = redacts
        self.pace = pace
        self.blank = blank
        changeShown = change
    }

    /// Plays the recording until the user quits.
    ///
    /// - Parameter report: Called with the defect at which the file ends, when that is met.
    /// - Throws: The file's defect if there is nothing before it.
    func run(reporting report: (Failure) -> Void = { _ in }) throws {
        while true {
            do {
                let end = try read()
                pace.end()
                if case .damaged(let failure) = end { report(failure) }
                showEarlier()
                let (mode, brief) = end.words
                let now = pace.now()
                changeShown { $0.finish(mode, brief: brief, at: now) }
                guard pace.waitAtEnd() == .restart else { return }
            } catch Interruption.restart {
                // As at the end, once the user has sought back.
            } catch Interruption.over {
                return
            }
            earlier = blank
            pace.restart()
        }
    }

    private func read() throws -> End {
        reached = nil
        var printer = PacketPrinter()
        var assembler = ReportAssembler()
        var table = DeviceTable()
        var redaction = redacts ? AdvertisementRedaction() : nil
        var links = AttributeTraffic()
        var peers: [Int: PeerID] = [:]
        var (isEmpty, hasAdvertisements) = (true, false)
        // Without advertisements there is no row to choose a link in: the first one is shown at once.
        func show(_ pdu: [UInt8], isSent: Bool, ofLink number: Int, with peer: PeerID?, at now: BootInstant) {
            let isFirst = isEmpty && !hasAdvertisements
            isEmpty = false
            change { screen in
                screen.take(pdu, isSent: isSent, ofLink: number, with: peer, at: now)
                if isFirst { screen.showRecorded(RecordedLinks.ID(ofLink: number, with: peer)) }
            }
        }
        do {
            let warning = try Recording.read(path) { packet in
                try expectNoInterruption()
                // Nothing in the packets of links can be masked.
                for occurrence in redacts ? [] : links.received(packet) {
                    switch occurrence.event {
                    case .began(let peer, _): peers[occurrence.link] = peer
                    case .packet(let pdu, let isSent):
                        // The clock is that of the advertisements, if there are any.
                        let newest = hasAdvertisements ? reached : nil
                        let now = try newest ?? wait(until: packet.timestamp)
                        show(pdu, isSent: isSent, ofLink: occurrence.link, with: peers[occurrence.link], at: now)
                    case .ended: peers[occurrence.link] = nil
                    }
                }
                for fragment in printer.print(packet).reports {
                    (isEmpty, hasAdvertisements) = (false, true)
                    let now = try wait(until: packet.timestamp)
                    guard let report = assembler.received(fragment, at: now) else { continue }
                    guard let outcome = table.record(report, at: now) else { continue }
                    let isShown = !blank.table.onlySensors || table[outcome.place].hasMeasurement
                    let scanResult = redaction?.redacted(table[outcome.place]) ?? table[outcome.place]
                    let evicted = outcome.evicted.map { redaction?.redacted($0) ?? $0 }
                    change { screen in
                        for gone in evicted { screen.remove(gone.id) }
                        if isShown { screen.take(scanResult) }
                    }
                }
            } dialogue: { dialogue in
                guard !redacts else { return }
                let peer = RecordedLink(dialogue).peer
                var time = Duration.zero
                for step in dialogue.steps {
                    switch step.event {
                    case .wait(let pause): time += pause
                    case .linkLost: continue
                    case .sent(let pdu), .received(let pdu):
                        let now = try wait(until: time)
                        var isSent = false
                        if case .sent = step.event { isSent = true }
                        show(pdu, isSent: isSent, ofLink: 0, with: peer, at: now)
                    }
                }
            }
            if isEmpty {
                throw Failure(
                    message: "\(path) has no advertisements, and "
                        + (redacts ? "--redact shows no links" : "no links of its host"),
                    hint: "`blescan replay \(InputFile.word(path))` prints what it has"
                        + (redacts ? ", with addresses and values in clear." : "."),
                    status: .notFound)
            }
            return warning == nil ? .whole : .cutOff
        } catch let failure as Failure where !isEmpty {
            return .damaged(failure)
        }
    }

    /// Waits until a report is due, and returns its time.
    private func wait(until timestamp: Duration) throws(Interruption) -> BootInstant {
        switch pace.wait(until: timestamp, arrived: showEarlier) {
        case .due(let now):
            if reached == nil {
                let canGoBack = isFile
                change { $0.begin(at: now, canGoBack: canGoBack) }
            }
            reached = now
            return now
        case .restart: throw .restart
        case .over: throw .over
        }
    }

    /// Not every packet is waited for: those of links are shown with the advertisement before.
    private func expectNoInterruption() throws(Interruption) {
        switch pace.interruption {
        case .restart: throw .restart
        case .over: throw .over
        case .due, nil: break
        }
    }

    private func change(_ change: (inout ScanBrowser) -> Void) {
        guard var screen = earlier else { return changeShown(change) }
        // Not a copy of all that it contains.
        earlier = nil
        change(&screen)
        earlier = screen
    }

    /// Shows what was read again, if that has got to the time that was sought.
    private func showEarlier() {
        guard let earlier else { return }
        self.earlier = nil
        let now = pace.now()
        changeShown { $0.show(earlier, at: now) }
    }

    /// Whether the recording can be read again.
    private var isFile: Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }
}
