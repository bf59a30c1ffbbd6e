import BLECore
import TestSupport
import Testing

@Suite struct ResubscribeMachineTests {
    private func fails(
        _ machine: inout ResubscribeMachine, _ failure: ResubscribeMachine.Failure = .passing,
        subscribed wasSubscribed: Bool = false
    ) -> ResubscribeMachine.Step {
        machine.failed(failure, wasSubscribed: wasSubscribed, isLinkUp: true)
    }

    @Test func pausesDoubleUpToTheLongest() {
        var machine = ResubscribeMachine()
        machine.linkUp()
        let pauses = (0..<7).map { _ in fails(&machine) }
        #expect(pauses == [1, 2, 4, 8, 16, 30, 30].map { .subscribe(after: .seconds($0)) })
    }

    @Test func anotherLinkOrAnAcceptedSubscriptionStartsPausesOver() {
        for start in [{ $0.linkUp() }, { $0.accepted() }] as [(inout ResubscribeMachine) -> Void] {
            var machine = ResubscribeMachine()
            _ = fails(&machine)
            #expect(fails(&machine) == .subscribe(after: .seconds(2)))
            start(&machine)
            #expect(fails(&machine) == .subscribe(after: .seconds(1)))
        }
    }

    @Test func aSubscriptionThatEndsOnALinkIsMadeAgainAtOnce() {
        var machine = ResubscribeMachine()
        machine.linkUp()
        _ = fails(&machine)
        machine.accepted()
        #expect(fails(&machine, subscribed: true) == .subscribe(after: .zero))
        #expect(fails(&machine) == .subscribe(after: .seconds(1)))
    }

    @Test(arguments: [false, true]) func aRefusalForGoodEndsIt(wasSubscribed: Bool) {
        var machine = ResubscribeMachine()
        if wasSubscribed { machine.accepted() }
        #expect(fails(&machine, .lasting, subscribed: wasSubscribed) == .end)
    }

    @Test(arguments: [ResubscribeMachine.Failure.missing, .lasting, .passing])
    func aLostLinkIsNoFailureOfTheSubscription(failure: ResubscribeMachine.Failure) {
        for wasSubscribed in [false, true] {
            var machine = ResubscribeMachine()
            if wasSubscribed { machine.accepted() }
            let before = machine
            #expect(machine.failed(failure, wasSubscribed: wasSubscribed, isLinkUp: false) == .awaitLink)
            #expect(machine == before)
        }
    }

    @Test func aCharacteristicThatWasNeverThereEndsIt() {
        var machine = ResubscribeMachine()
        #expect(!machine.followsServiceChanges)
        #expect(fails(&machine, .missing) == .end)
    }

    @Test(.row("C08")) func aCharacteristicThatHasGoneIsLookedForABoundedNumberOfTimes() {
        var machine = ResubscribeMachine()
        machine.accepted()
        #expect(machine.followsServiceChanges)
        for _ in 1...2 {
            let steps = (0...ResubscribeMachine.missLimit).map { _ in
                machine.linkUp()
                return fails(&machine, .missing)
            }
            #expect(steps.first == .awaitServiceChange(isFirst: true))
            #expect(steps.dropFirst().dropLast().allSatisfy { $0 == .awaitServiceChange(isFirst: false) })
            #expect(steps.last == .end)
            // What comes back is looked for as often again.
            machine.accepted()
        }
    }
}
