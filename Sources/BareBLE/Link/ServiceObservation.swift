/// Whether the peer announces changes of its services.
enum ServiceObservation: Equatable {
    case off
    /// One call is asking for it, in vain where the services have changed meanwhile. Nobody else ends this state.
    case asking(isInVain: Bool)
    case on
    /// It did, until a change of the services took that away.
    case lost

    var isAsking: Bool {
        if case .asking = self { true } else { false }
    }

    /// Whether the peer must be asked first.
    var isWanting: Bool {
        switch self {
        case .off, .lost: true
        case .asking, .on: false
        }
    }
}
