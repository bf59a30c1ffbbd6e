import BLECore
import TestSupport
import Testing

/// Which refusals have a recovery action, and how often.
@Suite struct CallRecoveryTests {
    private typealias Attempts = CallRecovery.Attempts

    private static let securityErrors: [(ATTErrorCode, SecurityLevel)] = [
        (.insufficientAuthentication, .authentication), (.insufficientAuthorization, .authorization),
        (.insufficientEncryptionKeySize, .longerKey), (.insufficientEncryption, .encryption),
    ]

    private func action(
        _ recovery: inout CallRecovery, _ code: ATTErrorCode?, at handle: AttributeHandle? = 3,
        after attempts: Attempts = Attempts(), mayUpgrade: Bool = true, earlier: Set<AttributeHandle> = []
    ) -> CallRecovery.Action? {
        recovery.action(
            for: code, at: handle, after: attempts, mayUpgrade: mayUpgrade, isFromEarlierLink: earlier.contains)
    }

    private func attempts(_ actions: CallRecovery.Action...) -> Attempts {
        actions.reduce(into: Attempts()) { $0.succeeded($1) }
    }

    @Test func aSecurityErrorAsksForItsLevel() {
        var recovery = CallRecovery()
        for (code, level) in Self.securityErrors {
            #expect(action(&recovery, code) == .upgradeSecurity(level, for: 3))
            #expect(action(&recovery, code, mayUpgrade: false) == nil)
            #expect(action(&recovery, code, at: nil) == nil)
        }
    }

    @Test func anUpgradeIsTriedOncePerCall() {
        var recovery = CallRecovery()
        let once = attempts(.upgradeSecurity(.encryption, for: 3))
        // Another level is an upgrade too.
        #expect(action(&recovery, .insufficientAuthentication, at: 4, after: once) == nil)
        // Other calls ask for it, except where it has not helped.
        #expect(action(&recovery, .insufficientAuthentication, at: 4) == nil)
        #expect(action(&recovery, .insufficientAuthentication, at: 5) == .upgradeSecurity(.authentication, for: 5))
        #expect(action(&recovery, .insufficientEncryption, at: 4) == .upgradeSecurity(.encryption, for: 4))
    }

    @Test func anUpgradeThatHasNotHelpedMayHelpAfterAChangeOfServices() {
        var recovery = CallRecovery()
        _ = action(&recovery, .insufficientEncryption, after: attempts(.upgradeSecurity(.encryption, for: 3)))
        #expect(action(&recovery, .insufficientEncryption) == nil)
        recovery.servicesChanged()
        #expect(action(&recovery, .insufficientEncryption) == .upgradeSecurity(.encryption, for: 3))
    }

    @Test func servicesAreRediscoveredOncePerCall() {
        var recovery = CallRecovery()
        #expect(action(&recovery, .databaseOutOfSync, at: nil) == .resynchronize(.outOfSync))
        let once = attempts(.resynchronize(.outOfSync))
        #expect(action(&recovery, .databaseOutOfSync, after: once) == nil)
        #expect(action(&recovery, .invalidHandle, after: once, earlier: [3]) == nil)
        // The other kind is still possible, and the next call begins with none.
        #expect(action(&recovery, .insufficientEncryption, after: once) == .upgradeSecurity(.encryption, for: 3))
        #expect(action(&recovery, .databaseOutOfSync) == .resynchronize(.outOfSync))
    }

    @Test func aHandleThatWasNotKnownContradictsNothing() {
        var recovery = CallRecovery()
        #expect(action(&recovery, .invalidHandle, earlier: [3]) == .resynchronize(.invalidHandle))
        #expect(action(&recovery, .invalidHandle, earlier: [4]) == nil)
        #expect(action(&recovery, .invalidHandle, at: nil, earlier: [3]) == nil)
    }

    @Test func otherFailuresHaveNoAction() {
        var recovery = CallRecovery()
        let codes = (0...255).map { ATTErrorCode(rawValue: $0) }
        let recoverable = Set(Self.securityErrors.map(\.0) + [.databaseOutOfSync, .invalidHandle])
        for code in codes where !recoverable.contains(code) { #expect(action(&recovery, code, earlier: [3]) == nil) }
        #expect(action(&recovery, nil, earlier: [3]) == nil)
    }
}
