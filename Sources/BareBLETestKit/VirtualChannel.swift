// Channels of virtual devices: what a peripheral does with those that the program under test opens, and those that a
// central opens to it.
//
// Invariants:
// - Everything runs on the loop of the device. A channel ends with its link.
// - What arrived before the end of a channel is delivered before that.
// - An open channel keeps itself alive, as a link does.

internal import BLECore
internal import BLELinux
internal import BareBLE

/// The reaction of a virtual peripheral to channels that a central opens to one of its PSMs.
public enum VirtualChannelReaction: Hashable, Sendable {
    /// It accepts each channel; `VirtualPeripheral.nextChannel(within:)` returns it.
    case accept
    /// It accepts each channel on an encrypted link, and refuses it on any other for lack of security. The kernel then
    /// pairs by itself where it can, and does not report the refusal.
    case acceptEncrypted
    /// It accepts each channel on a link whose key excludes a man in the middle, and refuses it on any other for lack
    /// of security. The kernel then pairs by itself where it can, for one level more than the link has, and does not
    /// report the refusal.
    case acceptAuthenticated
    /// It accepts each channel and closes it at once, as a device does that has no use for it.
    case close
    /// It does not respond.
    case ignore
}

/// A virtual device's end of a channel.
///
/// A `VirtualPeripheral` accepts one, and `VirtualCentral.openChannel(psm:)` opens one. It ends when either side closes
/// it, and with its link.
///
/// Spec: LE credit based flow control mode, Core Vol 3 Part A, 10.1.
public actor VirtualChannel {
    /// The longest packet, in bytes.
    private static let longestPacket = 65_535

    /// The PSM of the side that has accepted the channel.
    public nonisolated let psm: UInt16
    nonisolated let loop: EventLoop
    private var link: PeerLink?
    private var received: [[UInt8]] = []
    private let packets: Waiters<Void>
    private var isPaused = false
    private var isOutOfRange = false

    /// Creates the device's end, with the descriptor of the other one, which the caller owns.
    static func open(psm: UInt16, on loop: EventLoop) throws(TestLinkError) -> (channel: VirtualChannel, other: Int32) {
        let ends: (Int32, Int32)
        do throws(SystemCallError) {
            ends = try LinkSocket.pair()
        } catch {
            throw .noSocketPair(errno: error.errno)
        }
        return (channel: adopt(ends.0, psm: psm, on: loop), other: ends.1)
    }

    /// Creates the device's end of a connected descriptor, which it owns.
    static func adopt(_ descriptor: Int32, psm: UInt16, on loop: EventLoop) -> VirtualChannel {
        let channel = VirtualChannel(psm, on: loop)
        channel.assumeIsolated { $0.begin(over: descriptor) }
        return channel
    }

    private init(_ psm: UInt16, on loop: EventLoop) {
        self.psm = psm
        self.loop = loop
        packets = Waiters(on: loop)
    }

    /// The executor of the device's loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor owns its loop. The loop's handlers already run on the actor: they enter it with `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    private func begin(over descriptor: Int32) {
        let link = PeerLink(adopting: descriptor, on: loop, bufferSize: Self.longestPacket)
        self.link = link
        link.start(
            packet: { packet in self.assumeIsolated { $0.arrived(packet) } },
            ended: { self.assumeIsolated { $0.ended() } })
    }

    /// A Boolean value that indicates whether neither side has closed the channel, and its link is up.
    public var isOpen: Bool { link != nil }

    /// Sends a packet, after those that wait for room; does nothing after the end of the channel.
    public func send(_ packet: [UInt8]) {
        link?.send(packet)
    }

    /// Returns the next packet from the program under test; `nil` after the last one of a channel that has ended, when
    /// none has come in time, and when the task was cancelled.
    public func nextPacket(within timeout: Duration = .seconds(30)) async -> [UInt8]? {
        let deadline = loop.now() + timeout
        while received.isEmpty {
            guard link != nil else { return nil }
            let end = await packets.wait(until: deadline) { _ in received.isEmpty && link != nil ? nil : () }
            guard case .resumed = end else { return nil }
        }
        return received.removeFirst()
    }

    /// Stops the channel in both directions until `resume()`: nothing is read, so that the program under test gets no
    /// more credits, and what is sent waits.
    public func pause() {
        isPaused = true
        link?.hold()
    }

    /// Continues after `pause()`.
    public func resume() {
        isPaused = false
        if !isOutOfRange { link?.release() }
    }

    /// Closes the channel; the link stays up. Does nothing if the channel has ended.
    public func close() {
        link?.close()
        ended()
    }

    /// The device is out of range, or it has come back.
    func hold(_ isHeld: Bool) {
        isOutOfRange = isHeld
        if isHeld || isPaused { link?.hold() } else { link?.release() }
    }

    private func arrived(_ packet: [UInt8]) {
        received.append(packet)
        packets.resumeAll(())
    }

    private func ended() {
        link = nil
        packets.resumeAll(())
    }
}

/// The channels of a virtual device. Only the device uses it, on its loop.
final class VirtualChannels {
    private let loop: EventLoop
    private var reactions: [UInt16: VirtualChannelReaction] = [:]
    private var open: [VirtualChannel] = []
    /// The far ends of those to which the device does not respond.
    private var ignored: [FarEnd] = []
    /// The channels that were accepted, until `next` returns them.
    private var accepted: [VirtualChannel] = []
    private let waiting: Waiters<Void>

    init(on loop: EventLoop) {
        self.loop = loop
        waiting = Waiters(on: loop)
    }

    /// Sets what becomes of channels to a PSM; `nil` to refuse them.
    func react(to psm: UInt16, _ reaction: VirtualChannelReaction?) { reactions[psm] = reaction }

    /// The level of the link that channels to a PSM need.
    func neededLevel(_ psm: UInt16) -> SocketSecurity.Level {
        switch reactions[psm] {
        case .acceptEncrypted?: .medium
        case .acceptAuthenticated?: .high
        case .accept?, .close?, .ignore?, nil: .low
        }
    }

    /// A program requests a channel; returns its end, and whether it waits for the device; `nil` if it is refused.
    ///
    /// - Parameter isHeard: Whether the device receives the request.
    func requested(
        _ psm: UInt16, isHeard: Bool
    ) throws(TestLinkError) -> (descriptor: Int32, isConnecting: Bool)? {
        guard isHeard else { return (descriptor: try ignoring(), isConnecting: true) }
        switch reactions[psm] {
        case nil: return nil
        case .ignore?: return (descriptor: try ignoring(), isConnecting: true)
        case .close?:
            let (channel, other) = try VirtualChannel.open(psm: psm, on: loop)
            channel.assumeIsolated { $0.close() }
            return (descriptor: other, isConnecting: false)
        case .accept?, .acceptEncrypted?, .acceptAuthenticated?:
            let (channel, other) = try VirtualChannel.open(psm: psm, on: loop)
            add(channel)
            accepted.append(channel)
            waiting.resumeAll(())
            return (descriptor: other, isConnecting: false)
        }
    }

    private func ignoring() throws(TestLinkError) -> Int32 {
        do throws(SystemCallError) {
            let (ours, theirs) = try LinkSocket.pair()
            ignored.append(FarEnd(theirs))
            return ours
        } catch {
            throw .noSocketPair(errno: error.errno)
        }
    }

    /// Adds a channel that the device has opened.
    func add(_ channel: VirtualChannel) {
        open.removeAll { !$0.assumeIsolated { $0.isOpen } }
        open.append(channel)
    }

    /// Returns the next channel that was accepted; `nil` if there is none in time.
    func next(until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation) async -> VirtualChannel? {
        while accepted.isEmpty {
            let end = await waiting.wait(until: deadline, isolation: isolation) { _ in accepted.isEmpty ? nil : () }
            guard case .resumed = end else { return nil }
        }
        return accepted.removeFirst()
    }

    /// The device is out of range, or it has come back.
    func hold(_ isHeld: Bool) {
        for channel in open { channel.assumeIsolated { $0.hold(isHeld) } }
    }

    /// The link has ended.
    func endAll() {
        for channel in open { channel.assumeIsolated { $0.close() } }
        open = []
        ignored = []
    }
}
