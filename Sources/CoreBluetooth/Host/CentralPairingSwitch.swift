// Whether centrals may pair.
//
// Invariants
// - One change is made at a time, in the order of the calls. Each looks at what is needed when its turn comes.
// - A pairing that runs goes on when none is needed any more.
// - Only the actor that owns it uses it.

internal import BLELinux
internal import BareBLE
internal import Logging

/// Lets centrals pair while something needs it.
final class CentralPairingSwitch {
    /// How they may.
    private let options: CentralPairingOptions
    private let loop: EventLoop
    private let logger: Logger
    /// The newest change; it follows the one before.
    private var change: Task<Void, Never>?

    init(_ options: CentralPairingOptions, on loop: EventLoop, logger: Logger) {
        self.options = options
        self.loop = loop
        self.logger = logger
    }

    /// Lets the centrals of a local peripheral pair, or lets no further one, as it is needed by then.
    ///
    /// - Returns: The change.
    func adjust(_ local: LocalPeripheral, isNeeded: @escaping @Sendable () async -> Bool) -> Task<Void, Never> {
        let former = change
        let next = Task(executorPreference: loop) { [options, logger] in
            await former?.value
            let isAllowed = await local.allowsPairing
            let mayPair = await isNeeded()
            guard mayPair != isAllowed else { return }
            guard mayPair else { return await local.refuseFurtherPairing() }
            do throws(BLEError) {
                try await local.allowPairing(options)
            } catch  where error.code == .cancelled {
                // The local peripheral has been stopped meanwhile.
            } catch {
                logger.error("centrals cannot pair: \(error)")
            }
        }
        change = next
        return next
    }
}
