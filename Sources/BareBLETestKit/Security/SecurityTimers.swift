internal import BLECore
internal import BLELinux

/// The times of security on a virtual radio: how long an encryption takes, and when a pairing times out.
///
/// A link has one timeout at most. Only the radio uses it, on its event loop.
final class SecurityTimers {
    typealias LinkName = VirtualManagement.LinkName

    private let loop: EventLoop
    /// The time that a controller takes to encrypt a link.
    private(set) var encryptionTime = SecurityTimers.usualEncryptionTime
    private var timeouts: [LinkName: TimerID] = [:]

    /// The time that a controller takes to encrypt a link, unless it is set.
    static let usualEncryptionTime: Duration = .milliseconds(10)

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Whether no pairing can time out.
    var isIdle: Bool { timeouts.isEmpty }

    func setEncryptionTime(_ time: Duration) {
        encryptionTime = time
    }

    /// Calls a handler when a pairing on a link times out, unless a later call or `cancelTimeouts` prevents it.
    func setTimeout(of link: LinkName, after delay: Duration, _ handler: @escaping EventLoop.Handler) {
        let timer = loop.schedule(at: loop.now() + delay) { [weak self] in
            self?.timeouts[link] = nil
            handler()
        }
        timeouts.updateValue(timer, forKey: link).map(loop.cancel)
    }

    /// Cancels the timeouts of the links on which no pairing runs.
    func cancelTimeouts(unless isPairing: (LinkName) -> Bool) {
        for (link, timer) in timeouts where !isPairing(link) {
            loop.cancel(timer)
            timeouts[link] = nil
        }
    }
}
