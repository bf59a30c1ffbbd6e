internal import BLELinux

/// The far end of a connection that the kernel completes, until the device at that end takes it.
final class FarEnd: Sendable {
    private let socket: Lock<Int32>

    init(_ descriptor: Int32) {
        socket = Lock(descriptor)
    }

    deinit {
        let descriptor = take()
        if descriptor >= 0 { _ = LinkSocket(adopting: descriptor) }
    }

    /// True if the other end was closed.
    var isHungUp: Bool {
        socket.withLock { descriptor in
            let link = LinkSocket(adopting: descriptor)
            let isHungUp = link.isHungUp
            _ = link.release()
            return isHungUp
        }
    }

    /// Closes it, so that the other end has no error but the reported one.
    func close() {
        let descriptor = take()
        guard descriptor >= 0 else { return }
        var link = LinkSocket(adopting: descriptor)
        // Unread packets would make the end a reset.
        while link.receivePacket() != nil {}
    }

    /// Returns the descriptor, which the caller owns from now on, or -1 if it was taken before.
    func take() -> Int32 {
        socket.withLock { descriptor in
            defer { descriptor = -1 }
            return descriptor
        }
    }
}
