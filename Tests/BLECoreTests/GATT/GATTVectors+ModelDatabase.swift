import TestSupport

extension GATTVectors.Findings {
    /// A server that has what is expected to be found.
    func model(in range: ClosedRange<UInt16>? = nil, valueHandle: UInt16? = nil) throws -> ModelDatabase {
        ModelDatabase(attributes: try attributes(in: range, valueHandle: valueHandle).map(\.model))
    }
}

extension GATTVectors.Database {
    func model() throws -> ModelDatabase {
        ModelDatabase(attributes: try recordedAttributes().map(\.model))
    }
}

extension RecordedAttribute {
    fileprivate var model: ModelAttribute {
        ModelAttribute(handle: handle, type: type, value: value, groupEnd: groupEnd)
    }
}
