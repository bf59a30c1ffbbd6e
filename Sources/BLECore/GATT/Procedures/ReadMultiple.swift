/// Reads several values of known length in one request; the response contains all of them in a row.
///
/// The caller knows the lengths. What does not fit into the packet is missing at the end.
///
/// Spec: Read Multiple Characteristic Values, Core Vol 3 Part G, 4.8.4.
package struct ReadMultiple: GATTProcedure {
    private let handles: [AttributeHandle]
    private let mtu: UInt16

    package init(handles: [AttributeHandle], mtu: UInt16) {
        self.handles = handles
        self.mtu = mtu
    }

    package mutating func begin() -> GATTStep<[UInt8]> {
        guard handles.canBeAsked(mtu: mtu) else { return .failed(.impossibleRequest(.readMultipleRequest)) }
        return .send(ATTReadMultipleRequest(handles: handles).bytes)
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<[UInt8]> {
        .attempt { () throws(GATTFailure) in
            .finished(try Self.response(to: ATTReadMultipleRequest.self, in: reply).values)
        }
    }
}

/// Reads several values of any length in one request; the response has their lengths.
///
/// There are fewer values than handles if the packet had no room for all of them, and the last one may be truncated.
///
/// Spec: Read Multiple Variable Length Characteristic Values, Core Vol 3 Part G, 4.8.5.
package struct ReadMultipleVariable: GATTProcedure {
    private let handles: [AttributeHandle]
    private var mtu: UInt16

    package init(handles: [AttributeHandle], mtu: UInt16) {
        self.handles = handles
        self.mtu = mtu
    }

    package mutating func begin() -> GATTStep<[AttributeValue]> {
        guard handles.canBeAsked(mtu: mtu) else { return .failed(.impossibleRequest(.readMultipleVariableRequest)) }
        return .send(ATTReadMultipleVariableRequest(handles: handles).bytes)
    }

    package mutating func willReceive(mtu: UInt16) {
        self.mtu = mtu
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<[AttributeValue]> {
        .attempt { () throws(GATTFailure) in
            let response = try response(in: reply)
            var values: [AttributeValue] = []
            let last = response.values.count - 1
            for (index, (handle, value)) in zip(handles, response.values).enumerated() {
                let mayBeCut = index == last && response.missing > 0
                values.append(AttributeValue(handle: handle, value: value, mayBeCut: mayBeCut))
            }
            return .finished(values)
        }
    }

    private func response(in reply: ATTReply) throws(GATTFailure) -> ATTReadMultipleVariableResponse {
        switch reply {
        case .error(let error): throw GATTFailure(error)
        case .response(let pdu):
            do throws(MalformedPacket) {
                let response = try ATTReadMultipleVariableResponse(pdu, mtu: mtu)
                guard response.values.count >= handles.count || pdu.count >= Int(mtu) else {
                    throw ATTReadMultipleVariableResponse.malformed(at: pdu.count, .tooShort)
                }
                return response
            } catch {
                throw .malformed(error)
            }
        }
    }
}

extension Array<AttributeHandle> {
    /// Whether there are handles, and no more than fit into one packet.
    fileprivate func canBeAsked(mtu: UInt16) -> Bool {
        !isEmpty && 1 + 2 * count <= Int(mtu)
    }
}
