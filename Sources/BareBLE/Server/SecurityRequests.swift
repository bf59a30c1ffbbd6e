internal import BLECore
internal import BLELinux

// The requests for security of one served link: the tasks that wait for what its central does
// (`LocalPeripheral.requestSecurity`).
//
// Duties
// - Has the kernel send a Security Request, unless the link has the security already. `SMP_SECURITY_REQUEST`.
// - Resumes the tasks when the encryption has changed, a pairing has ended, the central has refused, or the link has
//   ended. Each looks at the security of the link itself then: what it requires may differ from what others do.
//
// Invariants
// - Each request ends once: with the security, or with one error; at the latest with the link.
// - A link that is encrypted while its central pairs does not have the security yet: the key may become no bond.
// - Only the event loop's thread uses it.

/// The tasks that have requested security of a central.
// Unchecked: only the loop's thread touches its state.
final class SecurityRequests: @unchecked Sendable {
    static let operation = "request security"

    private let peripheral: Peripheral
    private let isInbound: Bool
    private let waiting: Waiters<Result<Void, BLEError>>
    private var hasLinkEnded = false

    /// - Parameters:
    ///   - peripheral: The link.
    ///   - isInbound: Whether the central has made it.
    init(of peripheral: Peripheral, isInbound: Bool) {
        self.peripheral = peripheral
        self.isInbound = isInbound
        waiting = Waiters(on: peripheral.loop)
    }

    private var security: LinkSecurity { peripheral.assumeIsolated { $0.security } }

    /// Requests security of the central, and waits until the link has it.
    ///
    /// - Throws: `BLEError` with the codes of `LocalPeripheral.requestSecurity`.
    func request(
        _ required: PairingOptions.RequiredSecurity, until deadline: BootInstant,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(BLEError) -> LinkSecurity {
        guard isInbound else {
            throw error(.invalidArgument, "this side has made the link", hint: "Call `Peripheral.pair`.")
        }
        let controls = try radio()
        if security.satisfies(required), !controls.isPairing() { return security }
        try await controls.requestSecurity(required, CallContext(.text(Self.operation), until: deadline))
        while true {
            // While the central pairs, the link may be encrypted with a key that becomes no bond.
            if security.satisfies(required), !controls.isPairing() { return security }
            let end = await waiting.wait(until: deadline, isolation: isolation) { _ in
                hasLinkEnded ? .failure(error(.disconnected, "the link has ended")) : nil
            }
            switch end {
            case .resumed(.success) where security.isEncrypted && !controls.isPairing():
                guard security.satisfies(required) else {
                    throw error(
                        .insufficientSecurity,
                        "the link is encrypted with a key that is worth less than what is required",
                        hint: "Require as much in `CentralPairingOptions`, so that no weaker bond is made.")
                }
            case .resumed(.success): continue
            case .resumed(.failure(let error)):
                // A central that keeps no bonds has encrypted the link all the same.
                guard security.satisfies(required) else { throw error }
            case .timedOut:
                throw error(
                    .timedOut, "the central has not reacted in time",
                    hint: "Its user may have to confirm. Without a reaction the kernel ends the link after 30 s.")
            case .cancelled: throw error(.cancelled, "the task was cancelled")
            }
        }
    }

    private func radio() throws(BLEError) -> LinkControls {
        try peripheral.assumeIsolated { peripheral in
            Result { () throws(BLEError) in try peripheral.radio(during: Self.operation) }
        }.get()
    }

    private func error(
        _ code: BLEError.Code, _ reason: String, hint: String? = nil, origin: BLEError.Origin? = nil
    ) -> BLEError {
        BLEError(code, subject: peripheral.name, during: Self.operation, because: reason, hint: hint, origin: origin)
    }

    // MARK: What has happened

    /// The security of the link has changed.
    func securityChanged() { waiting.resumeAll(.success(())) }

    /// A pairing of the central has ended.
    func pairingEnded(_ result: Result<Bond, BLEError>) { waiting.resumeAll(result.map { _ in }) }

    /// The central does not follow a request; returns whether there was one.
    func refused(_ error: BLEError) -> Bool {
        guard !waiting.isEmpty else { return false }
        waiting.resumeAll(.failure(error))
        return true
    }

    func linkEnded(_ reason: DisconnectReason) {
        hasLinkEnded = true
        waiting.resumeAll(
            .failure(
                error(
                    .disconnected, "the link ended: \(reason)",
                    hint: "The central may have lost its bond, or have been asked 30 s ago.", origin: reason.origin)))
    }
}
