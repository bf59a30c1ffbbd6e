public import BLECore
package import BLELinux
internal import Logging

// Channels that centrals open to a PSM of this program.
//
// Duties
// - The kernel enforces the security of the link, and accepts the channel. What is beyond a limit is closed at once,
//   before anything is read from it.
// - A channel is closed if its link is not one of this local peripheral, if the central has as many as it may, or if
//   too many wait for the application. That is counted and logged.
// - A shortage of descriptors pauses the listener. It does not make it spin, or lose the channels that wait.
//
// Invariants
// - A channel that is not closed at once is delivered, unless its link ends first.
// - The acceptor alone owns the listening socket. It ends with `end()`, once: by the listener's `stop()`, with the last
//   reference to the listener and its sequences, or with the local peripheral.
// - Only the event loop's thread uses the acceptor.

extension ChannelListener {
    /// Options of a listener for channels.
    public struct Options: Hashable, Sendable {
        /// The longest packet that a central may send, 23 to 65,535 bytes. The central is informed; its own limit is
        /// independent.
        public var mtu: Int
        /// The number of packets of each channel that are read ahead of the consumer, at least 1. Beyond that the
        /// central has to wait.
        public var capacity: Int
        /// The number of channels that one central may have open at once, at least 1; the next one is closed as soon as
        /// it is open.
        public var maximumChannels: Int
        /// The number of channels that may wait in `ChannelListener.channels`, at least 1; the next one is closed as
        /// soon as it is open.
        public var backlog: Int

        /// Creates options, with default values for those not given.
        public init(mtu: Int = 672, capacity: Int = 64, maximumChannels: Int = 8, backlog: Int = 16) {
            self.mtu = mtu
            self.capacity = capacity
            self.maximumChannels = maximumChannels
            self.backlog = backlog
        }
    }
}

/// The requirements of an adapter's listener for channels.
package struct ChannelListenRequest: Hashable, Sendable {
    /// The PSM; 0 has the kernel choose one.
    package let psm: UInt16
    /// The longest packet that a central may send.
    package let receiveMTU: UInt16
    /// The security that the link must have.
    package let security: SocketSecurity.Level

    /// - Parameter subject: The adapter's name.
    /// - Throws: `BLEError` with `.invalidArgument`.
    init(
        psm: UInt16?, security: AccessRequirement.Level, _ options: ChannelListener.Options, on subject: String,
        during operation: String
    ) throws(BLEError) {
        if let psm, !Peripheral.psms.contains(psm) {
            throw BLEError(
                .invalidArgument, subject: subject, during: operation, because: "that is not a Low Energy PSM",
                hint: "Name one from 0x0080 to 0x00FF, or none, so that the kernel chooses one.")
        }
        guard let mtu = UInt16(exactly: options.mtu), mtu >= ATTQueue.defaultMTU,
            min(options.capacity, options.maximumChannels, options.backlog) > 0
        else {
            throw BLEError(
                .invalidArgument, subject: subject, during: operation,
                because: "an MTU of \(options.mtu), a capacity of \(options.capacity) packets, "
                    + "\(options.maximumChannels) channels of a central and a backlog of \(options.backlog) were requested",
                hint: "Request 23 to 65535 bytes, and at least 1 of the others.")
        }
        self.psm = psm ?? 0
        receiveMTU = mtu
        self.security = SocketSecurity.Level(rawValue: security.rawValue)
    }
}

extension ChannelListener {
    /// A channel that a central has opened.
    public struct IncomingChannel: Sendable {
        /// The central, as it was when the channel was opened.
        public let central: ConnectedCentral
        /// The channel, which is open, and whose packets are read already.
        public let channel: L2CAPChannel
    }
}

/// The channels that centrals open to a listener, in their order.
///
/// A listener has one sequence: use it from one task; `next()` throws `BLEError` with `.busy` while another task waits
/// for the next channel. It ends with the listener, after the channels that wait. Leaving the loop leaves the listener
/// as it is, while there is another reference to it.
public typealias IncomingChannelSequence = BLESequence<ChannelListener.IncomingChannel>

/// A listener for the channels that centrals open to one PSM.
///
/// ```swift
/// let welcome: BluetoothUUID = "9d5a0004-3c7e-4b1f-8a26-e4710c95b3d8"
/// let listener = try await peripheral.listenForChannels()
/// try await peripheral.publish(
///     LocalService(welcome, [LocalCharacteristic(.l2capPSM, .read, value: .fixed(listener.psm))]))
/// for try await incoming in listener.channels {
///     print("\(incoming.central.name) has opened a channel")
/// }
/// ```
///
/// `LocalPeripheral.listenForChannels(psm:security:_:)` creates one. It ends with `stop()`, with the local peripheral,
/// or when the last reference to it and to its sequence goes away. The channels that it has accepted stay open.
///
/// Spec: LE credit based connection, Core Vol 3 Part A, 4.22.
public final class ChannelListener: Sendable {
    /// The PSM, 0x0001 to 0x00FF. Centrals need it: publish it in a characteristic, such as
    /// `CharacteristicKey.l2capPSM`.
    public let psm: UInt16

    let acceptor: ChannelAcceptor
    private let loop: EventLoop
    private let token: LifetimeToken

    init(_ acceptor: ChannelAcceptor, on loop: EventLoop) {
        self.acceptor = acceptor
        self.loop = loop
        psm = acceptor.psm
        token = LifetimeToken { Task(executorPreference: loop) { acceptor.end() } }
    }

    /// The channels that centrals open.
    public var channels: IncomingChannelSequence { BLESequence(acceptor.buffer, until: token) }

    /// The number of channels that this listener has closed at once: beyond its limits, or of links that the local
    /// peripheral does not serve. Those that the kernel has refused for the security of their links are not among them.
    public var refusedChannels: Int { acceptor.refusals.count }

    /// Accepts no more channels. The call returns when the PSM is free.
    public func stop() async {
        _ = token.dismiss()
        // Also in a further call: the first one may not have come to it.
        await Task(executorPreference: loop) { [acceptor] in acceptor.end() }.value
    }
}

extension CharacteristicKey where Value == UInt16 {
    /// The PSM of a peripheral's listener for channels, where centrals for Apple's systems look for it
    /// (`CBUUIDL2CAPPSMCharacteristicString`).
    public static var l2capPSM: Self { Self("abdd3056-28fa-441d-a470-55a75a52553a") }
}

// MARK: - Accepting

/// The listening socket of one PSM, and the channels that it has accepted.
// Unchecked: only the loop's thread uses what changes.
final class ChannelAcceptor: @unchecked Sendable {
    typealias Link = (central: ConnectedCentral, peripheral: Peripheral)
    typealias Route = @Sendable (ConnectionHandle) -> Link?

    private struct OpenChannel {
        let central: ConnectedCentral.ID
        weak let channel: L2CAPChannel?

        var isOpen: Bool { channel?.assumeIsolated { $0.isOpen } ?? false }
    }

    let psm: UInt16
    let buffer: StreamBuffer<ChannelListener.IncomingChannel>
    let refusals = DropCounter()
    private let logger: Logger
    private let options: ChannelListener.Options
    private let socket: AcceptingSocket
    private var route: Route?
    private var open: [OpenChannel] = []

    /// - Parameter route: Returns the link with a number at the controller.
    /// - Throws: `SystemCallError` if the socket cannot be watched.
    init(
        _ listening: consuming ListeningSocket, _ options: ChannelListener.Options, on loop: EventLoop, logger: Logger,
        route: @escaping Route
    ) throws(SystemCallError) {
        psm = listening.psm
        buffer = StreamBuffer(
            of: BLEError.listening(to: listening.psm), capacity: options.backlog, policy: .dropNewest)
        self.logger = logger
        self.options = options
        self.route = route
        socket = AcceptingSocket(on: loop, logger: logger)
        try socket.begin(listening, at: ["PSM": "\(psm)"]) { [weak self] in self?.readable() }
    }

    /// Whether it accepts channels.
    var isListening: Bool { socket.isOpen }

    /// Accepts no more channels.
    func end() {
        socket.end()
        route = nil
        buffer.finish()
    }

    private func readable() {
        while let accepted = socket.nextChannel() { admit(accepted) }
    }

    /// Delivers a channel, or closes it.
    private func admit(_ accepted: consuming AcceptedChannel) {
        guard let link = route?(accepted.handle) else {
            return refused("the link \(accepted.handle) is not one of this program's")
        }
        if let reason = refusal(of: link.central) { return refused(reason) }
        do throws(BLEError) {
            try deliver(accepted.take().release(), of: link)
        } catch {
            refused("\(error)")
        }
    }

    private func refused(_ reason: String) {
        refusals.add(1)
        logger.debug("closed a channel at once", metadata: ["PSM": "\(psm)", "reason": "\(reason)"])
    }

    /// Why another channel of a central is refused; `nil` if there is room for it.
    private func refusal(of central: ConnectedCentral) -> String? {
        open.removeAll { !$0.isOpen }
        if open.count(where: { $0.central == central.id }) >= options.maximumChannels {
            return "\(central.name) has \(options.maximumChannels) channels open"
        }
        return buffer.waitingCount < options.backlog ? nil : "\(options.backlog) channels wait for this program"
    }

    private func deliver(_ descriptor: Int32, of link: Link) throws(BLEError) {
        let (psm, channelOptions) = (psm, L2CAPChannel.Options(mtu: options.mtu, capacity: options.capacity))
        let result = link.peripheral.assumeIsolated { peripheral -> Result<L2CAPChannel, BLEError> in
            Result { () throws(BLEError) in
                try peripheral.attachChannel(descriptor: descriptor, psm: psm, channelOptions)
            }
        }
        let channel = try result.get()
        open.append(OpenChannel(central: link.central.id, channel: channel))
        buffer.yield(ChannelListener.IncomingChannel(central: link.central, channel: channel))
    }

    /// Takes a connected descriptor as a channel of a central, within the same limits.
    func attach(_ descriptor: Int32, of link: Link, during operation: String) throws(BLEError) {
        let socket = LinkSocket(adopting: descriptor)
        guard isListening else {
            throw BLEError(
                .invalidArgument, subject: link.central.name, during: operation, because: "the listener was stopped",
                hint: "Create another one.")
        }
        if let reason = refusal(of: link.central) {
            refused(reason)
            throw BLEError(
                .queueFull, subject: link.central.name, during: operation, because: reason,
                hint: "Close or consume earlier ones first.")
        }
        try deliver(socket.release(), of: link)
    }
}

/// The listeners of a local peripheral.
// Unchecked: only the loop's thread uses it.
final class ChannelAcceptors: @unchecked Sendable {
    private var acceptors: [ChannelAcceptor] = []

    func insert(_ acceptor: ChannelAcceptor) {
        acceptors.removeAll { !$0.isListening }
        acceptors.append(acceptor)
    }

    func end() {
        for acceptor in acceptors { acceptor.end() }
        acceptors = []
    }
}
