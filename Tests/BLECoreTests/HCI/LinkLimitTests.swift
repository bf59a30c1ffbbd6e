import BLECore
import TestSupport
import Testing

@Suite struct LinkLimitTests {
    @Test func withoutALimitEveryConnectProceeds() {
        let limit = LinkLimit()
        for links in 0...20 { #expect(limit.advice(links: links) == .proceed) }
    }

    @Test func whatIsConfiguredIsNeverExceeded() {
        var limit = LinkLimit(3)
        #expect(limit.advice(links: 2) == .proceed)
        #expect(limit.advice(links: 3) == .full(limit: 3))
        limit.held(beside: 7)
        #expect(limit.advice(links: 3) == .full(limit: 3))
        // Less than one would permit nothing.
        #expect(LinkLimit(0).advice(links: 0) == .proceed)
    }

    @Test(.row("W49")) func aRefusalTeachesALimitAndALinkBeyondItCorrectsThat() {
        var limit = LinkLimit()
        limit.refused(beside: 5)
        #expect(limit.advice(links: 4) == .proceed)
        #expect(limit.advice(links: 5) == .wait(.seconds(4)))
        // The lower one of a configured and a learnt limit counts.
        var both = LinkLimit(6)
        both.refused(beside: 5)
        #expect(both.advice(links: 5) == .wait(.seconds(4)))
        #expect(both.advice(links: 6) == .full(limit: 6))
        limit.held(beside: 5)
        #expect(limit.advice(links: 5) == .proceed)
        #expect(limit.advice(links: 6) == .wait(.seconds(4)))
        // A link within it says nothing.
        limit.held(beside: 2)
        #expect(limit.advice(links: 6) == .wait(.seconds(4)))
    }

    @Test func aRefusalOfTheOnlyLinkSaysNothingOfTheirNumber() {
        var limit = LinkLimit()
        limit.refused(beside: 0)
        #expect(limit.advice(links: 0) == .proceed)
    }
}
