import Testing

@testable import BLELinux
@testable import BareBLE

/// A token's closure runs exactly once, whichever end comes first.
@Suite struct LifetimeTokenTests {
    private let runs = Lock(0)

    private var count: Int { runs.withLock { $0 } }

    private func token() -> LifetimeToken {
        LifetimeToken { [runs] in runs.withLock { $0 += 1 } }
    }

    @Test func itsReleaseEndsIt() {
        var first: LifetimeToken? = token()
        var second = first
        first = nil
        #expect(second != nil && count == 0)
        second = nil
        #expect(count == 1)
    }

    @Test func itEndsOnce() {
        var token: LifetimeToken? = token()
        token?.end()
        token?.end()
        #expect(count == 1)
        token = nil
        #expect(count == 1)
    }

    @Test func aDismissedOneDoesNothing() {
        var token: LifetimeToken? = token()
        #expect(token?.dismiss() == true)
        #expect(token?.dismiss() == false)
        token?.end()
        token = nil
        #expect(count == 0)
    }

    @Test func oneThatHasEndedCannotBeDismissed() {
        let token = token()
        token.end()
        #expect(!token.dismiss())
        #expect(count == 1)
    }

    /// The closure of an outer token may release an inner one.
    @Test func tokensMayBeNested() {
        let inner = Lock<LifetimeToken?>(token())
        var outer: LifetimeToken? = LifetimeToken { inner.withLock { $0.take() }?.end() }
        withExtendedLifetime(outer) {}
        outer = nil
        #expect(count == 1)
    }
}
