import BareBLE

extension BLEError {
    /// Whether the peer was too slow, so that more time may help.
    private var isOfSlowPeer: Bool { code == .timedOut && origin == .peer }

    /// The same failure of an operation, after the program has ended the link: the library's hint counts on that.
    var afterDisconnect: BLEError {
        guard isOfSlowPeer else { return self }
        return with(hint: "Try again, or allow more time.")
    }

    /// The same failure of a command that has ended, with the option that allows more time.
    var ofEndedCommand: BLEError {
        guard isOfSlowPeer else { return self }
        let option = "--timeout sets the time."
        return with(hint: hint.map { "\($0) \(option)" } ?? option)
    }
}
