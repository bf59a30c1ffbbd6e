import BLECapture
import BLECore
import Foundation
import TestSupport
import Testing

/// Everything that real controllers said in the recorded captures, through the real parsers and machines.
@Suite("Recorded HCI traffic", .enabled(if: SharedVectors.available(for: "Recorded HCI traffic")))
struct HCIReplayTests {
    static let captures = CaptureIndexEntry.all.filter { $0.level == "hci" && !$0.file.hasSuffix(".pklg") }

    @Test("Every event is read, and says what was asked", arguments: captures)
    func eventsAreRead(_ entry: CaptureIndexEntry) throws {
        var queue = HCICommandQueue()
        var table = DeviceTable()
        var assembler = ReportAssembler()
        var gate = ScanGate(.balanced)
        var answered = 0
        var reports = 0
        var commands = 0
        for packet in ReadCapture(try entry.bytes).packets where packet.missingByteCount == 0 {
            let now = BootInstant(nanoseconds: packet.timestamp.saturatedNanoseconds)
            switch packet.kind {
            case .command:
                let command = try HCICommandPacket(packet.bytes.span)
                #expect(Array(command.bytes.dropFirst()) == packet.bytes)
                commands += 1
                _ = queue.timePassed(now)
                _ = queue.enqueue(command, at: now)
            case .event:
                switch try HCIEvent(packet.bytes.span) {
                case .commandComplete(let complete):
                    answered += finished(queue.received(complete, at: now))
                case .commandStatus(let status):
                    answered += finished(queue.received(status, at: now))
                case .advertisingReports(let batch):
                    reports += batch.reports.count
                    for report in batch.reports {
                        guard let whole = assembler.received(report, at: now) else { continue }
                        guard let outcome = table.record(whole, at: now) else { continue }
                        _ = gate.admit(table[outcome.place], outcome.change, at: now, listened: .zero)
                    }
                case .disconnectionComplete, .encryptionChange, .encryptionKeyRefresh, .readRemoteVersionComplete,
                    .hardwareError, .numberOfCompletedPackets, .connectionComplete, .connectionUpdateComplete,
                    .remoteFeaturesComplete, .dataLengthChange, .phyUpdateComplete, .advertisingSetTerminated,
                    .scanRequestReceived, .emptyMeta, .unknownMeta, .unknown:
                    continue
                }
            case .asynchronousData, .synchronousData, .isochronousData, .note:
                continue
            }
        }
        let events = ["0x02", "0x0b", "0x0d"].reduce(0) { $0 + (entry.tshark.subevents?[$1] ?? 0) }
        // These captures carry one report an event; some phones log the events of commands from before the log began.
        #expect(reports >= events - 1 && gate.count <= table.count)
        #expect(answered <= commands && (commands == 0 || answered > 0))
    }

    private func finished(_ actions: [HCICommandQueue.Action]) -> Int {
        actions.reduce(0) { count, action in
            if case .finish = action { return count + 1 }
            return count
        }
    }
}
