import Testing

@testable import CoreBluetooth

/// The bound of the values that wait for the delegate's queue.
@Suite(.timeLimit(.minutes(10))) struct PostedValuesTests {
    /// The losses that are reported with a value; `nil` if it has no room.
    private func losses(_ room: PostedValues.Room) -> Int? {
        if case .taken(let losses) = room { losses } else { nil }
    }

    private func isFirstLoss(_ room: PostedValues.Room) -> Bool? {
        if case .full(let isFirst) = room { isFirst } else { nil }
    }

    @Test func theNewestValuesAreDroppedAndCounted() {
        let posted = PostedValues()
        #expect(losses(posted.begin(20, after: 2)) == 2)
        for _ in 1..<4_096 { #expect(losses(posted.begin(20, after: 0)) == 0) }
        #expect(isFirstLoss(posted.begin(20, after: 0)) == true)
        #expect(isFirstLoss(posted.begin(20, after: 0)) == false)
        posted.finished(20)
        #expect(losses(posted.begin(20, after: 0)) == 2)
        #expect(isFirstLoss(posted.begin(20, after: 0)) == true, "another run of losses")
    }

    @Test func atMostAMebibyteWaits() {
        let posted = PostedValues()
        for _ in 0..<2_048 { #expect(losses(posted.begin(512, after: 0)) == 0) }
        #expect(isFirstLoss(posted.begin(1, after: 0)) == true)
        posted.finished(512)
        #expect(losses(posted.begin(512, after: 0)) == 1)
    }

    @Test func nothingIsPostedAfterTheEnd() {
        let posted = PostedValues()
        posted.close()
        let room = posted.begin(1, after: 0)
        #expect(losses(room) == nil && isFirstLoss(room) == nil)
    }
}
