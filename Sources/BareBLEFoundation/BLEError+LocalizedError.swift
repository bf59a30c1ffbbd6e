public import BareBLE
public import Foundation

/// Foundation's view of the error: `error.localizedDescription` has the parts of `error.description`.
extension BLEError: LocalizedError {
    /// A sentence with the operation, the subject, the reason and the raw codes.
    public var errorDescription: String? {
        var text = "Could not \(operation)"
        if let subject { text += " (\(subject))" }
        text += ": \(reason)."
        if let underlyingCodes { text += " \(underlyingCodes)" }
        return text
    }

    /// The reason of the failure, as a sentence.
    public var failureReason: String? {
        reason.prefix(1).uppercased() + reason.dropFirst() + "."
    }

    /// A sentence about what to do next; `nil` if nothing sensible can be suggested.
    public var recoverySuggestion: String? { hint }
}
