internal import BLECore
internal import BLELinux
internal import Logging

// Where the links of centrals come from: the adapter, and a Unix socket. With them go the channels beside the
// attributes, and the pairings that centrals begin: they need a link that was accepted here.
//
// Duties
// - Has the adapter accept links and report the pairings of their centrals, and accepts those at the socket.
// - Logs links that are not served.
// - Ends all of that at once, or releases the listening sockets for the next run.
//
// Invariants
// - The adapter knows the local peripheral by this object alone: what another owner has begun there is not ended here.
// - It does not hold the links. They end with the local peripheral, also while this object still ends its sockets.
// - Only the event loop's thread uses it.

/// What a local peripheral accepts.
// Unchecked: only the loop's thread touches its state.
final class CentralAcceptor: @unchecked Sendable {
    private let adapter: Adapter
    private let loop: EventLoop
    private let logger: Logger
    private let socket: AcceptingSocket
    private let channels = ChannelAcceptors()
    /// Limits the log lines about centrals that are not served, of all together: each may come with another address.
    private let refusals = PeerWarnings()
    private var isEnded = false

    init(on central: Central) {
        adapter = central.adapter
        loop = central.loop
        logger = central.configuration.logger
        socket = AcceptingSocket(on: loop, logger: logger)
    }

    private var owner: ObjectIdentifier { ObjectIdentifier(self) }

    // MARK: Accepting

    /// Accepts the links that centrals make to the adapter, and has it report their pairings, which it refuses unless
    /// `allowPairing` lets it accept them.
    ///
    /// - Parameters:
    ///   - links: The owner of the links.
    ///   - handOver: Where the socket of the run before may be.
    func acceptRadioLinks(
        for links: ServedLinks, adoptingFrom handOver: ServerHandOver, during operation: String
    ) async throws(BLEError) {
        try await adapter.accept(for: owner, during: operation) { own in
            handOver.takeListener(at: .attributeChannel(own))
        } _: { [weak self, weak links] socket, peer, controls in
            guard let self, let links else { return }
            serve(socket, from: peer, name: "\(peer)", controls, by: links)
        }
        await adapter.servePairings(for: owner, links.pairingHost)
        // It may have ended, or released its sockets, while the adapter was made ready.
        if isEnded { await stopAccepting() }
    }

    /// Accepts links on a Unix socket, in place of an earlier one.
    ///
    /// - Parameters:
    ///   - path: The path of the socket.
    ///   - handed: The descriptor of a socket that listens there already, which is the acceptor's from now on.
    ///   - links: The owner of the links.
    func acceptLinks(atSocket path: String, adopting handed: Int32?, for links: ServedLinks) throws(SystemCallError) {
        let listening =
            if let handed {
                try ListeningSocket(adopting: handed, at: .unix(path))
            } else {
                try ListeningSocket.unix(path: path)
            }
        try socket.begin(listening, at: ["path": "\(path)"]) { [weak self, weak links] in
            guard let self, let links else { return }
            while let link = socket.nextLink() {
                serve(link.take(), name: "unix:\(path)#\(links.nextNumber)", by: links)
            }
        }
    }

    /// Serves a link, and logs where that fails: at once, and then once a minute.
    private func serve(
        _ socket: consuming LinkSocket, from peer: PeerID? = nil, name: String, _ controls: LinkControls? = nil,
        by links: ServedLinks
    ) {
        do throws(BLEError) {
            try links.accept(socket, from: peer, name: name, controls)
        } catch {
            let message = "a central is not served"
            guard let leftOut = refusals.admit(message, at: loop.now()) else { return }
            var details: Logger.Metadata = ["central": "\(name)", "reason": "\(error)"]
            if leftOut > 0 { details["left out"] = "\(leftOut)" }
            logger.notice("\(message)", metadata: details)
        }
    }

    /// Keeps a listener for channels until this object ends.
    func insert(_ acceptor: ChannelAcceptor) { channels.insert(acceptor) }

    // MARK: Pairing

    /// Lets centrals pair.
    ///
    /// - Throws: `BLEError` with the codes of `Adapter.allowCentralPairing`.
    func allowPairing(
        _ options: CentralPairingOptions, until end: BootInstant?, during operation: String
    ) async throws(BLEError) {
        try await adapter.allowCentralPairing(options, for: owner, until: end, during: operation)
    }

    /// Lets no central pair any more; a pairing that runs ends, unless it is to be kept.
    func refusePairing(keepingCurrent: Bool = false) async {
        await adapter.refuseCentrals(of: owner, keepingCurrent: keepingCurrent)
    }

    /// Ends the service of pairings once the bond that is being stored is on the disk.
    func endPairings() async {
        await adapter.centralStored(of: owner)
        await adapter.stopServingPairings(for: owner)
    }

    // MARK: The end

    /// Accepts nothing any more.
    func end() async {
        isEnded = true
        socket.end()
        channels.end()
        await stopAccepting()
    }

    private func stopAccepting() async {
        await adapter.stopAccepting(for: owner)
        await adapter.stopServingPairings(for: owner)
    }

    /// Accepts nothing any more, and releases the sockets on which centrals wait for the next run.
    ///
    /// A pairing that runs ends, unless its bond is being stored: that central may use it from now on.
    func releaseSockets() async -> [Int32] {
        isEnded = true
        channels.end()
        let radio = await adapter.takeListener(of: owner)
        await adapter.refuseCentrals(of: owner)
        return [radio, socket.release()].compactMap(\.self)
    }
}
