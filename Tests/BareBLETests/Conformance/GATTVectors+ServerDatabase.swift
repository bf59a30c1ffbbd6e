import BLECore
import TestSupport

extension GATTVectors.Findings {
    /// A server that has what was found.
    func serverDatabase(
        in range: ClosedRange<UInt16>? = nil, valueHandle: UInt16? = nil, configurations: Set<UInt16> = []
    ) throws -> ServerDatabase {
        ServerDatabase(
            attributes: try attributes(in: range, valueHandle: valueHandle, configurations: configurations)
                .map(\.served))
    }
}

extension GATTVectors.Database {
    func serverDatabase() throws -> ServerDatabase {
        ServerDatabase(attributes: try recordedAttributes().map(\.served))
    }
}

extension RecordedAttribute {
    fileprivate var served: ServerAttribute {
        var attribute = ServerAttribute(handle: handle, type: type, value: value)
        attribute.writeMethods = [.request, .command]
        if let groupEnd { attribute.role = .group(end: groupEnd) }
        return attribute
    }
}
