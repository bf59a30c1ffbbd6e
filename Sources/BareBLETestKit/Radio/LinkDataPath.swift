internal import BLECore

/// What becomes of the data of one link in a controller that loses some of it.
struct LinkDataPath {
    /// What becomes of a packet that the peer has sent.
    enum Fate {
        case arrives
        /// It comes after this time.
        case comesLate(Duration)
        case isLost
    }

    /// The delay of a packet that what follows it overtakes.
    private static let delay: Duration = .milliseconds(12)
    /// The time in which a controller empties its buffers.
    private static let turn: Duration = .milliseconds(10)

    private let loss: VirtualPersonality.DataLoss
    private var receivedCount = 0
    private var turnBegan: BootInstant?
    /// Packets that this side has sent since then.
    private var sentCount = 0

    init(_ loss: VirtualPersonality.DataLoss) {
        self.loss = loss
    }

    /// The peer sends a packet.
    mutating func received() -> Fate {
        receivedCount += 1
        return switch loss {
        case .received: .isLost
        case .receivedEvery(let period): receivedCount.isMultiple(of: period) ? .isLost : .arrives
        case .reordersEvery(let period): receivedCount.isMultiple(of: period) ? .comesLate(Self.delay) : .arrives
        case .sentBeyond: .arrives
        }
    }

    /// This side sends a packet.
    ///
    /// - Returns: Whether it is lost.
    mutating func losesSent(at now: BootInstant) -> Bool {
        guard case .sentBeyond(let count) = loss else { return false }
        if let began = turnBegan, now < began + Self.turn {
            sentCount += 1
        } else {
            turnBegan = now
            sentCount = 1
        }
        return sentCount > count
    }
}
