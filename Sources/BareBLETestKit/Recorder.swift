// Saves live sessions to files, while they go on.
//
// Duties
// - Take what a central traces, on its event loop, and give it back at once: the loop only puts bytes into a queue.
// - Write the queue from a task of its own: a btsnoop file for all links, and a dialogue for each.
// - Never disturb the session: a file that cannot be written ends the recording, and the failure waits for who asks.
//
// Invariants
// - The queue is bounded. A recording with holes would be no record of a session, so one that overflows ends.
// - Files are touched by `RecordingFiles` alone, in the order of the queue.
// - After a failure nothing is queued any more.

internal import BLECore
internal import BLELinux
public import BareBLE

/// Saves what a central's links exchange, as it happens.
///
///     let recorder = try Recorder(btsnoop: "visit.btsnoop", dialogue: "visit.dialogue")
///     var configuration = Configuration()
///     recorder.attach(to: &configuration)
///     …                                               // the session
///     try await recorder.finish()
///
/// The btsnoop file holds all links and opens in Wireshark, `btmon -r` and `blescan replay`; a dialogue is text and holds one.
/// `Replay` plays both back. The files hold every value that was exchanged, secrets too; only their owner may read them.
public final class Recorder: Sendable {
    /// How many bytes may wait for the disk.
    public static let capacity = 1 << 20

    let queue = Lock(Queue())
    private let files: RecordingFiles
    private let capacity: Int
    private let isCapturing: Bool
    private let whenFailed: (@Sendable (RecorderError) -> Void)?

    /// What waits to be written, and what is needed to say it.
    struct Queue {
        var waiting: [RecordingFiles.Job] = []
        var waitingBytes = 0
        var failure: RecorderError?
        var isFinished = false
        var isWriting = false
        var links: [Int: Link] = [:]
        var controller = ControllerLinks()
        var linkCount = 0
        var packetCount = 0
        /// What to add to a moment of the loop's clock to make a time of day.
        var offset: Duration?
    }

    /// A link that is up.
    struct Link {
        let peer: PeerID?
        let handle: ConnectionHandle
        /// Whether the recorder has written its beginning, because the controller has told of none.
        let isMadeUp: Bool
        var lastTime: BootInstant
    }

    /// Makes the files, and empties those that are there.
    ///
    /// - Parameters:
    ///   - btsnoop: where all links go, or `nil`.
    ///   - dialogue: where the first link goes, or `nil`; the others go beside it: `visit.dialogue`, `visit-2.dialogue`.
    /// - Throws: `RecorderError.cannotCreate`.
    public convenience init(btsnoop: String? = nil, dialogue: String? = nil) throws(RecorderError) {
        try self.init(btsnoop: btsnoop, dialogue: dialogue, capacity: Self.capacity)
    }

    /// A recorder for which fewer or more bytes may wait, that may leave files alone that are there, and that tells of a failure
    /// when it comes, once.
    package init(
        btsnoop: String?, dialogue: String?, capacity: Int = Recorder.capacity, isReplacing: Bool = true,
        whenFailed: (@Sendable (RecorderError) -> Void)? = nil
    ) throws(RecorderError) {
        self.capacity = capacity
        self.whenFailed = whenFailed
        isCapturing = btsnoop != nil
        files = try RecordingFiles(btsnoop: btsnoop, dialogue: dialogue, isReplacing: isReplacing)
    }

    /// Has centrals that are made with `configuration` recorded. What traces them already goes on doing so.
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

    /// Why the recording has ended before its time; `nil` while all is well.
    public var failure: RecorderError? { queue.withLock { $0.failure } }

    /// How many links have been recorded.
    public var linkCount: Int { queue.withLock { $0.linkCount } }

    /// How many ATT packets have been recorded.
    public var packetCount: Int { queue.withLock { $0.packetCount } }

    /// Ends the recording: returns when the files are whole. What the links exchange from now on is not recorded.
    ///
    /// - Throws: `RecorderError`, when the recording had ended before.
    public func finish() async throws(RecorderError) {
        try await finish(removingEmpty: false)
    }

    /// The same; a btsnoop file without a packet, which replaced nothing, is removed where that is wanted.
    package func finish(removingEmpty: Bool) async throws(RecorderError) {
        queue.withLock { $0.isFinished = true }
        await write()
        await files.close(removingEmpty: removingEmpty)
        if let failure { throw failure }
    }

    private func write() async {
        if let failure = await files.write(queue) { whenFailed?(failure) }
    }
}

// MARK: - What is traced

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
                .packet(Self.connection(to: traced.id, handle: link.handle, number: number, queue.clock(traced.time))),
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
                // The controller may have said so before.
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

    /// Puts what `jobs` makes into the queue, and has it written if nobody does so.
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
    /// The recording ends here; answers whether it had not ended before.
    mutating func fail(_ failure: RecorderError) -> Bool {
        let isFirst = self.failure == nil
        if isFirst { self.failure = failure }
        waiting = []
        waitingBytes = 0
        links = [:]
        return isFirst
    }

    /// A number that no link has now.
    fileprivate var freeHandle: ConnectionHandle {
        let used = Set(links.values.map(\.handle)).union(controller.handles)
        let start = linkCount % 0x0E00
        return (0..<0x0E00).lazy.map { ConnectionHandle(0x40 + (start + $0) % 0x0E00) }.first { !used.contains($0) }
            ?? 0
    }

    /// The time of day of a moment, so that times of one recording never jump.
    fileprivate mutating func clock(_ moment: BootInstant) -> Duration {
        let offset = offset ?? WallClock.now() - (moment - .zero)
        self.offset = offset
        return offset + (moment - .zero)
    }
}
