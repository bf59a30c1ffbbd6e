import BareBLE
import BareBLETestKit
import TestSupport

/// The result of one recorded case.
enum Verdict: Hashable, Sendable, CustomStringConvertible {
    /// As recorded; the note says what is special about it.
    case passed(note: String? = nil)
    /// There is nothing in the case that the public interface could be held to.
    case notApplicable(String)
    case failed(String)

    var description: String {
        switch self {
        case .passed(note: nil): "pass"
        case .passed(note: let note?): "pass: \(note)"
        case .notApplicable(let reason): "does not apply: \(reason)"
        case .failed(let reason): "FAILS: \(reason)"
        }
    }
}

/// A value that was found at a handle.
struct RecordedValue: Hashable, Sendable {
    var handle: AttributeHandle
    var bytes: [UInt8]
}

/// How an operation ended, in the words of the recordings.
enum RecordedOutcome: Hashable, Sendable {
    case value([UInt8])
    case values([RecordedValue])
    case done
    case refused(UInt8)
    case echoMismatch
    case other(BLEError.Code)

    /// The recording's expectation for an operation with one value, or none.
    init(_ expected: GATTVectors.Expectation) throws {
        switch expected.result {
        case "ok" where expected.values != nil:
            self = .values(
                try (expected.values ?? []).map { RecordedValue(handle: $0.handle, bytes: try bytes($0.value)) })
        case "ok": self = try expected.value.map { .value(try bytes($0)) } ?? .done
        case "att-error": self = .refused(expected.error ?? 0)
        case "failed" where expected.reason == "prepare-write-echo-mismatch": self = .echoMismatch
        default: throw Mismatch("an unknown expectation: \(expected.result ?? "nothing")")
        }
    }

    init(_ error: BLEError) {
        if let refusal = error.attError {
            self = .refused(refusal.rawValue)
        } else if error.code == .malformedReply {
            self = .echoMismatch
        } else {
            self = .other(error.code)
        }
    }

    /// Runs one call and says how it ended.
    static func of(_ call: () async throws(BLEError) -> RecordedOutcome) async -> RecordedOutcome {
        do throws(BLEError) {
            return try await call()
        } catch {
            return RecordedOutcome(error)
        }
    }
}
