// The streams of a channel. Each has the bytes of one direction from its `ChannelPipe`, and its events from
// `StreamEvents`.
//
// Duties
// - Moves bytes between the program and the pipe; no call waits for the peer.
// - Delivers the events of a stream to its delegate, on the run loop in which the stream is scheduled, in the order in
//   which they happened.
//
// Invariants of `StreamEvents`
// - The status goes from not open to open, in a run loop by way of opening, and to closed, which is final.
// - `.openCompleted` is the first event of all.
// - No event is delivered before `open()`, after `close()`, or outside of a run loop: until there is one, events wait.
// - In a run loop, the stream becomes open with the first delivery. The end of the bytes is signalled once.
// - At most one delivery is scheduled; an event that waits already is not added again. A run loop that is removed may
//   never run again, or run later: what was scheduled there is void, and scheduled again where the stream still is.
// - The delegate is called without the lock.

internal import BLELinux

/// The delegate, the run loops and the status of a stream.
// Unchecked: run loops and the stream's delegate are only kept here, under the lock, and used on the run loop.
final class StreamEvents: @unchecked Sendable {
    private struct State {
        weak var stream: Stream?
        weak var delegate: (any StreamDelegate)?
        var runLoops: [(loop: RunLoop, mode: RunLoop.Mode)] = []
        var waiting: [Stream.Event] = []
        var isScheduled = false
        /// The number of the last delivery that was scheduled, or made void. A former one delivers nothing.
        var delivery: UInt64 = 0
        var status = Stream.Status.notOpen
        /// Whether the end was signalled.
        var hasEnded = false
    }

    private let state = Lock(State())

    func setStream(_ stream: Stream) { state.withLock { $0.stream = stream } }

    var delegate: (any StreamDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    var status: Stream.Status { state.withLock { $0.status } }

    /// Whether bytes can be moved: also while `.openCompleted` is on its way.
    var isUsable: Bool { status == .open || status == .opening }

    func setStatus(_ status: Stream.Status) { state.withLock { $0.status = status } }

    /// Opens the stream; returns `false` if that was done before. In a run loop the stream is open with its event.
    func open() -> Bool {
        let isFirst = state.withLock { state in
            guard state.status == .notOpen else { return false }
            state.status = state.runLoops.isEmpty ? .open : .opening
            // Bytes that come from now on are signalled by another thread, after this.
            state.waiting.append(.openCompleted)
            return true
        }
        if isFirst { deliverSoon() }
        return isFirst
    }

    func schedule(in loop: RunLoop, _ mode: RunLoop.Mode) {
        state.withLock { $0.runLoops.append((loop, mode)) }
        deliverSoon()
    }

    func remove(from loop: RunLoop, _ mode: RunLoop.Mode) {
        state.withLock { state in
            state.runLoops.removeAll { $0.loop === loop && $0.mode == mode }
            state.isScheduled = false
            state.delivery &+= 1
        }
        deliverSoon()
    }

    /// Delivers an event soon, if the stream is open.
    func signal(_ event: Stream.Event) {
        state.withLock { state in
            guard state.status != .notOpen, state.status != .closed, !state.waiting.contains(event) else { return }
            state.waiting.append(event)
        }
        deliverSoon()
    }

    /// Delivers the end of the stream's bytes, once.
    func signalEnd(_ end: ChannelPipe.End) {
        let event: Stream.Event
        switch end {
        case .none: return
        case .atEnd: event = .endEncountered
        case .failed: event = .errorOccurred
        }
        let isFirst = state.withLock { state in
            guard state.status != .notOpen else { return false }
            defer { state.hasEnded = true }
            return !state.hasEnded
        }
        if isFirst { signal(event) }
    }

    private func deliverSoon() {
        let place = state.withLock { state -> (loop: RunLoop, mode: RunLoop.Mode, number: UInt64)? in
            guard !state.isScheduled, !state.waiting.isEmpty, let place = state.runLoops.first else { return nil }
            state.isScheduled = true
            state.delivery &+= 1
            return (place.loop, place.mode, state.delivery)
        }
        guard let place else { return }
        let number = place.number
        if place.loop === RunLoop.main {
            DispatchQueue.main.async { self.deliver(number) }
        } else {
            // A timer that is due wakes a run loop that sleeps, which `perform` does not.
            place.loop.add(
                Timer(fire: Date(), interval: 0, repeats: false) { _ in self.deliver(number) }, forMode: place.mode)
        }
    }

    private func deliver(_ number: UInt64) {
        var delivered: [Stream.Event] = []
        let stream = state.withLock { state -> Stream? in
            guard state.delivery == number else { return nil }
            state.isScheduled = false
            guard !state.runLoops.isEmpty, state.status != .closed else { return nil }
            swap(&delivered, &state.waiting)
            if state.status == .opening { state.status = .open }
            return state.stream
        }
        guard let stream else { return }
        for (index, event) in delivered.enumerated() {
            // The delegate may have closed the stream, removed it from the run loop, or left it.
            guard mayDeliver(delivered[index...]) else { return }
            delegate?.stream(stream, handle: event)
        }
    }

    /// Whether events can be delivered at this moment. Without a run loop they wait again, before those that came
    /// since.
    private func mayDeliver(_ events: ArraySlice<Stream.Event>) -> Bool {
        state.withLock { state in
            if state.status == .closed { return false }
            if !state.runLoops.isEmpty { return true }
            state.waiting = Array(events) + state.waiting.filter { !events.contains($0) }
            return false
        }
    }
}

/// The bytes from the peer.
final class ChannelInputStream: InputStream {
    let events = StreamEvents()
    private let pipe: ChannelPipe

    init(_ pipe: ChannelPipe) {
        self.pipe = pipe
        super.init(data: Data())
        events.setStream(self)
    }

    deinit { pipe.close(.input) }

    override var delegate: (any StreamDelegate)? {
        get { events.delegate }
        set { events.delegate = newValue }
    }

    override var streamStatus: Status {
        switch (events.status, pipe.inputEnd) {
        case (.open, .atEnd): .atEnd
        case (.open, .failed): .error
        default: events.status
        }
    }

    override var streamError: (any Error)? {
        if case .failed(let error) = pipe.inputEnd { error } else { nil }
    }

    override var hasBytesAvailable: Bool { events.isUsable && pipe.bytesAvailable > 0 }

    override func open() {
        guard events.open() else { return }
        if pipe.bytesAvailable > 0 { events.signal(.hasBytesAvailable) }
        events.signalEnd(pipe.inputEnd)
    }

    override func close() {
        events.setStatus(.closed)
        pipe.close(.input)
    }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { events.schedule(in: aRunLoop, mode) }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { events.remove(from: aRunLoop, mode) }

    /// Reads at most `len` bytes that have come: 0 at the end, -1 after an error, and also 0 while there are none, so
    /// ask `hasBytesAvailable` first.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard events.isUsable else { return -1 }
        let bytes = pipe.take(len)
        for (index, byte) in bytes.enumerated() { unsafe buffer[index] = byte }
        if bytes.isEmpty, case .failed = pipe.inputEnd { return -1 }
        if pipe.bytesAvailable > 0 { events.signal(.hasBytesAvailable) } else { events.signalEnd(pipe.inputEnd) }
        return bytes.count
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool { false }
}

/// The bytes to the peer.
final class ChannelOutputStream: OutputStream {
    let events = StreamEvents()
    /// `nil` for a stream that belongs to no channel, and is closed.
    private let pipe: ChannelPipe?

    init(_ pipe: ChannelPipe) {
        self.pipe = pipe
        super.init(toMemory: ())
        events.setStream(self)
    }

    /// Creates a stream that is closed; Foundation requires this initializer of every stream.
    required init(toMemory: ()) {
        pipe = nil
        super.init(toMemory: ())
        events.setStatus(.closed)
    }

    deinit { pipe?.close(.output) }

    override var delegate: (any StreamDelegate)? {
        get { events.delegate }
        set { events.delegate = newValue }
    }

    override var streamStatus: Status {
        switch (events.status, pipe?.outputEnd) {
        case (.open, .atEnd?): .atEnd
        case (.open, .failed?): .error
        default: events.status
        }
    }

    override var streamError: (any Error)? {
        if case .failed(let error)? = pipe?.outputEnd { error } else { nil }
    }

    private var room: Int { pipe?.room ?? 0 }

    override var hasSpaceAvailable: Bool { events.isUsable && room > 0 }

    override func open() {
        guard events.open() else { return }
        if room > 0 { events.signal(.hasSpaceAvailable) }
        if let end = pipe?.outputEnd { events.signalEnd(end) }
    }

    override func close() {
        events.setStatus(.closed)
        pipe?.close(.output)
    }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { events.schedule(in: aRunLoop, mode) }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { events.remove(from: aRunLoop, mode) }

    /// Takes as many of the bytes as there is room for, possibly none, and none at the end; -1 after an error. It never
    /// waits.
    override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        guard events.isUsable else { return -1 }
        if case .failed? = pipe?.outputEnd { return -1 }
        let count = unsafe pipe?.put(UnsafeBufferPointer(start: buffer, count: max(0, len))) ?? 0
        if room > 0 { events.signal(.hasSpaceAvailable) }
        return count
    }
}
