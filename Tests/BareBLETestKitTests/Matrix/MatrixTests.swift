import BareBLE
import BareBLETestKit
import Testing

/// The lost-connection matrix: each operation is interrupted in each way at each of its packets. One typed error comes
/// of it, and nothing is left behind: no waiter, no task, no timer, no descriptor.
@Suite("Lost-connection matrix", .timeLimit(.minutes(10)))
struct MatrixTests {
    @Test(arguments: MatrixOperation.allCases, MatrixLoss.allCases)
    func aLossAtEachPacketEndsACallOnce(_ operation: MatrixOperation, _ loss: MatrixLoss) async throws {
        let clean = try await MatrixRun(operation: operation, loss: loss, packet: nil).run()
        #expect(clean.error == nil)
        // A link with the smallest MTU begins without a PDU to be interrupted in.
        #expect(clean.packets > 1 || operation == .connect && loss == .cancelWhileReading)
        for packet in stride(from: 1, through: clean.packets, by: 1) {
            let outcome = try await MatrixRun(operation: operation, loss: loss, packet: packet).run()
            check(outcome, operation, loss, packet, of: clean.packets)
        }
    }

    private func check(
        _ outcome: MatrixRun.Outcome, _ operation: MatrixOperation, _ loss: MatrixLoss, _ packet: Int, of count: Int
    ) {
        let place: Comment = "at packet \(packet): \(outcome)"
        guard let error = outcome.error else {
            // The last packet was there in time, even if after the report of the end; and a connect tries again by
            // itself. After the response to a subscription comes its first value, which the call does not wait for.
            let hasResponse = !outcome.wasHosts || loss == .lateResponse
            let last = count - (operation == .subscribe ? 1 : 0) - (loss == .lateResponse ? 1 : 0)
            // What is switched off after the result does not spoil it.
            let tail = operation.tidiesUp ? 2 : 0
            let mayWork =
                hasResponse && packet >= last - tail || packet > count - tail
                || operation.connects && !loss.isCancellation
                // Nothing is as silent as a peer that is not heard.
                || operation == .drain && loss == .outOfRange
            return #expect(mayWork, place)
        }
        if error is MatrixOperation.EndedEarly { return #expect(loss.isCancellation, place) }
        guard let error = error as? BLEError else { return #expect(Bool(false), place) }
        #expect(loss.codes(operation).contains(error.code), place)
        if !operation.connects { #expect(outcome.reason == loss.reason, place) }
    }
}
