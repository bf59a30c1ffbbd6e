internal import BLELinux
internal import BareBLE

/// A request of a central to read or write a value of this program.
///
/// Every request but a write without response needs a response, by `CBPeripheralManager.respond(to:withResult:)`,
/// within 20 seconds. A request without one is refused with Unlikely Error: after that time, or when its last reference
/// goes away.
open class CBATTRequest: NSObject, @unchecked Sendable {
    private struct State {
        var value: Data?
        var response: CheckedContinuation<Response, Never>?
        var isOver = false
    }

    /// The program's response.
    struct Response: Sendable {
        let result: CBATTError.Code
        let value: Data?
    }

    private let source: CBCentral
    private let target: CBCharacteristic
    private let position: Int
    private let needsResponse: Bool
    private let state: Lock<State>

    init(
        _ central: CBCentral, _ characteristic: CBCharacteristic, offset: Int, value: Data?, needsResponse: Bool = true
    ) {
        source = central
        target = characteristic
        position = offset
        self.needsResponse = needsResponse
        state = Lock(State(value: value))
    }

    deinit { respond(.unlikelyError) }

    /// The central.
    open var central: CBCentral { source }
    /// The characteristic.
    open var characteristic: CBCharacteristic { target }
    /// The first byte of the value that the central reads or writes.
    open var offset: Int { position }

    /// The value that the central writes. For a read the program sets it, to the bytes from `offset` on.
    open var value: Data? {
        get { state.withLock { $0.value } }
        set { state.withLock { $0.value = newValue } }
    }

    /// Responds, if the central waits for it; returns `false` if that was done before.
    @discardableResult
    func respond(_ result: CBATTError.Code) -> Bool {
        guard needsResponse else { return true }
        let (continuation, response) = state.withLock { state in
            let response = Response(result: result, value: state.value)
            defer { state.isOver = true }
            return (state.isOver ? nil : state.response.take(), response)
        }
        continuation?.resume(returning: response)
        return continuation != nil
    }

    /// Has the response resume a task.
    func await(_ continuation: CheckedContinuation<Response, Never>) { state.withLock { $0.response = continuation } }
}
