/// Writes one value that fits into a packet, and waits for the peer's response.
///
/// A longer value fails without being sent; use `WriteLong` for it.
///
/// Spec: Write Characteristic Value, Core Vol 3 Part G, 4.9.3.
package struct WriteRequest: GATTProcedure {
    private let handle: AttributeHandle
    private let value: [UInt8]
    private let mtu: UInt16

    package init(handle: AttributeHandle, value: [UInt8], mtu: UInt16) {
        self.handle = handle
        self.value = value
        self.mtu = mtu
    }

    /// Returns the number of value bytes in one request on a link with this MTU.
    package static func capacity(mtu: UInt16) -> Int {
        max(Int(mtu), Int(MTUExchange.minimum)) - 3
    }

    package mutating func begin() -> GATTStep<Void> {
        guard value.count <= Self.capacity(mtu: mtu) else { return .failed(.valueTooLong(partial: [])) }
        return .send(ATTWriteRequest(handle: handle, value: value).bytes)
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<Void> {
        .attempt { () throws(GATTFailure) in
            _ = try Self.response(to: ATTWriteRequest.self, in: reply)
            return .finished(())
        }
    }
}
