import BLECore
import Testing

/// What calls do next that need services, what is reported of changes, and which calls may be retried.
extension DatabaseStateTests {
    // MARK: What to find out first

    @Test func whatIsUnknownIsDiscovered() {
        let state = DatabaseState()
        #expect(state.nextStep(toKnow: nil, to: .structure) == .discover(nil))
        #expect(state.nextStep(toKnow: [0x180F], to: .structure) == .discover([0x180F]))
    }

    @Test func whatIsKnownCostsNothing() throws {
        let state = try known()
        #expect(state.nextStep(toKnow: nil, to: .subscribable) == .proceed)
        #expect(state.nextStep(toKnow: [0x1234], to: .structure) == .proceed, "it was looked for and is not there")
        #expect(state.nextStep(toKnow: nil, to: .full) == .discover(nil))
    }

    @Test(arguments: [
        ([0x180F] as [BluetoothUUID], DiscoveryLevel.structure, true), ([0x180F], .subscribable, true),
        ([0x180F], .full, false), ([0x180A], .structure, false), ([0x180F, 0x180A], .structure, false),
    ])
    func aRunningDiscoveryIsWaitedFor(services: [BluetoothUUID], level: DiscoveryLevel, isWaitedFor: Bool) {
        var state = DatabaseState()
        let running = state.discoveryBegan(of: [0x180F], level: .subscribable)
        let step = state.nextStep(toKnow: services, to: level)
        if isWaitedFor {
            #expect(step == .awaitDiscovery([running]))
        } else {
            #expect(step == .discover(services.filter { level == .full || $0 != 0x180F }))
        }
        #expect(state.nextStep(toKnow: nil, to: .structure) == .discover(nil), "some services are not all of them")
    }

    @Test func aDiscoveryOfEverythingFindsEachService() {
        var state = DatabaseState()
        let first = state.discoveryBegan(of: [0x180F], level: .structure)
        let second = state.discoveryBegan(of: nil, level: .structure)
        #expect(first != second)
        #expect(state.nextStep(toKnow: [0x180F, 0x180A], to: .structure) == .awaitDiscovery([first, second]))
        #expect(state.isRunning(first) && state.isRunning(second))
        state.ended(second)
        state.discoveryFailed()
        #expect(state.isRunning(second) == false)
        #expect(state.nextStep(toKnow: [0x180F, 0x180A], to: .structure) == .discover([0x180A]))
    }

    @Test func whatIsStaleIsWaitedFor() throws {
        var state = try known()
        _ = state.serviceChanged(1...10)
        #expect(state.nextStep(toKnow: [0x180F], to: .structure) == .awaitRediscovery)
        #expect(state.nextStep(toKnow: [0x180F], to: .full) == .discover([0x180F]))
    }

    // MARK: What is reported of changes

    @Test func aChangeIsReportedOnceWithWhatWasThere() throws {
        var state = try known()
        var changes = state.takeChanges()
        #expect(changes.isEmpty)
        let ranges = [state.serviceChanged(3...4), state.serviceChanged(5...12)]
        #expect(ranges == [1...10, 1...20])
        #expect(state.changeCount == 2)
        #expect(state.services.map(\.uuid) == [0x180A], "what is stale is left out")
        guard case .now(let stale, _) = state.nextRediscovery(at: at(0)) else {
            Issue.record("it is found again at once")
            return
        }
        let renewed = GATTDatabase(services: [GATTService(handles: 1...10, uuid: 0x1234)])
        for range in stale { try state.rediscovered(range, with: renewed) }
        state.rediscoveryEnded(isComplete: true)
        changes = state.takeChanges()
        #expect(changes.map(\.handles) == [1...20])
        #expect(changes.first?.formerServices.map(\.uuid) == [0x1800, 0x180F])
        #expect(changes.first?.services.map(\.uuid) == [0x1234])
        changes = state.takeChanges()
        #expect(changes.isEmpty)
    }

    @Test func aServiceThatChangesTwiceIsNamedOnce() throws {
        var state = try known()
        _ = state.serviceChanged(1...2)
        _ = state.serviceChanged(1...2)
        let changes = state.takeChanges()
        #expect(changes.first?.formerServices.count == 1)
    }

    @Test func aChangeOfNothingKnownIsNone() {
        var state = DatabaseState()
        let range = state.serviceChanged(1...10)
        #expect(range == nil)
        #expect(state.changeCount == 0)
        let changes = state.takeChanges()
        #expect(changes.isEmpty)
    }

    // MARK: Which calls may be retried

    @Test(arguments: [
        (RetryRule.always, true), (.never, false), (.sameHandles([3]), true), (.sameHandles([3, 13]), false),
        (.sameHandles([0x7777]), true), (.sameHandle(3), true), (.sameHandle(13), false),
    ])
    func aCallIsRetriedWhereItsHandlesMeanTheSame(rule: RetryRule, isAllowed: Bool) throws {
        let old = Self.database()
        var state = DatabaseState()
        state.discoveryBegan()
        try state.found(Self.database([0x1800]), services: nil, level: .subscribable)
        let isRetried = state.allows(rule, since: old)
        #expect(isRetried == isAllowed)
    }

    @Test(arguments: [(DiscoveryLevel.subscribable, true), (.full, false)])
    func handlesThatWereNotDiscoveredAgainAreUndecided(level: DiscoveryLevel, isUndecided: Bool) throws {
        let old = Self.database()
        var state = DatabaseState()
        state.discoveryBegan()
        // Those of a discovery of everything are decided at the level that finds everything.
        try state.found(Self.database([0x1800]), services: level == .full ? nil : [0x1800], level: level)
        let undecided = state.undecidedHandles(.sameHandles([3, 13, 0x7777]), since: old)
        #expect(undecided == (isUndecided ? [13] : []))
        for rule in [RetryRule.sameHandle(3), .always, .never] {
            let others = state.undecidedHandles(rule, since: old)
            #expect(others.isEmpty)
        }
        let isAllowedByType = state.allows(.sameHandle(13), since: old, types: [13: 0x2A19])
        let isAllowedByOtherType = state.allows(.sameHandle(13), since: old, types: [13: 0x2A1A])
        let isAllowedUnseen = state.allows(.sameHandle(13), since: old)
        #expect(isAllowedByType)
        #expect(!isAllowedByOtherType)
        #expect(!isAllowedUnseen)
    }
}
