/// Lists the descriptors of one characteristic, for callers that discovered less than everything; or those in a range
/// of handles, up to the first declaration in it.
///
/// It sends no request if the characteristic has no handles left for a descriptor. Handles that the peer leaves out do
/// not exist; a refusal other than Attribute Not Found is a failure.
///
/// Spec: Discover All Characteristic Descriptors, Core Vol 3 Part G, 4.7.1.
package struct DescriptorDiscovery: GATTProcedure {
    private let range: ClosedRange<AttributeHandle>?
    private var place: SearchRange
    private let limit: Int
    private var descriptors: [GATTDescriptor] = []

    package init(of characteristic: GATTCharacteristic) {
        range = characteristic.descriptorHandles
        place = SearchRange(range ?? 1...1)
        limit = GATTDatabase.attributeLimit
    }

    package init(in range: ClosedRange<AttributeHandle>, limit: Int = GATTDatabase.attributeLimit) {
        self.range = range
        self.limit = limit
        place = SearchRange(range)
    }

    package mutating func begin() -> GATTStep<[GATTDescriptor]> {
        range == nil ? .finished([]) : .send(request.bytes)
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<[GATTDescriptor]> {
        .attempt { () throws(GATTFailure) in
            if case .error(let error) = reply, error.code == .attributeNotFound { return .finished(descriptors) }
            for entry in try Self.response(to: ATTFindInformationRequest.self, in: reply).entries {
                try place.check(entry.handle)
                // The next characteristic or service begins here; the range was too large.
                if entry.type.isDeclaration { return .finished(descriptors) }
                descriptors.append(GATTDescriptor(handle: entry.handle, uuid: entry.type))
                guard descriptors.count <= GATTDatabase.attributeLimit else {
                    throw .databaseTooLarge(limit: GATTDatabase.attributeLimit)
                }
                place.cursor = Int(entry.handle) + 1
            }
            if descriptors.count >= limit { return .finished(Array(descriptors.prefix(limit))) }
            return place.count > 0 ? .send(request.bytes) : .finished(descriptors)
        }
    }

    private var request: ATTFindInformationRequest {
        ATTFindInformationRequest(startHandle: place.start, endHandle: place.range.upperBound)
    }
}
