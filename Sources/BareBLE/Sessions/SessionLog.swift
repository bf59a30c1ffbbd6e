internal import BLECore
internal import BLELinux
internal import Logging

/// The log of a session, one line per entry: losses and new links of a peer at most once a minute for each reason.
struct SessionLog: Sendable {
    private let peer: String
    private let logger: Logger
    private let warnings: PeerWarnings

    init(of peer: String, in logger: Logger, _ warnings: PeerWarnings) {
        self.peer = peer
        self.logger = logger
        self.warnings = warnings
    }

    /// Logs an event of the links.
    func report(_ event: ReconnectMachine.Event, after failure: SessionFailure?, at now: BootInstant) {
        switch event {
        case .connecting, .connected, .disconnected(.never):
            logger.debug("session", metadata: ["peer": "\(peer)", "event": "\(event)"])
        case .ready:
            report("a link is ready", [:], after: failure, at: now)
        case .disconnected(let next):
            report(
                failure?.reason == nil ? "no link could be made" : "a link was lost", ["next": "\(Self.words(next))"],
                after: failure, at: now)
        case .gaveUp:
            logger.notice("a session gave up", metadata: ["peer": "\(peer)", "reason": "\(Self.words(failure))"])
        case .paused: logger.info("a session is paused", metadata: ["peer": "\(peer)"])
        case .ended: logger.info("a session has ended", metadata: ["peer": "\(peer)"])
        }
    }

    private func report(
        _ message: Logger.Message, _ details: Logger.Metadata, after failure: SessionFailure?, at now: BootInstant
    ) {
        let reason = failure == nil ? "first connect" : Self.words(failure)
        // The record must be bounded: the reason of an error may be any text.
        let kind = failure.map { $0.reason?.description ?? "\($0.error.code)" } ?? ""
        guard let leftOut = warnings.admit("\(message): \(kind)", at: now) else { return }
        var metadata = details
        metadata["peer"] = "\(peer)"
        metadata["reason"] = "\(reason)"
        if leftOut > 0 { metadata["left out"] = "\(leftOut)" }
        logger.info(message, metadata: metadata)
    }

    /// Describes why there was no link last.
    private static func words(_ failure: SessionFailure?) -> String {
        guard let failure else { return "the connection was not wanted" }
        return failure.reason?.description ?? failure.error.reason
    }

    private static func words(_ next: ReconnectMachine.Next) -> String {
        switch next {
        case .after(let pause): "connects again in \(Duration.milliseconds(pause.saturatedNanoseconds / 1_000_000))"
        case .whenAdapterReturns: "connects again when the adapter is back"
        case .never: "does not connect again"
        }
    }

    /// The log for values that are left out.
    func ofValues(on loop: EventLoop) -> LinkLog {
        LinkLog(logger: logger, peer: peer, warnings: PeerWarnings(), loop: loop)
    }
}
