import BLECore
import BareBLE

/// A value that was read.
struct ReadValue: Sendable {
    let handle: AttributeHandle
    /// The type of the attribute; `nil` if the peer does not report it.
    var uuid: BluetoothUUID?
    let value: [UInt8]
}

/// Reads the values that a command line names, for `read`, `watch` and `talk`.
struct ValueReader: Sendable {
    let peripheral: Peripheral
    let peer: PeerArgument
    /// The longest time for one request.
    let timeout: Duration
    /// Whether the peer was paired for this command.
    let isPaired: Bool
    /// Whether the type of a handle is requested where it is not known: without its type a value has no meaning.
    let findsTypes: Bool

    /// Reads a value.
    ///
    /// - Throws: `BLEError`, with what helps.
    func read(_ attribute: AttributeArgument) async throws(BLEError) -> ReadValue {
        do throws(BLEError) {
            let (handle, uuid, value) = try await peripheral.readAttribute(attribute.reference, timeout: timeout)
            var reading = ReadValue(handle: handle, uuid: uuid, value: value)
            if uuid == nil, findsTypes {
                // A peer that does not report it is no failure.
                reading.uuid = try? await peripheral.attributeType(at: handle, timeout: timeout)
            }
            return reading
        } catch {
            throw await attribute.advised(error, peripheral).advised(peer, isBonded: isPaired)
        }
    }
}
