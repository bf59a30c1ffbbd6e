import BLECore
import BareBLE
import Testing

@testable import CoreBluetooth

/// The wait of a request for the response of the program.
@Suite(.timeLimit(.minutes(10))) struct PendingResponseTests {
    /// Its cancellation has come before there was anything to refuse.
    @Test func aTaskThatIsAlreadyCancelledReportsNothing() async {
        await withTaskGroup(of: Void.self) { group in
            // What is added to a cancelled group is cancelled from the beginning.
            group.cancelAll()
            group.addTask {
                await #expect(throws: ATTRefusal(.unlikelyError)) {
                    _ = try await PendingResponse.response { _ in Issue.record("nobody waits for the response") }
                }
            }
        }
    }
}
