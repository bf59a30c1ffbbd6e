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

    /// An Error Response has one byte for it.
    @Test(arguments: [(0x80, 0x80), (0xFF, 0xFF), (0x100, 0x0E), (0x180, 0x0E), (-1, 0x0E)] as [(Int, UInt8)])
    func aResultThatIsNoCodeIsUnlikelyError(result: Int, code: UInt8) async {
        await #expect(throws: ATTRefusal(ATTErrorCode(rawValue: code))) {
            _ = try await PendingResponse.response { pending in
                _ = pending.respond(CBATTRequest.Response(result: ._other(result), value: nil))
            }
        }
    }
}
