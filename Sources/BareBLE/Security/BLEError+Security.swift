internal import BLECore
internal import BLELinux
internal import Glibc

extension BLEError {
    static let managementCapability =
        "Run as root, or give the program the capability: `setcap cap_net_raw,cap_net_admin+ep PROGRAM`."
    /// Where a bond may be that was not found.
    static let whereBondsAre = "A bond belongs to the address of one adapter: `blescan bonds` lists those of all."
    private static let examination = "`blescan doctor` examines the adapter; `dmesg` shows what the kernel reports."
    private static let powerCycle = "Disconnect all peers and try again: the adapter is then switched off and on."

    /// The adapter could not be put under management.
    init(_ failure: ManagementSetup.Failure, adapter: String, during operation: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch failure {
            case .notPermitted:
                (
                    .notPermitted, "this process lacks CAP_NET_ADMIN, which the kernel demands for pairing",
                    Self.managementCapability
                )
            case .adapterGone:
                (.noAdapter, "the adapter is not there any more", "Plug it in again, or choose another one.")
            case .noLowEnergy: (.unsupported, "the adapter has no Low Energy", "Choose another adapter.")
            case .blocked:
                (.blocked, "the adapter is blocked by rfkill", "Unblock it: `rfkill unblock bluetooth`.")
            case .powerUnchanged:
                (.adapterDown, "the adapter could not be switched on", "Unplug it and plug it in again.")
            case .listRefused(let list, let status):
                (.system, "the kernel refused the list of \(list.words): \(status)", Self.examination)
            case .listTooLong(let list, let limit):
                (
                    .tooLong, "the kernel takes \(limit) bytes of \(list.words) and there are more",
                    "Forget bonds that are not used."
                )
            case .notManaged:
                (
                    .adapterDown, "the adapter is not under management",
                    "Another program has switched it off, or it was unplugged meanwhile: try again."
                )
            case .cannotPair:
                (
                    .pairingUnavailable,
                    "the adapter was switched on without the kernel's management, so the kernel cannot pair with it",
                    Self.powerCycle
                )
            case .switchedOff: (.adapterDown, "the adapter is switched off", "Switch it on.")
            case .bondableCleared:
                (
                    .adapterShared, "another program keeps making the adapter not bondable",
                    "End that program, such as bluetoothd, and try again."
                )
            case .command(let failure): (.system, "\(failure)", Self.examination)
            }
        self.init(code, subject: adapter, during: operation, because: reason, hint: hint)
    }

    /// A pairing failed.
    init(
        _ failure: PairingExchange.Failure, pairing peer: PeerID, _ options: PairingOptions, during operation: String
    ) {
        if case .notReady(let reason) = failure {
            self.init(reason, adapter: "\(peer)", during: operation)
            return
        }
        let (code, reason, hint): (Code, String, String?) =
            switch failure {
            case .command(_, .busy):
                (.busy, "another program pairs with it", "Try again.")
            case .command(_, .permissionDenied):
                (
                    .notPermitted, "this process lacks CAP_NET_ADMIN, which the kernel demands for pairing",
                    Self.managementCapability
                )
            case .command(_, .notPowered):
                (.adapterDown, "the adapter is switched off", "Switch it on.")
            case .command(_, .notSupported):
                (
                    .notSupported, "the kernel cannot pair with this adapter",
                    "Use another adapter; `blescan doctor` names what this one lacks."
                )
            case .command(let code, let status):
                (
                    .pairingFailed, "the kernel refused management command 0x\(Hex.encode(code)): \(status)",
                    Self.examination
                )
            case .noResponse(let code):
                (
                    .timedOut, "the kernel did not respond to management command 0x\(Hex.encode(code))",
                    "Unplug the adapter and plug it in again. `dmesg` shows what the kernel reports."
                )
            case .timedOut(let question?):
                (
                    .timedOut, "there was no reply in time to the question \(question.words)",
                    "Reply within `PairingOptions.timeout`, and within 25 s: the protocol allows 30 s."
                )
            case .timedOut(nil):
                (
                    .timedOut, "the peer did not finish the pairing in time",
                    "Confirm the pairing at the peer, or allow more time."
                )
            case .cancelled: (.cancelled, "the task was cancelled", nil)
            case .refusedHere(let question): Self.refusal(of: question, options)
            case .refusedByPeer where options.agent.outOfBand != nil:
                (
                    .pairingFailed, "the peer refused, or the out-of-band data is not its own",
                    "Get the data from the peer again: some devices change it with each pairing."
                )
            case .refusedByPeer:
                (
                    .pairingRefused, "the peer refused",
                    "Put the peer into its pairing mode, and remove an earlier pairing there."
                )
            case .wrongPasskey:
                (
                    .wrongPasskey, "the passkey that was entered here is not the peer's",
                    "Connect again, and enter the one that the peer shows then, or that is printed on it."
                )
            case .passkeyNotEntered:
                (
                    .pairingRefused, "another passkey was entered at the peer, or none",
                    "Connect again, and enter the passkey that is shown here at the peer."
                )
            case .numberRejected:
                (
                    .pairingRefused, "the number was rejected at the peer",
                    "Connect again, and confirm the number on both sides. If they differ, another device is between the two."
                )
            case .notProtected where options.agent.capability == .noInputNoOutput:
                (
                    .pairingFailed, "the agent can show and ask nothing, so nothing excludes a man in the middle",
                    "Give the agent the closures `show`, `compare` and `enter`, or require less."
                )
            case .notProtected:
                (
                    .pairingFailed, "the peer has no input or output that excludes a man in the middle",
                    "Require `.encrypted` of this peer, or pair by out-of-band data."
                )
            case .keyTooWeak:
                (
                    .pairingFailed, "the key is weaker than required",
                    "Require less, or use a peer with LE Secure Connections."
                )
            case .keyTooShort(let size):
                (
                    .keyTooShort, "the key has \(size) bytes",
                    "Lower `SecurityConfiguration.minimumKeySize` only if the link may be eavesdropped on."
                )
            case .alreadyEncrypted:
                (
                    .pairingFailed, "the link is encrypted already",
                    "Disconnect, and pair before anything encrypts the next link."
                )
            case .identityTaken:
                (
                    .pairingFailed, "the peer claims to be another device that is bonded",
                    "If it is that device, forget its bond first. Otherwise do not trust this peer."
                )
            case .noKey:
                (
                    .notBonded, "the link is encrypted, and the peer does not keep bonds",
                    "The encryption lasts until the link ends: pair on each link, or have the peer keep bonds."
                )
            case .noIdentity:
                (
                    .notBonded,
                    "the link is encrypted, and the peer hides its identity, so it would not be found again",
                    "The encryption lasts until the link ends. For a bond the peer has to distribute its identity address."
                )
            case .notEncrypted:
                (
                    .pairingUnavailable, "the kernel reports a pairing, and the link is not encrypted", Self.powerCycle
                )
            case .notStored: (.bondNotStored, "the bonds were closed before this one was stored", "Pair again.")
            case .linkLost: (.disconnected, "the link ended", "Connect again.")
            case .adapterLost:
                (.adapterDown, "the adapter went away or was switched off", "Check that it is plugged in and on.")
            case .notReady: (.adapterDown, "the adapter is not ready", nil)
            }
        self.init(
            code, subject: "\(peer)", during: operation, because: reason, hint: hint,
            origin: failure.isRefusalByPeer ? .peer : nil)
        if case .timedOut(nil) = failure { self = asEncryptionTimeout() }
    }

    /// A pairing that a central began has failed.
    init(_ failure: PairingResponder.Failure, pairingOf central: PeerID, _ options: CentralPairingOptions) {
        let operation = "pair with a central"
        let code: Code
        let reason: String
        let hint: String?
        switch failure {
        case .bondExists:
            (code, reason) = (.pairingRefused, "there is a bond with it, which it does not use")
            hint = "If it has lost the bond, forget it here, or let `CentralPairingOptions.replace` decide."
        case .tooManyFailures:
            (code, reason) = (.pairingRefused, "its pairings have failed too often in the last minute")
            hint = "Try again in a minute."
        case .tooManyUnconfirmed:
            (code, reason) = (.pairingRefused, "other centrals have got as many bonds as they may in a minute")
            hint = "Try again in a minute, or have the agent's closure `confirm` decide about each central."
        case .busy:
            (code, reason, hint) = (.busy, "another pairing runs", "Try again.")
        case .identityConnected:
            (code, reason) = (.pairingFailed, "the central claims to be another one that is connected")
            hint = "If it is the same device, pair again after the other link has ended. Otherwise do not trust it."
        case .pairing(.refusedByPeer):
            (code, reason, hint) = (.pairingRefused, "the central refused", "Pair again at the central.")
        case .pairing(.wrongPasskey):
            (code, reason) = (.wrongPasskey, "the passkey that was entered here is not the central's")
            hint = "Pair again at the central, and enter the one that it shows then."
        case .pairing(.passkeyNotEntered):
            (code, reason) = (.pairingRefused, "another passkey was entered at the central, or none")
            hint = "Pair again at the central, and enter the passkey there that is shown here."
        case .pairing(.numberRejected):
            (code, reason) = (.pairingRefused, "the number was rejected at the central")
            hint =
                "Pair again at the central, and confirm the number on both sides. If they differ, another device is "
                + "between the two."
        case .pairing(.refusedHere(.justWorks)) where options.agent.confirm == nil && !options.acceptsUnconfirmed:
            (code, reason) = (.pairingRefused, "nothing could be compared with it, and nobody may confirm that")
            hint = "Set the agent's closure `confirm`, or `acceptsUnconfirmed`."
        case .pairing(.timedOut(let question?)):
            (code, reason) = (.timedOut, "there was no reply in time to the question \(question.words)")
            hint = "Reply within `CentralPairingOptions.timeout`, and within 25 s: the protocol allows 30 s."
        case .pairing(.timedOut(nil)):
            (code, reason) = (.timedOut, "the central did not finish the pairing in time")
            hint = "Confirm the pairing at the central, or allow more time."
        case .pairing(.linkLost):
            (code, reason, hint) = (.disconnected, "the link ended", "Pair again at the central.")
        case .pairing(.cancelled):
            (code, reason) = (.cancelled, "pairing was ended here")
            hint = "Call `allowPairing` again."
        case .pairing(let failure):
            self.init(
                failure, pairing: central,
                PairingOptions(agent: options.agent, require: options.require, timeout: options.timeout),
                during: operation)
            return
        }
        let isPeers = if case .pairing(let failure) = failure { failure.isRefusalByPeer } else { false }
        self.init(
            code, subject: "\(central)", during: operation, because: reason, hint: hint,
            origin: isPeers ? .peer : nil)
    }

    /// The adapter was switched on by a program that does not use the management interface.
    init(cannotPairWith adapter: String, during operation: String) {
        self.init(ManagementSetup.Failure.cannotPair, adapter: adapter, during: operation)
    }

    /// A pairing was refused while another program manages the adapter.
    init(pairingSharedWithOthers peer: PeerID, during operation: String) {
        self.init(
            .adapterShared, subject: "\(peer)", during: operation,
            because: "it was refused, by the peer or by another program that manages the adapter",
            hint: "End that program, such as bluetoothd, and put the peer into its pairing mode.")
    }

    private static func refusal(
        of question: PairingExchange.Question, _ options: PairingOptions
    ) -> (Code, String, String?) {
        let agent = options.agent
        let missing: String? =
            switch question {
            case .justWorks: nil
            case .compare: agent.compare == nil ? "compare" : nil
            case .enter: agent.enter == nil ? "enter" : nil
            case .show: agent.show == nil ? "show" : nil
            }
        if let missing {
            return (
                .pairingFailed, "the peer needs an agent \(question.words)", "Give the agent the closure `\(missing)`."
            )
        }
        let hint =
            switch question {
            case .justWorks where agent.outOfBand != nil:
                "The peer does not use the out-of-band data, for which it needs LE Secure Connections: it may be another device."
            case .justWorks where agent.enter != nil:
                "The peer asks for no passkey. If it has none, pair without one: that does not prove which device it is."
            case .justWorks: "To pair all the same, have the closure `confirm` return `true`."
            case .compare: "If both sides show the same number, pair again and confirm it."
            case .enter: "Pair again, and return the passkey that the peer shows from the closure `enter`."
            case .show: "Pair again, and show the passkey to the user."
            }
        return (.pairingRefused, "the agent rejected the question \(question.words)", hint)
    }

    /// The link to a bonded peer would not be encrypted: this process cannot have it encrypted.
    static func keyNotPermitted(_ peer: PeerID) -> BLEError {
        BLEError(
            .notPermitted, subject: "\(peer)", during: "connect",
            because: "it is bonded, and without CAP_NET_RAW or CAP_NET_ADMIN the key of the bond cannot be used",
            hint: "Give the program one of them: `setcap cap_net_raw+ep PROGRAM`.")
    }

    /// The bond is stored, and its key cannot be used: it is not among the keys that the kernel is given.
    init(unusableBondWith peer: PeerID, _ refusal: BondRefusal, during operation: String) {
        let isMismatch = refusal == .otherAdapter
        self.init(
            isMismatch ? .adapterMismatch : .notBonded, subject: "\(peer)", during: operation,
            because: "its bond cannot be used: \(refusal)",
            hint: isMismatch
                ? "Plug in the adapter that made the bond, or forget the bond and pair again."
                : "Forget the bond and pair again.")
    }

    /// A task has removed the bond with a peer while that paired.
    init(forgottenInItsPairing peer: PeerID) {
        self.init(
            .bondNotStored, subject: "\(peer)", during: "pair",
            because: "the bond was forgotten while it was being made", hint: "Pair again.")
    }

    /// No peer is paired for a call that it refuses, because bonds were damaged, in this run or an earlier one.
    init(notPairedOnDemandAfter damage: BLEError) {
        self.init(
            .unusableState, subject: damage.subject, during: "pair",
            because: "stored bonds were damaged, and the device may have had one of them",
            hint:
                "If it is the right device, call `Peripheral.pair`, or run `blescan pair`. Once the file that they were "
                + "moved to is removed, the next run pairs on demand again.")
    }

    /// The peer has a bond that could not be read, and its link would not be encrypted.
    init(bondLostWith peer: PeerID, during operation: String) {
        self.init(
            .unusableState, subject: "\(peer)", during: operation,
            because: "its bond could not be read: it is damaged, or of a newer version",
            hint: "Pair again: connect with `.pairing`, or run `blescan pair`. Or forget the bond, with "
                + "`Central.forgetBond(with:)` or `blescan forget`; its links are not encrypted then.")
    }

    /// The peer does not accept the key of its bond.
    init(bondRejectedBy peer: PeerID, during operation: String, _ status: HCIStatus? = nil) {
        self.init(
            .bondRejected, subject: "\(peer)", during: operation,
            because: "it has lost the key of its bond, or another device uses its address",
            hint:
                "The bond is kept. If it is the right device, call `Central.forgetBond(with:)` and pair again, or have "
                + "`PairingOptions(replacing: .lostByPeer)` in the security of `ConnectOptions` replace the bond.",
            hciStatus: status)
    }
}

extension PairingExchange.Question {
    fileprivate var words: String {
        switch self {
        case .justWorks: "whether to pair with nothing to compare"
        case .compare: "whether both sides show the same number"
        case .enter: "for the passkey that the peer shows"
        case .show: "that shows a passkey"
        }
    }
}

extension ManagementSetup.List {
    fileprivate var words: String {
        switch self {
        case .identityResolvingKeys: "identity resolving keys"
        case .longTermKeys: "long term keys"
        }
    }
}

extension Hex {
    fileprivate static func encode(_ code: ManagementCommandCode) -> String {
        encode([UInt8(truncatingIfNeeded: code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)])
    }
}

// MARK: - Bonds on the disk

extension BLEError {
    /// Bonds of an adapter were moved aside, and the files are still among those of the directory; `nil` if none is.
    init?(bondsMovedAside files: BondFiles, among names: [String], during operation: String) {
        let moved = names.filter { files.isMovedAside($0) }
        guard !moved.isEmpty else { return nil }
        let paths = moved.map { files.path($0) }.joined(separator: ", ")
        self.init(
            .unusableState, subject: files.path(files.name), during: operation,
            because: "bonds were moved aside as damaged or newer, and nobody has decided about them",
            hint:
                "Restore them, or pair again what is missing in `blescan bonds`; then remove \(paths), which contains "
                + "keys.")
    }

    init(_ exposure: StoredFolder.Exposure, bonds path: String, during operation: String) {
        switch exposure {
        case .owner:
            self.init(
                .notPermitted, subject: path, during: operation, because: "it belongs to another user",
                hint: "Run as that user, or name another directory.")
        case .mode(let mode):
            self.init(
                .notPermitted, subject: path, during: operation,
                because: "other users have rights to it (mode \(String(mode, radix: 8)))",
                hint: "`chmod go= \(path)`; if others may have read keys, forget the bonds and pair again.")
        case .system(let error):
            self.init(error, bonds: path, during: operation)
        }
    }

    init(_ error: SystemCallError, bonds path: String, during operation: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch error.errno {
            case EACCES, EPERM, EROFS:
                (.notPermitted, "this user may not do that", "Change the permissions, or name another directory.")
            case ENOSPC, EDQUOT: (.diskFull, "the disk is full", "Free some space; the stored bonds are intact.")
            case ENOENT, ENOTDIR: (.system, "its directory does not exist", "Create the directory first.")
            case ELOOP: (.notPermitted, "it is a symbolic link", "Remove it.")
            default: (.system, "\(error.call) failed", error.remedy)
            }
        self.init(code, subject: path, during: operation, because: reason, hint: hint, errorNumber: error.errno)
    }

    init(_ refusal: BondRefusal, bondWith identity: PeerID, during operation: String) {
        let (code, hint): (Code, String?) =
            switch refusal {
            case .keyTooShort: (.keyTooShort, "`minimumKeySize` may be lowered, but such a key is no protection.")
            case .bondExists, .weakerKind, .weakerSize, .weakerLevel:
                (.bondNotStored, "If the peer was reset, forget the bond first, and pair again.")
            case .full, .listIsFull: (.bondNotStored, "Forget bonds that are not used.")
            case .notForStorage, .noIdentity, .identityKey:
                (.bondNotStored, "Let the peer keep bonds, and distribute its identity address; then pair again.")
            case .otherAdapter: (.bondNotStored, "Pair on the adapter that the file names.")
            case .foreignKey, .noKey, .surplusKeys, .noCentralKey, .kind, .invalidSize, .longerThanItsSize, .zeroKey,
                .publishedKey, .levelBeyondKey:
                (.bondNotStored, "The peer made this key: update its firmware, or do not trust it.")
            }
        self.init(code, subject: "\(identity)", during: operation, because: "\(refusal)", hint: hint)
    }

    /// The same failure, of a change.
    var asBondNotStored: BLEError {
        BLEError(
            .bondNotStored, subject: subject, during: operation, because: reason, hint: hint,
            errorNumber: errorNumber)
    }
}
