internal import BLECore
internal import BLELinux

extension Peripheral {
    /// The PSMs of Low Energy: the Bluetooth SIG assigns those up to 0x007F, and each device those from 0x0080.
    static let psms: ClosedRange<UInt16> = 0x0001...0x00FF

    /// Opens a connection-oriented channel to a service of the peer, beside the attributes.
    ///
    /// A specification defines the PSM, or the device does: in an attribute or in its documentation. Several channels
    /// may be open at once. A channel lives at most as long as its link, and keeps it alive as a reference to the
    /// peripheral does. If the call throws, no channel is left open on this side. On an encrypted link the channel is
    /// opened encrypted, with the key of the bond if there is one, or not at all.
    ///
    /// Where the peer refuses the channel for lack of security, it is paired as for a refused read, if
    /// `SecurityConfiguration.onDemand` is set, and the channel is then requested once more.
    /// `L2CAPChannel.Options.timeout` is that of each request, and not of the pairing in between. A link that is
    /// encrypted is not paired again: if the peer requires a better key, the call fails with a hint at how to make one.
    /// Without `Configuration.security`, or where the adapter cannot be put under management, the refusal counts 2 s
    /// after it has come, or later on a slow link: until then another program, such as bluetoothd, may have the link
    /// paired for the kernel. It counts at once where a pairing has shown that the kernel cannot pair with the adapter
    /// (`.pairingUnavailable`).
    ///
    /// - Throws: `BLEError` with `.notSupported` for a link without a radio, `.refusedByPeer` if the peer does not
    ///   offer the PSM, has no resources, or closes the channel as soon as it is open, `.insufficientSecurity`, with
    ///   `BLEError.requiredSecurity`, `.invalidArgument`, `.timedOut`, `.disconnected`, `.cancelled`.
    ///
    /// Spec: LE credit based connection, Core Vol 3 Part A, 4.22.
    public func openChannel(
        psm: UInt16, _ options: L2CAPChannel.Options = L2CAPChannel.Options()
    ) async throws(BLEError) -> L2CAPChannel {
        let operation = BLEError.opening(psm)
        let wasEncrypted = security.isEncrypted
        do throws(BLEError) {
            return try await requestChannel(psm: psm, options, during: operation)
        } catch {
            // A kernel that pairs for another call may have left the channel waiting.
            let isLate = error.code == .timedOut && !wasEncrypted && security.isEncrypted
            guard error.code == .insufficientSecurity || isLate else { throw error }
            try await raiseSecurity(afterRefusal: error, wasEncrypted: wasEncrypted, during: operation)
        }
        return try await requestChannel(psm: psm, options, during: operation)
    }

    private func requestChannel(
        psm: UInt16, _ options: L2CAPChannel.Options, during operation: String
    ) async throws(BLEError) -> L2CAPChannel {
        let request = try request(psm, options, during: operation)
        guard let controls else {
            throw BLEError(
                .notSupported, subject: name, during: operation, because: "this link has no radio",
                hint: "Channels need a link that an adapter has made.")
        }
        if end != nil { throw endError(during: operation) }
        let socket: LinkSocket
        do throws(BLEError) {
            socket = try await controls.openChannel(request)
        } catch {
            // The link's reason is more precise than that of a channel that ended with it.
            guard error.code == .disconnected, end != nil else { throw error }
            throw endError(during: operation)
        }
        return try adopt(socket, psm: psm, options, during: operation)
    }

    /// Has the link secured for a channel that the peer has refused. Returns if it is worth requesting it again.
    ///
    /// - Parameter wasEncrypted: Whether the link was encrypted before the request.
    /// - Throws: The refusal, if the link is not paired on demand or was encrypted, with the reason.
    private func raiseSecurity(
        afterRefusal refusal: BLEError, wasEncrypted: Bool, during operation: String
    ) async throws(BLEError) {
        guard end == nil, protection.onDemand != nil else { throw refusal }
        // A call beside this one may have had it paired.
        var isSecured = !wasEncrypted && security.isEncrypted
        if !isSecured {
            // The refusal names neither a level nor an attribute.
            let request = Configuration.SecurityRequest(
                peer: id, name: name, level: .authentication, attribute: Self.noAttribute, operation: operation)
            isSecured = await upgradeSecurity(request, until: nil)
        }
        if Task.isCancelled { throw BLEError(.cancelled, subject: name, during: operation) }
        if end != nil { throw endError(during: operation) }
        if isSecured || !wasEncrypted && security.isEncrypted { return }
        guard let cause = protection.failure(of: .authentication) else { throw refusal }
        throw refusal.hinting("Pairing failed: \(cause.reason)." + (cause.hint.map { " \($0)" } ?? ""))
    }

    /// What the specification reserves: no attribute has this handle.
    private static let noAttribute: AttributeHandle = 0x0000

    /// Takes over a connected SEQPACKET descriptor, one packet for each SDU, as a channel of this link. Tests pass one
    /// end of a socketpair.
    package func attachChannel(
        descriptor: Int32, psm: UInt16, _ options: L2CAPChannel.Options = L2CAPChannel.Options()
    ) throws(BLEError) -> L2CAPChannel {
        try adopt(LinkSocket(adopting: descriptor), psm: psm, options, during: "attach a channel")
    }

    private func request(
        _ psm: UInt16, _ options: L2CAPChannel.Options, during operation: String
    ) throws(BLEError) -> ChannelRequest {
        guard Self.psms.contains(psm) else {
            throw BLEError(
                .invalidArgument, subject: name, during: operation, because: "that is not a Low Energy PSM",
                hint: "Devices choose from 0x0080 to 0x00FF; 0x0001 to 0x007F are assigned by the Bluetooth SIG.")
        }
        guard let mtu = UInt16(exactly: options.mtu), mtu >= ATTQueue.defaultMTU, options.capacity > 0 else {
            throw BLEError(
                .invalidArgument, subject: name, during: operation,
                because: "an MTU of \(options.mtu) and a capacity of \(options.capacity) packets were requested",
                hint: "Request 23 to 65535 bytes, and at least 1 packet.")
        }
        let security = security
        // A link that has been encrypted ends when it no longer is.
        let isEncrypted = protection.isSecured || security.isEncrypted
        return ChannelRequest(
            psm: psm, receiveMTU: mtu, timeout: options.timeout, isEncrypted: isEncrypted,
            linkLevel: SocketSecurity.Level(rawValue: UInt8(clamping: security.level)))
    }

    private func adopt(
        _ socket: consuming LinkSocket, psm: UInt16, _ options: L2CAPChannel.Options, during operation: String
    ) throws(BLEError) -> L2CAPChannel {
        if end != nil { throw endError(during: operation) }
        let channel = L2CAPChannel(
            socket: socket, psm: psm, number: channels.nextNumber(), options, peripheral: self)
        if let failure = channel.assumeIsolated({ $0.startReading() }) {
            throw BLEError(
                .system, subject: name, during: operation, because: "\(failure.call) failed",
                hint: failure.adapterRemedy,
                errorNumber: failure.errno)
        }
        channels.insert(channel)
        return channel
    }

    /// Whether a channel is open that somebody uses.
    var hasOpenChannels: Bool { channels.hasOpen }

    /// Called by a channel that has ended.
    func channelEnded(_ number: UInt64) {
        channels.remove(number)
    }

    /// Ends every channel; they end with the link.
    func endChannels(_ reason: DisconnectReason) {
        for channel in channels.removeAll() { channel.assumeIsolated { $0.linkEnded(reason) } }
    }

    /// Returns whether the link is still up at the controller, as far as is known.
    package func isLinkUp() async -> Bool {
        guard link.isUsable else { return false }
        return await controls?.isUp() ?? true
    }
}

/// The channels of one link, which their users keep alive and not the link.
final class OpenChannels {
    private struct WeakChannel {
        weak let channel: L2CAPChannel?
    }

    private var channels: [UInt64: WeakChannel] = [:]
    private var lastNumber: UInt64 = 0

    var count: Int { channels.count }

    /// Whether a channel is open that somebody uses.
    var hasOpen: Bool { channels.values.contains { $0.channel != nil } }

    func nextNumber() -> UInt64 {
        lastNumber &+= 1
        return lastNumber
    }

    func insert(_ channel: L2CAPChannel) {
        // Channels that were released without being closed leave their entries behind.
        channels = channels.filter { $0.value.channel != nil }
        channels[channel.number] = WeakChannel(channel: channel)
    }

    func remove(_ number: UInt64) { channels[number] = nil }

    /// Removes and returns the channels, in the order in which they were opened.
    func removeAll() -> [L2CAPChannel] {
        let open = channels.inOrder.compactMap(\.channel)
        channels = [:]
        return open
    }
}
