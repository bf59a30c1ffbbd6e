public import BareBLE
import Dispatch
import Glibc

// A lock that wants a passkey. It is bonded once, with a user at the terminal; from then on its links are encrypted
// before the first byte, without a question.

/// Reads a protected value of a lock, and pairs with it first if there is no bond yet.
///
/// - Throws: `BLEError`; with `.bondRejected` the lock has lost the bond: forget it, and call this again.
public func readLock(
    _ lock: PeerID, _ state: CharacteristicReference, of central: Central, agent: PairingAgent = .terminal
) async throws -> [UInt8] {
    try await central.withConnection(lock) { link in
        try await link.pair(PairingOptions(agent: agent, require: .authenticated, name: "Lock"))
        return try await link.read(state)
    }
}

extension PairingAgent {
    /// An agent that asks on the terminal for the passkey that the peer shows.
    public static var terminal: PairingAgent {
        PairingAgent(enter: { peer in
            print("Passkey that \(peer) shows: ", terminator: "")
            fflush(nil)
            // The agent runs on the event loop, which must not wait for a user.
            let line = await withCheckedContinuation { waiter in
                DispatchQueue.global().async { waiter.resume(returning: readLine()) }
            }
            return line.flatMap { Passkey($0) }
        })
    }
}
