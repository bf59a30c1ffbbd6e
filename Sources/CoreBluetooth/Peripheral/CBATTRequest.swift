internal import BLELinux
internal import BareBLE

/// A request of a central to read or write a value of this program.
///
/// Every request but a write without response needs a response, by `CBPeripheralManager.respond(to:withResult:)`,
/// within 20 seconds. Requests that came together have one response, to any of them. Without one they are refused with
/// Unlikely Error: after that time, or when their last reference goes away.
open class CBATTRequest: NSObject, @unchecked Sendable {
    /// The program's response.
    struct Response: Sendable {
        let result: CBATTError.Code
        let value: Data?
    }

    private let source: CBCentral
    private let target: CBCharacteristic
    private let position: Int
    private let content: Lock<Data?>
    /// The response that the central waits for; `nil` if it waits for none.
    private let pending: PendingResponse?

    init(
        _ central: CBCentral, _ characteristic: CBCharacteristic, offset: Int, value: Data?, pending: PendingResponse?
    ) {
        source = central
        target = characteristic
        position = offset
        content = Lock(value)
        self.pending = pending
    }

    /// The central.
    open var central: CBCentral { source }
    /// The characteristic.
    open var characteristic: CBCharacteristic { target }
    /// The first byte of the value that the central reads or writes.
    open var offset: Int { position }

    /// The value that the central writes. For a read the program sets it, to the bytes from `offset` on.
    open var value: Data? {
        get { content.withLock { $0 } }
        set { content.withLock { $0 = newValue } }
    }

    /// Responds, if the central waits for it; returns `false` if that was done before.
    func respond(_ result: CBATTError.Code) -> Bool {
        pending?.respond(CBATTRequest.Response(result: result, value: value)) ?? true
    }
}
