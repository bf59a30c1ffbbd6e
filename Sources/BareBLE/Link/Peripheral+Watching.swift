internal import BLECore
internal import BLELinux

extension Peripheral {
    /// How often the kernel is asked to watch a link again that it has ceased to watch.
    private static let watchAttempts = 100
    private static let watchPause: Duration = .milliseconds(20)

    /// The kernel has ceased to watch the socket: it is asked again a little later, and a link that it does not watch in the end is
    /// over, with the kernel's reason.
    func watchAgain(attempts: Int = watchAttempts) {
        _ = loop.schedule(at: loop.now() + Self.watchPause) { [weak self] in
            self?.assumeIsolated { $0.watchNow(attempts) }
        }
    }

    private func watchNow(_ attempts: Int) {
        guard let descriptor = socket?.descriptor, !isEnding else { return }
        let failure = loop.onReadable(descriptor) { [weak self] in
            self?.assumeIsolated { $0.readable() }
        }
        guard let failure else { return }
        if attempts > 1 { watchAgain(attempts: attempts - 1) } else { linkEnded(failure.errno) }
    }
}
