public import BareBLE
public import Foundation

/// What Foundation asks of errors: `error.localizedDescription` says what `error.description` does, in parts.
extension BLEError: LocalizedError {
    /// What failed, for whom, and why, with the raw codes underneath: one sentence.
    public var errorDescription: String? {
        var text = "Could not \(operation)"
        if let subject { text += " (\(subject))" }
        text += ": \(reason)."
        if let underlyingCodes { text += " \(underlyingCodes)" }
        return text
    }

    /// Why it failed, as a sentence.
    public var failureReason: String? {
        reason.prefix(1).uppercased() + reason.dropFirst() + "."
    }

    /// What to do next, as one sentence; `nil` where there is nothing sensible to say.
    public var recoverySuggestion: String? { hint }
}
