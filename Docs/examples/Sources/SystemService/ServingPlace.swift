public import BareBLE

/// Where a daemon serves centrals, in the notation of the command line.
///
///     (nothing)           the adapter, where the daemon advertises
///     unix:/run/hrs.sock  a Unix SEQPACKET socket, for tests without a radio
public enum ServingPlace: Hashable, Sendable {
    /// The first adapter.
    case adapter
    /// A socket at this path.
    case socket(String)

    /// Parses what is left of the arguments; `nil` if it is neither.
    public init?(_ arguments: some Collection<String>) {
        guard let text = arguments.first else {
            self = .adapter
            return
        }
        guard arguments.count == 1, text.hasPrefix("unix:") else { return nil }
        self = .socket(String(text.dropFirst(5)))
    }

    /// Has a peripheral accept centrals, and advertises it on the adapter for as long as the result lives.
    ///
    /// - Parameter pairing: How centrals may pair on the adapter; without it they may not. A socket has no pairing.
    public func open(
        _ peripheral: LocalPeripheral, of central: Central, _ advertisement: Advertisement,
        pairing: CentralPairingOptions? = nil
    ) async throws(BLEError) -> Advertisement.Lease? {
        switch self {
        case .adapter:
            // After a boot the adapter is off, and without bluetoothd no other program switches it on.
            try await central.ready(powerOn: true)
            if let pairing { try await peripheral.allowPairing(pairing) }
            return try await peripheral.advertise(advertisement)
        case .socket(let path):
            try await peripheral.acceptCentrals(atSocket: path)
            return nil
        }
    }
}
