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

    @Test func aRefusalOfTheOnlyLinkSetsNoLimit() {
        var limit = LinkLimit()
        limit.refused(beside: 0)
        #expect(limit.advice(links: 0) == .proceed)
    }

    /// What one connect learns at several times, in seconds, and how long it may take.
    struct Connect: Sendable {
        var limit: Int?
        let looks: [(time: Int, advice: LinkLimit.Advice, room: LinkLimit.Room)]
    }

    /// A guess is waited for once, until the first deadline, and no longer than the connect may take. What is
    /// configured holds at any time.
    @Test(.row("W49"), arguments: LinkLimitTests.connects) func aConnectWaitsForRoom(connect: Connect) {
        var wait = LinkLimit.Wait()
        for look in connect.looks {
            let room = wait.room(
                by: look.advice, at: Self.moment(look.time), until: connect.limit.map { Self.moment($0) })
            #expect(room == look.room)
        }
    }

    static let connects: [Connect] = [
        Connect(looks: [(1, .proceed, .free)]),
        Connect(looks: [(1, guess, missing(5)), (3, guess, missing(5)), (5, guess, .free), (6, guess, .free)]),
        Connect(looks: [(1, guess, missing(5)), (2, .proceed, .free), (4, guess, missing(5)), (5, guess, .free)]),
        Connect(limit: 3, looks: [(1, guess, missing(3)), (3, guess, .free)]),
        Connect(limit: 60, looks: [(1, guess, missing(5)), (5, guess, .free)]),
        Connect(limit: 60, looks: [(1, full, .full(limit: 6)), (60, full, .full(limit: 6))]),
        Connect(looks: [(1, guess, missing(5)), (3, full, .full(limit: 6)), (4, guess, missing(5)), (9, guess, .free)]),
    ]

    private static let guess = LinkLimit.Advice.wait(.seconds(4))
    private static let full = LinkLimit.Advice.full(limit: 6)

    private static func missing(_ seconds: Int) -> LinkLimit.Room { .missing(until: moment(seconds)) }

    private static func moment(_ seconds: Int) -> BootInstant { BootInstant.zero + .seconds(seconds) }
}
