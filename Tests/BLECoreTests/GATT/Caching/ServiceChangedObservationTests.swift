import BLECore
import Testing

@Suite struct ServiceChangedObservationTests {
    static func observation() -> ServiceChangedObservation {
        ServiceChangedObservation(isWanted: true, asksAfterRequests: true)
    }

    static func enabled() -> ServiceChangedObservation {
        var observation = observation()
        observation.askingBegan()
        observation.askingEnded(isOn: true)
        return observation
    }

    @Test(arguments: [
        (true, true, true, true), (true, true, false, false), (false, true, true, false), (true, false, true, false),
    ])
    func thePeerIsAskedWhereItMayAnnounce(
        isWanted: Bool, asksAfterRequests: Bool, mayAnnounce: Bool, isDue: Bool
    ) {
        var observation = ServiceChangedObservation(isWanted: isWanted, asksAfterRequests: asksAfterRequests)
        #expect(observation.isDue == false)
        observation.databaseDidChange(mayAnnounce: mayAnnounce)
        #expect(observation.isDue == isDue)
        #expect(observation.isWorthAsking == isWanted)
    }

    @Test func oneCallOfTheLibraryIsMadeAtATime() {
        var observation = Self.observation()
        observation.databaseDidChange(mayAnnounce: true)
        var mustCall = observation.begin()
        #expect(mustCall && !observation.isDue)
        mustCall = observation.begin()
        #expect(!mustCall)
        observation.callEnded()
        mustCall = observation.begin()
        #expect(mustCall)
    }

    @Test func anEnabledObservationIsNotRequestedAgain() {
        var observation = Self.enabled()
        #expect(observation.isOn && !observation.isAsking)
        observation.databaseDidChange(mayAnnounce: true)
        #expect(!observation.isDue && !observation.isWorthAsking)
    }

    @Test func askingIsVisibleUntilItsEnd() {
        var observation = Self.observation()
        observation.databaseDidChange(mayAnnounce: true)
        observation.askingBegan()
        #expect(observation.isAsking && !observation.isOn && !observation.isDue)
        observation.databaseDidChange(mayAnnounce: true)
        #expect(observation.isDue == false, "somebody asks already")
        observation.askingEnded(isOn: false)
        #expect(!observation.isAsking && !observation.isOn)
        observation.databaseDidChange(mayAnnounce: true)
        #expect(observation.isDue == true)
    }

    @Test func aChangeOfTheServicesTakesItAway() {
        var observation = Self.enabled()
        observation.subscriptionLost()
        #expect(!observation.isOn && observation.isLost)
        observation.databaseDidChange(mayAnnounce: false)
        #expect(observation.isDue == true, "it was there before, so it is looked for again")
        observation.announcerIsAbsent()
        observation.databaseDidChange(mayAnnounce: false)
        #expect(!observation.isDue && !observation.isLost)
    }

    @Test func aChangeMakesAnAttemptVoid() {
        var observation = Self.observation()
        observation.askingBegan()
        observation.subscriptionLost()
        #expect(observation.isAsking == true, "the call that asks ends this itself")
        observation.askingEnded(isOn: true)
        #expect(!observation.isOn && observation.isLost)
    }

    @Test func absenceTakesNothingAwayThatIsOn() {
        var observation = Self.enabled()
        observation.announcerIsAbsent()
        #expect(observation.isOn == true)
    }

    @Test func anAdoptedLinkIsAskedNoMore() {
        var observation = Self.observation()
        observation.resumed()
        #expect(observation.isOn == true)
    }
}
