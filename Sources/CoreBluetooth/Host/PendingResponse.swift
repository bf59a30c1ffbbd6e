// The response that a central waits for: from the report of its requests to what the program responds.

internal import BLECore
internal import BLELinux
internal import BareBLE

/// The response to one request, or to several that came together. The requests keep it, and their refusal is the
/// response when the last one has gone.
final class PendingResponse: Sendable {
    private let waiting: Lock<CheckedContinuation<CBATTRequest.Response, Never>?>

    /// Has the response resume a task.
    private init(_ continuation: CheckedContinuation<CBATTRequest.Response, Never>) {
        waiting = Lock(continuation)
    }

    deinit { refuse() }

    /// Reports requests, and waits for the response. Only the application keeps the requests meanwhile.
    ///
    /// - Throws: `ATTRefusal` with the error that the application responds with; Unlikely Error for one that an Error
    ///   Response has no room for.
    static func response(
        isolation: isolated (any Actor)? = #isolation, reporting report: (PendingResponse) -> Void
    ) async throws -> CBATTRequest.Response {
        let reference = WeakResponse()
        let response: CBATTRequest.Response = await withTaskCancellationHandler {
            // A closure is isolated to the caller's actor only if it names that actor.
            _ = isolation
            return await withCheckedContinuation { (continuation: CheckedContinuation<CBATTRequest.Response, Never>) in
                let pending = PendingResponse(continuation)
                reference.set(pending)
                // The cancellation of before has met nothing to refuse.
                if Task.isCancelled { return pending.refuse() }
                report(pending)
            }
        } onCancel: {
            reference.object?.refuse()
        }
        guard response.result != .success else { return response }
        let code = UInt8(exactly: response.result.rawValue).map { ATTErrorCode(rawValue: $0) }
        throw ATTRefusal(code ?? .unlikelyError)
    }

    /// Responds; returns `false` if that was done before.
    func respond(_ response: CBATTRequest.Response) -> Bool {
        let continuation = waiting.withLock { $0.take() }
        continuation?.resume(returning: response)
        return continuation != nil
    }

    private func refuse() { _ = respond(CBATTRequest.Response(result: .unlikelyError, value: nil)) }
}

/// A reference to a response that does not keep it.
private final class WeakResponse: Sendable {
    private struct Reference { weak var object: PendingResponse? }

    private let reference = Lock(Reference())

    var object: PendingResponse? { reference.withLock { $0.object } }

    func set(_ response: PendingResponse) { reference.withLock { $0.object = response } }
}
