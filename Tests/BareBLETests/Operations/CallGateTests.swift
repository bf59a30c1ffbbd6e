import BLECore
import BareBLE
import Testing

/// The gate by itself: what each one who comes is told, and what the end of each brings about.
@Suite struct CallGateTests {
    private let room = CallGate.Room(number: 1)
    private let inner = CallGate.Room(number: 2)

    private func lease(_ room: CallGate.Room, _ others: ExclusiveEntry = .waiting) -> CallGate.Entry {
        .lease(room, others: others)
    }

    /// Whether a call is admitted at once, and goes on.
    private func passes(_ ticket: CallGate.Ticket, _ gate: inout CallGate, from rooms: [CallGate.Room] = []) -> Bool {
        gate.enter(ticket, as: .call, from: rooms) == .admitted && gate.arrive(rooms) == []
    }

    @Test func callsPassTogether() {
        var gate = CallGate()
        #expect(gate.enterFreely() == true)
        #expect(gate.enterFreely() == true)
        #expect(passes(1, &gate))
        #expect(gate.callCount == 3)
        #expect(gate.leave() == [])
    }

    @Test func turnsGoOneAfterTheOther() {
        var gate = CallGate()
        #expect(gate.enter(1, as: .turn(room)) == .admitted)
        #expect(gate.enter(2, as: .turn(inner)) == .waits)
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.enter(4, as: .last) == .waits)
        #expect(gate.enter(5, as: .call) == .refused(.disconnecting))
        #expect(gate.enterFreely() == false)
        #expect(passes(6, &gate, from: [room]))
        #expect(gate.begin(from: [room]) == [])
        #expect(gate.leave([room]) == [])
        #expect(gate.close(room: room) == [.admit(2)])
        // It is over without a call.
        #expect(gate.close(room: inner) == [.admit(3)])
        #expect(gate.arrive() == [])
        #expect(gate.leave() == [.admit(4)])
    }

    @Test func aCallGoesBesideATurnThatHasBegun() {
        var gate = CallGate()
        #expect(gate.enter(1, as: .turn(room)) == .admitted)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(passes(3, &gate, from: [room]))
        #expect(gate.begin(from: [room]) == [.admit(2)])
        #expect(gate.begin(from: [room]) == [])
        #expect(gate.arrive() == [])
        #expect(gate.enter(4, as: lease(inner)) == .waits)
        #expect(gate.leave() == [])
        #expect(gate.leave([room]) == [])
        #expect(gate.close(room: room) == [.admit(4)])
    }

    @Test func aTurnThatIsClearedMakesNoCalls() {
        var gate = CallGate()
        #expect(gate.enter(1, as: .turn(room)) == .admitted)
        #expect(gate.enter(2, as: .turn(inner)) == .waits)
        #expect(gate.clear() == [.refuse(2, .cleared)])
        #expect(gate.enter(3, as: .call, from: [room]) == .refused(.cleared))
        #expect(gate.close(room: room) == [])
        #expect(gate.enterFreely() == true)
    }

    @Test func aLeaseWaitsForTheCallsBeforeIt() {
        var gate = CallGate()
        _ = gate.enterFreely()
        _ = gate.enterFreely()
        #expect(gate.enter(1, as: lease(room)) == .waits)
        #expect(gate.enterFreely() == false)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(gate.leave() == [])
        #expect(gate.leave() == [.admit(1)])
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.enter(4, as: lease(inner)) == .waits)
        #expect(gate.enter(5, as: .call) == .waits)
        #expect(gate.close(room: room) == [.admit(2)])
        #expect(gate.arrive() == [.admit(3)])
        #expect(gate.arrive() == [])
        #expect(gate.leave() == [])
        #expect(gate.leave() == [.admit(4)])
        #expect(gate.close(room: inner) == [.admit(5)])
        #expect(gate.arrive() == [])
        #expect(gate.leave() == [])
        #expect(gate.enterFreely() == true)
    }

    /// The runtime may resume the second caller first.
    @Test func whoComesNextWaitsForTheArrivalOfTheOneBefore() {
        var gate = CallGate()
        #expect(gate.enter(1, as: lease(room)) == .admitted)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(gate.close(room: room) == [.admit(2)])
        #expect(gate.enterFreely() == false)
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.arrive() == [.admit(3)])
        #expect(gate.enterFreely() == false)
        #expect(gate.arrive() == [])
        #expect(gate.enterFreely() == true)
    }

    /// Also where the lease that the call was made in is over before it arrives.
    @Test func whoComesOutOfAClosedRoomIsWaitedForOutside() {
        var gate = CallGate()
        #expect(gate.enter(1, as: lease(room)) == .admitted)
        #expect(gate.enter(2, as: lease(inner), from: [room]) == .admitted)
        #expect(gate.enter(3, as: .call, from: [room]) == .waits)
        #expect(gate.enter(4, as: .call) == .waits)
        #expect(gate.close(room: inner) == [.admit(3)])
        #expect(gate.close(room: room) == [])
        #expect(gate.arrive([room]) == [.admit(4)])
        #expect(gate.arrive() == [])
        #expect(gate.leave([room]) == [])
        #expect(gate.leave() == [])
        #expect(gate.enterFreely() == true)
    }

    @Test func theHolderPasses() {
        var gate = CallGate()
        #expect(gate.enter(1, as: lease(room)) == .admitted)
        #expect(passes(2, &gate, from: [room]))
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.leave([room]) == [])
        #expect(gate.close(room: room) == [.admit(3)])
    }

    @Test func leasesNest() {
        var gate = CallGate()
        #expect(gate.enter(1, as: lease(room)) == .admitted)
        #expect(passes(2, &gate, from: [room]))
        #expect(gate.enter(3, as: lease(inner), from: [room]) == .waits)
        #expect(gate.leave([room]) == [.admit(3)])
        // The holder's other tasks wait, the inner one's do not.
        #expect(gate.enter(4, as: .call, from: [room]) == .waits)
        #expect(passes(5, &gate, from: [room, inner]))
        #expect(gate.leave([room, inner]) == [])
        #expect(gate.close(room: inner) == [.admit(4)])
        #expect(gate.arrive([room]) == [])
        #expect(gate.leave([room]) == [])
        #expect(gate.close(room: room) == [])
        #expect(gate.enterFreely() == true)
    }

    @Test func aLeaseThatLetsNobodyWait() {
        var gate = CallGate()
        _ = gate.enterFreely()
        #expect(gate.enter(1, as: lease(room, .failFast)) == .waits)
        #expect(gate.enter(2, as: .call) == .refused(.busy))
        #expect(gate.leave() == [.admit(1)])
        #expect(gate.enter(3, as: .call) == .refused(.busy))
        #expect(gate.enter(4, as: lease(inner)) == .refused(.busy))
        #expect(passes(5, &gate, from: [room]))
        #expect(gate.leave([room]) == [])
        #expect(gate.close(room: room) == [])
        #expect(gate.enterFreely() == true)
    }

    @Test func whoWithdrawsIsNeverAdmitted() {
        var gate = CallGate()
        _ = gate.enterFreely()
        #expect(gate.enter(1, as: lease(room)) == .waits)
        #expect(gate.enter(2, as: .call) == .waits)
        // Nothing keeps the call behind it any more.
        #expect(gate.withdraw(1, .cancelled) == [.refuse(1, .cancelled), .admit(2)])
        #expect(gate.arrive() == [])
        #expect(gate.withdraw(1, .timedOut) == [])
        #expect(gate.leave() == [])
        #expect(gate.leave() == [])
        #expect(gate.callCount == 0)
        #expect(gate.enterFreely() == true)
    }

    /// A task that outlives the lease it was started in.
    @Test func whatALeaseLeavesBehindGoesOnOutside() {
        var gate = CallGate()
        #expect(gate.enter(1, as: lease(room)) == .admitted)
        #expect(passes(2, &gate, from: [room]))
        #expect(gate.enter(3, as: lease(inner), from: [room]) == .waits)
        #expect(gate.enter(4, as: .call) == .waits)
        #expect(gate.enter(5, as: .call, from: [room]) == .waits)
        // In the order in which they came; the call inside is still waited for.
        #expect(gate.close(room: room) == [])
        #expect(gate.leave([room]) == [.admit(3)])
        #expect(gate.close(room: inner) == [.admit(4)])
        #expect(gate.arrive() == [.admit(5)])
        #expect(gate.arrive([room]) == [])
        #expect(passes(6, &gate, from: [room, inner]))
    }

    @Test func anInnerLeaseThatOutlivesTheOuterTakesItsPlace() {
        var gate = CallGate()
        #expect(gate.enter(1, as: lease(room)) == .admitted)
        #expect(gate.enter(2, as: lease(inner), from: [room]) == .admitted)
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.close(room: room) == [])
        #expect(passes(4, &gate, from: [room, inner]))
        #expect(gate.leave([room, inner]) == [])
        #expect(gate.close(room: inner) == [.admit(3)])
    }

    /// The security hook's calls, while the call that needs its word is inside and a lease waits.
    @Test func anOpenRoomPassesThoseWhoWait() {
        var gate = CallGate()
        _ = gate.enterFreely()
        gate.open(inner)
        #expect(gate.enter(1, as: lease(room)) == .waits)
        #expect(passes(2, &gate, from: [inner]))
        #expect(gate.close(room: inner) == [])
        #expect(gate.leave() == [])
        #expect(gate.leave([inner]) == [.admit(1)])
    }

    @Test func theLastOneComesBehindEverybody() {
        var gate = CallGate()
        #expect(gate.enter(1, as: lease(room)) == .admitted)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(gate.enter(3, as: .last) == .waits)
        #expect(gate.enter(4, as: .call) == .refused(.disconnecting))
        #expect(passes(5, &gate, from: [room]))
        #expect(gate.leave([room]) == [])
        #expect(gate.close(room: room) == [.admit(2)])
        #expect(gate.arrive() == [])
        #expect(gate.leave() == [.admit(3)])
        #expect(gate.enterFreely() == false)
        #expect(gate.enter(6, as: lease(inner)) == .refused(.disconnecting))
    }

    @Test func theLastOneInALeaseWaitsForThatOnly() {
        var gate = CallGate()
        #expect(gate.enter(1, as: lease(room)) == .admitted)
        #expect(gate.enter(2, as: .call) == .waits)
        #expect(gate.enter(3, as: .last, from: [room]) == .admitted)
        #expect(gate.enter(4, as: .call, from: [room]) == .refused(.disconnecting))
        #expect(gate.enter(5, as: .call) == .refused(.disconnecting))
        #expect(gate.linkLost() == [.refuse(2, .linkLost)])
    }

    @Test func clearingRefusesAllAndLetsNobodyInBeforeTheyAreGone() {
        var gate = CallGate()
        #expect(gate.enter(1, as: lease(room)) == .admitted)
        #expect(passes(2, &gate, from: [room]))
        #expect(gate.enter(3, as: .call) == .waits)
        #expect(gate.enter(4, as: lease(inner)) == .waits)
        #expect(gate.enter(5, as: .last) == .waits)
        #expect(gate.clear() == [.refuse(3, .cleared), .refuse(4, .cleared)])
        #expect(gate.isClearing)
        #expect(gate.enter(6, as: .call, from: [room]) == .waits)
        #expect(gate.leave([room]) == [.admit(6)])
        #expect(gate.arrive([room]) == [])
        #expect(!gate.isClearing)
        #expect(gate.leave([room]) == [])
        #expect(gate.close(room: room) == [.admit(5)])
    }

    @Test func clearingWhereNobodyIsInsideIsOverAtOnce() {
        var gate = CallGate()
        #expect(gate.clear() == [])
        #expect(!gate.isClearing)
        #expect(gate.enterFreely() == true)
    }

    @Test func noMoreWaitThanTheLimit() {
        var gate = CallGate()
        #expect(gate.enter(0, as: lease(room)) == .admitted)
        for ticket in 1...CallGate.Ticket(CallGate.limit) { #expect(gate.enter(ticket, as: .call) == .waits) }
        #expect(gate.enter(100, as: .call) == .refused(.queueFull(limit: CallGate.limit)))
        #expect(gate.linkLost().count == CallGate.limit)
    }

    /// Random steps, checked against the rules themselves. The seed is in the failure.
    @Test(arguments: 0..<40 as Range<UInt64>) func anyOrderKeepsTheRules(seed: UInt64) {
        var run = CallGateRun(seed: seed)
        for _ in 0..<400 { run.step() }
        run.finish()
        #expect(run.complaints == [], "seed \(seed)")
    }
}
