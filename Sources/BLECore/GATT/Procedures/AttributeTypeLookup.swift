/// Finds out the type of one attribute.
///
/// Spec: Discover All Characteristic Descriptors uses the same request, Core Vol 3 Part G, 4.7.1.
package struct AttributeTypeLookup: GATTProcedure {
    private let handle: AttributeHandle

    package init(_ handle: AttributeHandle) {
        self.handle = handle
    }

    package mutating func begin() -> GATTStep<BluetoothUUID> {
        .send(ATTFindInformationRequest(startHandle: handle, endHandle: handle).bytes)
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<BluetoothUUID> {
        .attempt { () throws(GATTFailure) in
            let response = try Self.response(to: ATTFindInformationRequest.self, in: reply)
            for entry in response.entries where entry.handle == handle { return .finished(entry.type) }
            throw .outOfRange(response.entries.first?.handle ?? handle)
        }
    }
}
