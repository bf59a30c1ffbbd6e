internal import BLECore
internal import BLELinux

// What a link knows of its security: when it was encrypted, and what has been tried to get there.
//
// Invariants
// - A link that has been encrypted ends when it no longer is, before another packet is delivered.
// - Pairing on demand happens once on a link for each level that the peer requires. Then calls fail, with the reason.
//   It does not happen after bonds were damaged, until the file that they were moved to is removed.

/// The security of a link, as its peripheral follows it.
final class LinkProtection {
    /// The program's own means to make the link more secure.
    let raiseSecurity: (@Sendable (Configuration.SecurityRequest) async -> Bool)?
    /// How to pair for a call that is refused; `nil` for a program with means of its own,
    /// and for a link without a radio.
    let onDemand: PairingOptions?
    /// Computes the codes of writes that are signed with the key of a bond.
    let writeSignature: BondSigners.Code?
    /// Whether the link has been encrypted.
    private(set) var isSecured = false
    /// Whether what is remembered of the peer has been checked on this link.
    private(set) var isValidated = false
    private var failures: [SecurityLevel: BLEError] = [:]
    /// The last pairing on demand, with the reason for its failure.
    private(set) var pairing: Task<BLEError?, Never>?
    /// Called once the link is encrypted.
    private var observer: (@Sendable (LinkSecurity) -> Void)?
    /// Called when pairing on demand has failed.
    private(set) var reportFailure: (@Sendable (BLEError) -> Void)?

    init(_ configuration: Configuration, hasRadio: Bool) {
        raiseSecurity = configuration.raiseSecurity
        onDemand = configuration.raiseSecurity == nil && hasRadio ? configuration.security?.onDemand : nil
        writeSignature = configuration.writeSignature
    }

    /// Whether a refused call may be repeated with more security.
    var mayUpgrade: Bool { raiseSecurity != nil || onDemand != nil }

    /// The link is encrypted.
    func secured(_ security: LinkSecurity) {
        isSecured = true
        observer?(security)
        observer = nil
    }

    /// Has a handler called once the link is encrypted. It replaces an earlier one.
    func onSecured(_ handler: @escaping @Sendable (LinkSecurity) -> Void) { observer = handler }

    /// What is remembered of the peer has been checked, or dropped.
    func validated() { isValidated = true }

    /// Pairing on demand has begun.
    func began(_ pairing: Task<BLEError?, Never>) { self.pairing = pairing }

    /// Why pairing for a level has failed on this link.
    func failure(of level: SecurityLevel) -> BLEError? { failures[level] }

    func failed(_ level: SecurityLevel, _ error: BLEError) { failures[level] = error }

    func onFailure(_ report: @escaping @Sendable (BLEError) -> Void) { reportFailure = report }
}

extension Peripheral {
    /// After that time the kernel's view follows an event of the controller, as a rule.
    private static let settlingTime: Duration = .milliseconds(20)
    /// The longest time between two looks at a kernel that is late.
    private static let longestSettlingTime: Duration = .seconds(1)

    /// The security of the link.
    ///
    /// `LinkSecurity.none` after the link's end, and for a link without a radio.
    public var security: LinkSecurity {
        guard end == nil, let controls, let descriptor = link.descriptor else { return .none }
        return controls.security(descriptor)
    }

    /// Whether there is a bond with the peer.
    var isBonded: Bool { controls?.bond() != nil }

    /// Returns why a link may not be used: `.notBonded` for a link to a bonded peer that is not encrypted with the key
    /// of its bond, and for a peer without a bond that is demanded. `nil` if it may.
    func securityError(_ demand: ConnectOptions.SecurityDemand, during operation: String) -> BLEError? {
        guard demand != .none, let controls else { return nil }
        if controls.bond() == nil {
            // On a link where a pairing has failed the bond is not used: another device may be at its other end.
            guard demand.requiresBond || controls.isPeerBonded() else { return nil }
            return controls.missingBond(name, operation)
        }
        guard !security.isEncrypted else { return nil }
        return BLEError(
            .notBonded, subject: name, during: operation,
            because: "there is a bond, and this link is not encrypted with its key", hint: "Connect again.",
            origin: .peer)
    }

    /// Returns why a link that was not made for this demand may not be taken: as `securityError`, and for a private
    /// address that may be a bonded peer's. A connect that makes its link has checked the address before.
    func takingError(_ demand: ConnectOptions.SecurityDemand, during operation: String) -> BLEError? {
        securityError(demand, during: operation) ?? controls?.strangerError(demand, operation)
    }

    /// Follows the encryption of the link from its beginning.
    func watchEncryption() {
        guard let controls else { return }
        controls.watchEncryption { [weak self] isEncrypted in
            self?.assumeIsolated { $0.encryptionChanged(isEncrypted) }
        }
        if controls.bond() != nil { secured() }
    }

    /// Looks whether the link is encrypted.
    func secured() {
        guard !protection.isSecured else { return }
        let security = security
        guard security.isEncrypted else { return }
        protection.secured(security)
        readEventsBeforePackets()
        let bond = controls?.bond()
        if let bond, peerDatabase.mayBeForged(under: bond) { dropCache(filledBefore: bond) }
        kept.secured(after: subscriptionHub.active)
        guard bond != nil else { return }
        // A central has encrypted it, or the peer has asked for that.
        controls?.recordEncryption()
        subscriptionHub.keepEarlyValues()
    }

    /// Has a handler called on the loop once the link is encrypted, at once if it is.
    func onSecured(_ handler: @escaping @Sendable (LinkSecurity) -> Void) {
        if protection.isSecured { handler(security) } else { protection.onSecured(handler) }
    }

    private func encryptionChanged(_ isEncrypted: Bool) {
        guard end == nil else { return }
        if isEncrypted {
            // This event is read before the kernel itself has acted on it.
            lookAtEncryption(after: Self.settlingTime)
        } else if protection.isSecured {
            // From now on nothing proves who sends.
            let controls = controls
            close(.other(.authenticationFailure, errorNumber: nil))
            Task(executorPreference: loop) { await controls?.disconnect() }
        }
    }

    /// Looks whether the link is encrypted by now, several times where the kernel is late: without packets of the peer,
    /// nothing else would.
    private func lookAtEncryption(after pause: Duration) {
        _ = loop.schedule(at: loop.now() + pause) { [weak self] in
            self?.assumeIsolated { peripheral in
                guard peripheral.end == nil else { return }
                peripheral.secured()
                peripheral.serverSecurityMayHaveChanged()
                guard peripheral.controls?.encryptionBeginning() != nil, !peripheral.security.isEncrypted,
                    pause < Self.longestSettlingTime
                else { return }
                peripheral.lookAtEncryption(after: pause * 2)
            }
        }
    }

    // MARK: On demand

    /// Pairs for a call that the peer has refused; returns whether the call is worth repeating.
    func pairOnDemand(_ request: Configuration.SecurityRequest) async -> Bool {
        guard let options = protection.onDemand, request.level != .authorization,
            protection.failure(of: request.level) == nil
        else { return false }
        let isBonded = controls?.bond() != nil
        guard !isBonded, !security.isEncrypted else { return false }
        if let damage = controls?.bondDamage() {
            // One of the lost bonds may be the peer's, whose address another device may use.
            protection.failed(request.level, BLEError(notPairedOnDemandAfter: damage))
            return false
        }
        let pairing = Task(executorPreference: loop) { () async -> BLEError? in
            do throws(BLEError) {
                try await self.pair(options)
                return nil
            } catch {
                return error
            }
        }
        protection.began(pairing)
        guard let error = await pairing.value else { return true }
        // A peer that keeps no bonds may still have an encrypted link. What its key is worth is not known.
        if security.satisfies(options.require) { return true }
        protection.failed(request.level, error)
        protection.reportFailure?(error)
        return false
    }

    /// Waits for the pairing on demand that runs, if one does: it may outlive the link by some seconds.
    ///
    /// - Returns: Why the last one has failed; `nil` if it has not, and if there was none.
    package func pairingFailure() async -> BLEError? { await protection.pairing?.value }

    /// Sets what is notified when pairing on demand has failed: before the call fails,
    /// and perhaps after the end of the link.
    func onPairingFailure(_ report: @escaping @Sendable (BLEError) -> Void) { protection.onFailure(report) }

    /// Adds to a refusal for lack of security what can be done about it.
    func explained(_ failure: BLEError) -> BLEError {
        guard protection.onDemand != nil, let level = failure.requiredSecurity, level != .authorization else {
            return failure
        }
        if let cause = protection.failure(of: level) { return failure.explained(by: cause) }
        if security.isEncrypted {
            return failure.hinting(
                "The link is encrypted already, and the peer wants a better key: forget the bond, and pair again with "
                    + "an agent that excludes a man in the middle.")
        }
        guard controls?.bond() != nil else { return failure }
        return failure.hinting("There is a bond, and the link was made without it: connect as the bond demands.")
    }
}
