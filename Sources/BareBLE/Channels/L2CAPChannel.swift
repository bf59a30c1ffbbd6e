internal import BLELinux
internal import Logging

// One open channel beside a link's attributes. The kernel handles credits, segmentation and reassembly; a packet here
// is a whole SDU. What is left is to wait: for room before sending, for packets, for the end.
//
// Duties
// - Packets are sent in the order of the calls, and a call returns when the kernel has taken its packet whole.
// - What has been read is bounded: at `capacity` packets reading pauses, the kernel's buffer fills, it grants no more credits,
//   and the peer has to wait. Nothing is dropped.
// - Every caller is resumed exactly once, also at the end of the channel or of the link.
// - What arrived before the end is delivered before the end is reported.
//
// Invariants
// - All state belongs to the event loop's thread; a readable descriptor enters the actor without a hop.
// - `socket` is nil exactly when `end` is set; that closes the descriptor, once. Nobody reads or writes after that.
// - A packet in `outbound` is sent only while its sender waits; only the first one is offered to the kernel.
// - `isEnding` is set once the socket has reported its end: it is not read again while the link is checked.
// - The channel keeps a reference to its link; the link has none to the channel.

/// A connection-oriented channel to a peer: whole packets in both directions, in order, with flow control.
///
/// `Peripheral.openChannel(psm:_:)` creates one. It lives until `close()`, until the peer closes it or the link ends,
/// or until the last reference to it and to its packets goes away.
///
/// Spec: LE credit based flow control mode, Core Vol 3 Part A, 10.1.
public actor L2CAPChannel {
    /// The reason that a channel ended.
    enum End: Hashable {
        case closed
        case closedByPeer
        case link(DisconnectReason)
    }

    /// The number of packets that may wait for room.
    static let senderLimit = 64
    /// The number of packets that one wake-up may read before the loop serves its other descriptors.
    static let packetsPerTurn = 64
    /// The time that a closing channel waits for the peer to take what was sent.
    static let closeTimeout: Duration = .seconds(2)

    /// The PSM of the peer's service.
    public nonisolated let psm: UInt16
    /// The longest packet that the peer may send, in bytes.
    public nonisolated let receiveMTU: Int
    /// The longest packet that the peer accepts, in bytes.
    public nonisolated let sendMTU: Int

    nonisolated let name: String
    nonisolated let number: UInt64
    nonisolated let loop: EventLoop
    let peripheral: Peripheral
    let capacity: Int

    var socket: LinkSocket?
    var end: End?
    var isEnding = false
    var inbound: [UInt8]
    var received: [[UInt8]] = []
    var isPaused = false
    /// The task that waits for packets; one at most.
    let consumer: Waiters<Void>
    /// The error that the packets end with; delivered once.
    var failure: BLEError?

    /// Packets that wait for room, by the numbers of their senders.
    var outbound: [(sender: UInt64, packet: [UInt8])] = []
    let senders: Waiters<Result<Void, BLEError>>
    var isClosing = false
    let closers: Waiters<Void>
    var timer: TimerID?

    /// The event loop: all of the actor's code runs there.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop, so the reference stays good. Handlers of the loop and other actors on it are inside this
        // actor already: they enter it by `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    init(
        socket: consuming LinkSocket, psm: UInt16, number: UInt64, _ options: ChannelOptions, peripheral: Peripheral
    ) {
        self.psm = psm
        self.number = number
        receiveMTU = options.mtu
        // A stand-in has no limit but that of a packet.
        sendMTU = Int(socket.sendMTU() ?? .max)
        name = peripheral.name
        loop = peripheral.loop
        consumer = Waiters(on: loop)
        senders = Waiters(on: loop)
        closers = Waiters(on: loop)
        capacity = options.capacity
        inbound = [UInt8](repeating: 0, count: options.mtu)
        self.peripheral = peripheral
        self.socket = consume socket
    }

    isolated deinit {
        if let timer { loop.cancel(timer) }
        if let descriptor = socket?.descriptor { loop.letGo(descriptor) }
    }
}

extension L2CAPChannel {
    /// A Boolean value that indicates whether the channel is open.
    public var isOpen: Bool { end == nil && !isClosing && !isEnding }

    /// The packets from the peer, in order and without loss. Reading begins when the channel opens.
    public nonisolated var packets: PacketSequence { PacketSequence(channel: self) }

    /// Sends one packet, when its turn comes and there is room.
    ///
    /// Awaiting the call is the flow control: it returns when the kernel has taken the packet, which it does as long
    /// as the peer grants credits. The peer may not have received it by then. A packet is sent whole or not at all;
    /// after a cancellation or a timeout it was not sent.
    ///
    /// - Parameters:
    ///   - packet: 1 to `sendMTU` bytes.
    ///   - timeout: The longest wait for room; `nil` waits for as long as the link lives.
    /// - Throws: `BLEError` with `.tooLong` for a packet over `sendMTU`, `.invalidArgument` for an empty one,
    ///   `.timedOut`, `.queueFull` if 64 packets already wait for room, `.disconnected` after the end of the channel,
    ///   `.cancelled`.
    public func send(_ packet: [UInt8], timeout: Duration? = nil) async throws(BLEError) {
        guard !packet.isEmpty else {
            throw sendError(.invalidArgument, "an empty packet was given", hint: "A packet has at least 1 byte.")
        }
        guard packet.count <= sendMTU else { throw tooLongError(packet.count) }
        switch await senders.wait(until: timeout.map { loop.now() + $0 }, { enqueue(packet, $0) }) {
        case .resumed(let result): try result.get()
        case .timedOut: throw noRoomError()
        case .cancelled: throw cancelledError()
        }
    }

    /// Closes the channel; the link stays up. Packets that the kernel has not taken are discarded.
    ///
    /// Packets that the kernel has taken are still sent: if the peer has granted no credits for them yet, the call
    /// waits for credits, at most 2 s. Waiting calls of `send` fail. Does nothing if the channel is already closed.
    public func close() async {
        guard end == nil else { return }
        isClosing = true
        received = []
        failSenders()
        consumer.resumeAll()
        guard !isEnding, socket?.hasRoom == false else { return finish(.closed) }
        _ = await closers.wait(until: loop.now() + Self.closeTimeout) { _ in
            if end != nil { return () }
            awaitRoom()
            return nil
        }
        finish(.closed)
    }
}
