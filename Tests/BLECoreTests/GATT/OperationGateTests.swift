import BLECore
import Testing

/// The gate by itself: what it returns to each call, and what the end of each brings about.
@Suite struct OperationGateTests {
    private let scope = OperationGate.Scope(number: 1)
    private let inner = OperationGate.Scope(number: 2)

    private func exclusive(_ scope: OperationGate.Scope, _ others: ExclusiveEntry = .wait) -> OperationGate.Entry {
        .exclusive(scope, others: others)
    }

    /// Whether a call is admitted at once, and continues. It is compared with `true`, as the macros cannot take a call
    /// with a noncopyable value apart.
    private func passes(
        _ ticket: OperationGate.Ticket, _ gate: inout OperationGate, from scopes: [OperationGate.Scope] = []
    ) -> Bool {
        gate.enter(ticket, as: .call, from: scopes) == .admitted && gate.arrive(scopes) == []
    }

    @Test func callsPassTogether() {
        var gate = OperationGate()
        #expect(gate.enterFreely() == true)
        #expect(gate.enterFreely() == true)
        #expect(passes(1, &gate) == true)
        #expect(gate.callCount == 3)
        #expect(gate.leave() == [])
    }

    @Test func turnsComeOneAfterTheOther() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: .turn(scope)) == .admitted)
        #expect(gate.enter(2, as: .turn(inner)) == .waits)
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.enter(4, as: .last) == .waits)
        #expect(gate.enter(5, as: .call) == .refused(.disconnecting))
        #expect(gate.enterFreely() == false)
        #expect(passes(6, &gate, from: [scope]) == true)
        #expect(gate.begin(from: [scope]) == [])
        #expect(gate.leave([scope]) == [])
        #expect(gate.close(scope: scope) == [.admit(2)])
        // It is over without a call.
        #expect(gate.close(scope: inner) == [.admit(3)])
        #expect(gate.arrive() == [])
        #expect(gate.leave() == [.admit(4)])
    }

    @Test func aCallGoesBesideATurnThatHasBegun() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: .turn(scope)) == .admitted)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(passes(3, &gate, from: [scope]) == true)
        #expect(gate.begin(from: [scope]) == [.admit(2)])
        #expect(gate.begin(from: [scope]) == [])
        #expect(gate.arrive() == [])
        #expect(gate.enter(4, as: exclusive(inner)) == .waits)
        #expect(gate.leave() == [])
        #expect(gate.leave([scope]) == [])
        #expect(gate.close(scope: scope) == [.admit(4)])
    }

    @Test func aTurnThatIsClearedMakesNoCalls() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: .turn(scope)) == .admitted)
        #expect(gate.enter(2, as: .turn(inner)) == .waits)
        #expect(gate.clear() == [.refuse(2, .cleared)])
        #expect(gate.enter(3, as: .call, from: [scope]) == .refused(.cleared))
        #expect(gate.close(scope: scope) == [])
        #expect(gate.enterFreely() == true)
    }

    @Test func anExclusiveEntryWaitsForTheCallsBeforeIt() {
        var gate = OperationGate()
        _ = gate.enterFreely()
        _ = gate.enterFreely()
        #expect(gate.enter(1, as: exclusive(scope)) == .waits)
        #expect(gate.enterFreely() == false)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(gate.leave() == [])
        #expect(gate.leave() == [.admit(1)])
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.enter(4, as: exclusive(inner)) == .waits)
        #expect(gate.enter(5, as: .call) == .waits)
        #expect(gate.close(scope: scope) == [.admit(2)])
        #expect(gate.arrive() == [.admit(3)])
        #expect(gate.arrive() == [])
        #expect(gate.leave() == [])
        #expect(gate.leave() == [.admit(4)])
        #expect(gate.close(scope: inner) == [.admit(5)])
        #expect(gate.arrive() == [])
        #expect(gate.leave() == [])
        #expect(gate.enterFreely() == true)
    }

    /// The runtime may resume the second caller first.
    @Test func anEntryWaitsForTheArrivalOfTheOneAdmittedBefore() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: exclusive(scope)) == .admitted)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(gate.close(scope: scope) == [.admit(2)])
        #expect(gate.enterFreely() == false)
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.arrive() == [.admit(3)])
        #expect(gate.enterFreely() == false)
        #expect(gate.arrive() == [])
        #expect(gate.enterFreely() == true)
    }

    /// Also where the exclusive that the call was made in is over before it arrives.
    @Test func anOuterEntryWaitsForACallAdmittedByAClosedScope() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: exclusive(scope)) == .admitted)
        #expect(gate.enter(2, as: exclusive(inner), from: [scope]) == .admitted)
        #expect(gate.enter(3, as: .call, from: [scope]) == .waits)
        #expect(gate.enter(4, as: .call) == .waits)
        #expect(gate.close(scope: inner) == [.admit(3)])
        #expect(gate.close(scope: scope) == [])
        #expect(gate.arrive([scope]) == [.admit(4)])
        #expect(gate.arrive() == [])
        #expect(gate.leave([scope]) == [])
        #expect(gate.leave() == [])
        #expect(gate.enterFreely() == true)
    }

    @Test func theHolderPasses() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: exclusive(scope)) == .admitted)
        #expect(passes(2, &gate, from: [scope]) == true)
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.leave([scope]) == [])
        #expect(gate.close(scope: scope) == [.admit(3)])
    }

    @Test func exclusiveAccessNests() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: exclusive(scope)) == .admitted)
        #expect(passes(2, &gate, from: [scope]) == true)
        #expect(gate.enter(3, as: exclusive(inner), from: [scope]) == .waits)
        #expect(gate.leave([scope]) == [.admit(3)])
        // The holder's other tasks wait, the inner one's do not.
        #expect(gate.enter(4, as: .call, from: [scope]) == .waits)
        #expect(passes(5, &gate, from: [scope, inner]) == true)
        #expect(gate.leave([scope, inner]) == [])
        #expect(gate.close(scope: inner) == [.admit(4)])
        #expect(gate.arrive([scope]) == [])
        #expect(gate.leave([scope]) == [])
        #expect(gate.close(scope: scope) == [])
        #expect(gate.enterFreely() == true)
    }

    @Test func anExclusiveEntryWithFailRefusesOthersAsBusy() {
        var gate = OperationGate()
        _ = gate.enterFreely()
        #expect(gate.enter(1, as: exclusive(scope, .fail)) == .waits)
        #expect(gate.enter(2, as: .call) == .refused(.busy))
        #expect(gate.leave() == [.admit(1)])
        #expect(gate.enter(3, as: .call) == .refused(.busy))
        #expect(gate.enter(4, as: exclusive(inner)) == .refused(.busy))
        #expect(passes(5, &gate, from: [scope]) == true)
        #expect(gate.leave([scope]) == [])
        #expect(gate.close(scope: scope) == [])
        #expect(gate.enterFreely() == true)
    }

    @Test func aWithdrawnEntryIsNeverAdmitted() {
        var gate = OperationGate()
        _ = gate.enterFreely()
        #expect(gate.enter(1, as: exclusive(scope)) == .waits)
        #expect(gate.enter(2, as: .call) == .waits)
        // Nothing keeps the call after it any more.
        #expect(gate.withdraw(1, .cancelled) == [.refuse(1, .cancelled), .admit(2)])
        #expect(gate.arrive() == [])
        #expect(gate.withdraw(1, .timedOut) == [])
        #expect(gate.leave() == [])
        #expect(gate.leave() == [])
        #expect(gate.callCount == 0)
        #expect(gate.enterFreely() == true)
    }

    /// A task that outlives the exclusive it was started in.
    @Test func whatExclusiveAccessLeavesContinuesOutside() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: exclusive(scope)) == .admitted)
        #expect(passes(2, &gate, from: [scope]) == true)
        #expect(gate.enter(3, as: exclusive(inner), from: [scope]) == .waits)
        #expect(gate.enter(4, as: .call) == .waits)
        #expect(gate.enter(5, as: .call, from: [scope]) == .waits)
        // In the order in which they came; the call inside is still waited for.
        #expect(gate.close(scope: scope) == [])
        #expect(gate.leave([scope]) == [.admit(3)])
        #expect(gate.close(scope: inner) == [.admit(4)])
        #expect(gate.arrive() == [.admit(5)])
        #expect(gate.arrive([scope]) == [])
        #expect(passes(6, &gate, from: [scope, inner]) == true)
    }

    @Test func innerExclusiveAccessThatOutlivesTheOuterTakesItsPlace() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: exclusive(scope)) == .admitted)
        #expect(gate.enter(2, as: exclusive(inner), from: [scope]) == .admitted)
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.close(scope: scope) == [])
        #expect(passes(4, &gate, from: [scope, inner]) == true)
        #expect(gate.leave([scope, inner]) == [])
        #expect(gate.close(scope: inner) == [.admit(3)])
    }

    /// The security hook's calls, while the call that needs its word is inside and a exclusive waits.
    @Test func aCallInAnOpenScopePassesWaitingEntries() {
        var gate = OperationGate()
        _ = gate.enterFreely()
        gate.open(inner)
        #expect(gate.enter(1, as: exclusive(scope)) == .waits)
        #expect(passes(2, &gate, from: [inner]) == true)
        #expect(gate.close(scope: inner) == [])
        #expect(gate.leave() == [])
        #expect(gate.leave([inner]) == [.admit(1)])
    }

    @Test func theLastEntryIsAdmittedAfterAllOthers() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: exclusive(scope)) == .admitted)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(gate.enter(3, as: .last) == .waits)
        #expect(gate.enter(4, as: .call) == .refused(.disconnecting))
        #expect(passes(5, &gate, from: [scope]) == true)
        #expect(gate.leave([scope]) == [])
        #expect(gate.close(scope: scope) == [.admit(2)])
        #expect(gate.arrive() == [])
        #expect(gate.leave() == [.admit(3)])
        #expect(gate.enterFreely() == false)
        #expect(gate.enter(6, as: exclusive(inner)) == .refused(.disconnecting))
    }

    @Test func theLastOneInExclusiveAccessWaitsForThatOnly() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: exclusive(scope)) == .admitted)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(gate.enter(3, as: .last, from: [scope]) == .admitted)
        #expect(gate.enter(4, as: .call, from: [scope]) == .refused(.disconnecting))
        #expect(gate.enter(5, as: .call) == .refused(.disconnecting))
        #expect(gate.linkLost() == [.refuse(2, .linkLost)])
    }

    @Test func clearingRefusesAllAndAdmitsNoneUntilTheyHaveLeft() {
        var gate = OperationGate()
        #expect(gate.enter(1, as: exclusive(scope)) == .admitted)
        #expect(passes(2, &gate, from: [scope]) == true)
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.enter(4, as: exclusive(inner)) == .waits)
        #expect(gate.enter(5, as: .last) == .waits)
        #expect(gate.clear() == [.refuse(3, .cleared), .refuse(4, .cleared)])
        #expect(gate.isClearing == true)
        #expect(gate.enter(6, as: .call, from: [scope]) == .waits)
        #expect(gate.leave([scope]) == [.admit(6)])
        #expect(gate.arrive([scope]) == [])
        #expect(gate.isClearing == false)
        #expect(gate.leave([scope]) == [])
        #expect(gate.close(scope: scope) == [.admit(5)])
    }

    @Test func clearingAnEmptyGateEndsAtOnce() {
        var gate = OperationGate()
        #expect(gate.clear() == [])
        #expect(gate.isClearing == false)
        #expect(gate.enterFreely() == true)
    }

    @Test func noMoreWaitThanTheLimit() {
        var gate = OperationGate()
        #expect(gate.enter(0, as: exclusive(scope)) == .admitted)
        for ticket in 1...OperationGate.Ticket(OperationGate.limit) { #expect(gate.enter(ticket, as: .call) == .waits) }
        #expect(gate.enter(100, as: .call) == .refused(.queueFull(limit: OperationGate.limit)))
        #expect(gate.linkLost().count == OperationGate.limit)
    }

    /// Random steps, checked against the rules themselves. The seed is in the failure.
    @Test(arguments: 0..<40 as Range<UInt64>) func anyOrderKeepsTheRules(seed: UInt64) {
        var run = OperationGateRun(seed: seed)
        for _ in 0..<400 { run.step() }
        run.finish()
        #expect(run.complaints == [], "seed \(seed)")
    }
}
