import BLECore
import Testing

@Suite struct ATTActionTests {
    @Test(arguments: 0..<6) func actionsComeOutInTheOrderInWhichTheyWentIn(count: Int) {
        let all = (0..<count).map { ATTAction.finish(RequestID(UInt64($0)), .success([])) }
        var actions = ATTActions()
        #expect(actions.isEmpty)
        for action in all { actions.append(action) }
        #expect(Array(actions) == all)
        #expect(actions.isEmpty == (count == 0))
    }

    @Test func everyEndHasASentence() {
        let reasons: [ATTQueue.CloseReason] = [
            .responseTimeout, .unexplainedResponses, .oversizedResponse, .truncatedValues, .overlappingIndications,
            .overlappingRequests, .linkLost(104),
        ]
        #expect(Set(reasons.map(\.sentence)).count == reasons.count)
        #expect(reasons.allSatisfy { $0.sentence.hasSuffix(".") })
    }
}
