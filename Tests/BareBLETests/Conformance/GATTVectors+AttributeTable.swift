import BareBLETestKit
import TestSupport

extension GATTVectors.Findings {
    /// A server that has what was found.
    func table(
        in range: ClosedRange<UInt16>? = nil, valueHandle: UInt16? = nil, configurations: Set<UInt16> = []
    ) throws -> AttributeTable {
        AttributeTable(
            try attributes(in: range, valueHandle: valueHandle, configurations: configurations).map(\.served))
    }
}

extension GATTVectors.Database {
    func table() throws -> AttributeTable {
        AttributeTable(try recordedAttributes().map(\.served))
    }
}

extension RecordedAttribute {
    fileprivate var served: ServedAttribute {
        var attribute = ServedAttribute(handle: handle, type: type, value: value)
        attribute.writeError = nil
        if let groupEnd { attribute.role = .group(end: groupEnd) }
        return attribute
    }
}
