internal import BLECore
internal import BLELinux

// How a task of the adapter waits. Owners know a task by its number alone.

extension Adapter {
    /// Why a task resumes.
    enum Wake: Sendable {
        case resumed
        /// The command that it waits for has ended.
        case finished(Result<HCICommandComplete, HCICommandFailure>)
        /// The adapter is under management, or cannot be.
        case managed(Result<ManagementSetup.Managed, ManagementSetup.Failure>)
        /// The kernel has the lists of keys, or could not be given them.
        case listsLoaded(ManagementSetup.Failure?)
        /// The encryption of a link has changed, or failed.
        case encryption(HCIStatus)
        /// The encryption of a link by a command has ended.
        case encrypted(Result<CommandEncryption.KeyUse, LinkEncryption.Failure>)
        /// The kernel wanted to pair a peer, because it does not have the key of the bond.
        case keyMissing(PeerID)
        /// The pairing has ended; with the bond that was stored.
        case paired(Result<BondRecord?, PairingFailure>)
        /// What it waits for cannot be.
        case failed(BLEError)
        case timedOut
        case cancelled
    }

    /// Waits until `wake` is called with the number that `begin` is given, until the deadline, or until the task is
    /// cancelled.
    ///
    /// - Returns: Why it resumes, and its number; 0 for a task that was cancelled before.
    func suspend(
        until deadline: BootInstant? = nil, interruption: WaitInterruption = .ends, _ begin: (UInt64) -> Void
    ) async -> (wake: Wake, number: UInt64) {
        var number: UInt64 = 0
        let end = await waiting.wait(until: deadline, interruption: interruption) {
            number = $0
            begin($0)
            return nil
        }
        switch end {
        case .resumed(let wake): return (wake, number)
        case .timedOut: return (.timedOut, number)
        case .cancelled: return (.cancelled, number)
        }
    }

    func wake(_ number: UInt64, _ wake: Wake = .resumed) { waiting.resume(number, wake) }

    func wake(_ numbers: [UInt64]) {
        for number in numbers { wake(number) }
    }

    /// Tasks that wait for this adapter, and commands that are out.
    package var outstanding: Int {
        waiting.count + hci.unfinishedCommands + initiator.outstanding + identification.waitingTasks
            + coordinator.outstanding + advertiser.outstanding + instances.outstanding + links.encryptionWaiters.count
    }
}
