// Records live sessions to files.
//
// Responsibilities:
// - Receive what a central traces, on its event loop, and return at once: the loop only appends bytes to a queue.
// - Write the queue from a separate task: a btsnoop file for all links, and a dialogue for each.
// - Never disturb the session: a file that cannot be written ends the recording, and the failure is kept in
//   `failure`.
//
// Invariants:
// - The queue is bounded. A recording with gaps would be useless, so an overflow ends it.
// - Only `RecordingFiles` accesses files, in queue order.
// - After a failure, nothing is queued.

internal import BLECore
package import BLELinux
public import BareBLE

/// Records the traffic of a central's links.
///
///     let recorder = try Recorder(btsnoop: "visit.btsnoop", dialogue: "visit.dialogue")
///     var configuration = Configuration()
///     recorder.attach(to: &configuration)
///     …                                               // the session
///     try await recorder.finish()
///
/// The btsnoop file contains all links and opens in Wireshark, `btmon -r` and `blescan replay`; a dialogue is text and
/// contains one link. `Replay` plays both back. The files contain every value exchanged, including secrets, and are
/// readable only by their owner.
public final class Recorder: Sendable {
    /// The maximum number of bytes that wait for the disk.
    public static let capacity = 1 << 20

    let queue = Lock(Queue())
    private let files: RecordingFiles
    private let capacity: Int
    private let isCapturing: Bool
    private let whenFailed: (@Sendable (RecorderError) -> Void)?

    /// The queue of pending writes, with the state to create them.
    struct Queue {
        fileprivate var waiting: [RecordingFiles.Job] = []
        fileprivate var waitingBytes = 0
        var failure: RecorderError?
        var isFinished = false
        fileprivate var isWriting = false
        var links: [Int: Link] = [:]
        var controller = ControllerLinks()
        var linkCount = 0
        var packetCount = 0
        /// The offset from the loop's clock to the time of day.
        var offset: Duration?
    }

    /// An established link.
    struct Link {
        let peer: PeerID?
        let handle: ConnectionHandle
        /// True if the recorder has synthesized its beginning, because the controller had not reported it.
        let isMadeUp: Bool
        var lastTime: BootInstant
    }

    /// Creates the files, truncating existing ones.
    ///
    /// - Parameters:
    ///   - btsnoop: The path of the file for all links, or `nil`.
    ///   - dialogue: The path of the file for the first link, or `nil`; further links get numbered files:
    ///     `visit.dialogue`, `visit-2.dialogue`.
    /// - Throws: `RecorderError.cannotCreate` if a file cannot be created.
    public convenience init(btsnoop: String? = nil, dialogue: String? = nil) throws(RecorderError) {
        try self.init(capture: btsnoop.map { .file($0) }, dialogue: dialogue, capacity: Self.capacity)
    }

    /// Creates a recorder with another queue capacity that may keep existing files, and that reports a failure once,
    /// when it occurs.
    package init(
        capture: Target?, dialogue: String?, capacity: Int = Recorder.capacity, isReplacing: Bool = true,
        whenFailed: (@Sendable (RecorderError) -> Void)? = nil
    ) throws(RecorderError) {
        self.capacity = capacity
        self.whenFailed = whenFailed
        isCapturing = capture != nil
        files = try RecordingFiles(capture: capture, dialogue: dialogue, isReplacing: isReplacing)
    }

    /// The destination of a capture.
    package enum Target: Sendable {
        /// A new btsnoop file.
        case file(String)
        /// A pipe that is read meanwhile, as pcap, and its name in messages.
        case pipe(PipeWriter, String)
    }

    /// Records the centrals that are created with `configuration`. Existing tracing continues.
    public func attach(to configuration: inout Configuration) {
        if isCapturing {
            let others = configuration.traceHCI
            configuration.traceHCI = { packet in
                others?(packet)
                self.record(packet)
            }
        }
        let others = configuration.traceLinks
        configuration.traceLinks = { link in
            let other = others?(link)
            let number = self.begin(link)
            return { event in
                other?(event)
                self.record(event, of: number)
            }
        }
    }

    /// The failure that ended the recording early, if any.
    public var failure: RecorderError? { queue.withLock { $0.failure } }

    /// The number of links recorded.
    public var linkCount: Int { queue.withLock { $0.linkCount } }

    /// The number of ATT packets recorded.
    public var packetCount: Int { queue.withLock { $0.packetCount } }

    /// Ends the recording and returns when the files are complete. Later traffic is not recorded.
    ///
    /// - Throws: `RecorderError` if the recording has failed before.
    public func finish() async throws(RecorderError) {
        try await finish(removingEmpty: false)
    }

    /// The same; a btsnoop file without a packet, which replaced nothing, is removed where that is wanted.
    package func finish(removingEmpty: Bool) async throws(RecorderError) {
        queue.withLock { $0.isFinished = true }
        await write()
        do throws(RecorderError) {
            try await files.close(removingEmpty: removingEmpty)
        } catch {
            if queue.withLock({ $0.fail(error) }) { whenFailed?(error) }
        }
        if let failure { throw failure }
    }

    private func write() async {
        if let failure = await files.write(queue) { whenFailed?(failure) }
    }
}

// MARK: - Tracing

extension Recorder {
    private func begin(_ traced: TracedLink) -> Int {
        var number = 0
        add { queue in
            queue.linkCount += 1
            number = queue.linkCount
            let open = RecordingFiles.Job.open(number, header: Self.header(traced))
            if let handle = queue.controller.handle(of: traced.id, besides: queue.links.values.map(\.handle)) {
                queue.links[number] = Link(peer: traced.id, handle: handle, isMadeUp: false, lastTime: traced.time)
                return [open]
            }
            let link = Link(peer: traced.id, handle: queue.freeHandle, isMadeUp: true, lastTime: traced.time)
            queue.links[number] = link
            return [
                .packet(
                    Self.connection(
                        to: traced.id, isInbound: traced.isInbound, handle: link.handle, number: number,
                        queue.clock(traced.time))),
                open,
            ]
        }
        return number
    }

    private func record(_ event: TracedLink.Event, of number: Int) {
        add { queue in
            guard var link = queue.links[number] else { return [] }
            switch event {
            case .pdu(let pdu):
                queue.packetCount += 1
                let pause = pdu.time - link.lastTime
                link.lastTime = pdu.time
                queue.links[number] = link
                let time = queue.clock(pdu.time)
                return [
                    .packet(Self.data(pdu.bytes, isOutgoing: pdu.isOutgoing, handle: link.handle, time)),
                    .line(number, Self.lines(pdu.isOutgoing ? .sent(pdu.bytes) : .received(pdu.bytes), after: pause)),
                ]
            case .ended(let reason, at: let moment):
                queue.links[number] = nil
                let lines = Self.isOurs(reason) ? [] : Self.lines(.linkLost, after: moment - link.lastTime)
                let rest = [RecordingFiles.Job.line(number, lines), .close(number)]
                // The controller may have reported it before.
                guard queue.controller.mustMakeUpEnd(of: link) else { return rest }
                return [.packet(Self.disconnection(of: link.handle, reason, queue.clock(moment)))] + rest
            }
        }
    }

    private func record(_ packet: TracedHCIPacket) {
        add { queue in
            guard queue.controller.shows(packet, besides: queue.links.values) else { return [] }
            return [.packet(Self.packet(packet, queue.clock(packet.time)))]
        }
    }

    /// Appends the jobs to the queue, and starts a writer if none is running.
    private func add(_ jobs: (inout Queue) -> [RecordingFiles.Job]) {
        var overflow: RecorderError?
        let isWriterNeeded = queue.withLock { queue in
            guard queue.failure == nil, !queue.isFinished else { return false }
            let jobs = jobs(&queue)
            queue.waiting += jobs
            queue.waitingBytes += jobs.reduce(0) { $0 + $1.byteCount }
            guard queue.waitingBytes <= capacity else {
                let failure = RecorderError.tooSlow(waitingBytes: queue.waitingBytes)
                overflow = queue.fail(failure) ? failure : nil
                return false
            }
            defer { queue.isWriting = true }
            return !queue.isWriting && !jobs.isEmpty
        }
        if let overflow { whenFailed?(overflow) }
        if isWriterNeeded { Task { await write() } }
    }
}

extension Recorder.Queue {
    /// Returns the jobs that wait, which are the writer's now; the writer ends if there are none.
    mutating func takeJobs() -> [RecordingFiles.Job] {
        let jobs = waiting
        waiting = []
        waitingBytes = 0
        isWriting = !jobs.isEmpty
        return jobs
    }

    /// Ends the recording with a failure. Returns true if it had not ended before.
    mutating func fail(_ failure: RecorderError) -> Bool {
        let isFirst = self.failure == nil
        if isFirst { self.failure = failure }
        waiting = []
        waitingBytes = 0
        links = [:]
        return isFirst
    }

    /// An unused handle.
    fileprivate var freeHandle: ConnectionHandle {
        let used = Set(links.values.map(\.handle)).union(controller.handles)
        let start = linkCount % 0x0E00
        return (0..<0x0E00).lazy.map { ConnectionHandle(0x40 + (start + $0) % 0x0E00) }.first { !used.contains($0) }
            ?? 0
    }

    /// Returns the time of day of an instant; the offset is fixed, so that times within a recording never jump.
    fileprivate mutating func clock(_ moment: BootInstant) -> Duration {
        let offset = offset ?? WallClock.now() - (moment - .zero)
        self.offset = offset
        return offset + (moment - .zero)
    }
}
