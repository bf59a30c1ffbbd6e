import BLECore
import Testing

@testable import BareBLE

/// Failures of the core in the words of an error.
@Suite struct ErrorTranslationTests {
    /// It follows the operation, the subject and a colon.
    @Test(arguments: [GATTFailure.noProgress(at: 5), .outOfRange(1), .surplusResponse(3), .reliableWriteMismatch(4)])
    func aReasonIsTheEndOfASentence(_ failure: GATTFailure) {
        let reason = BLEError(failure, subject: "AA:BB:CC:DD:EE:FF", during: "discover the services").reason
        #expect(reason.hasPrefix("the device ") && !reason.hasSuffix("."), "\(reason)")
    }
}
