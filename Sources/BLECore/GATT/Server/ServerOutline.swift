/// The handles of a database's services, with a checksum of each service's declarations: what a later run of the
/// program compares its own database with.
///
/// Spec: Core Vol 3 Part G, 2.5.1.
package struct ServerOutline: Hashable, Sendable {
    /// One service.
    package struct Service: Hashable, Sendable {
        /// The handles of the service.
        package let handles: ClosedRange<AttributeHandle>
        /// The checksum of the declarations in it.
        package let checksum: UInt32

        package init(handles: ClosedRange<AttributeHandle>, checksum: UInt32) {
            self.handles = handles
            self.checksum = checksum
        }
    }

    /// The services by their handles, none of which two share.
    package let services: [Service]

    /// Creates an outline of services that are sorted by their handles.
    package init(services: [Service] = []) {
        self.services = services
    }

    /// Returns the smallest range with all handles whose services are different in `other`; `nil` if there are none.
    package func difference(from other: ServerOutline) -> ClosedRange<AttributeHandle>? {
        var range: ClosedRange<AttributeHandle>?
        func add(_ services: [Service], missingIn others: [Service]) {
            let known = Set(others)
            for service in services where !known.contains(service) { range = range.merged(with: service.handles) }
        }
        add(services, missingIn: other.services)
        add(other.services, missingIn: services)
        return range
    }
}

// MARK: - The form that is stored

/// The layout inside another form; numbers are little-endian:
///
///     services 2, each: first handle 2, last handle 2, checksum 4; by handle
extension ByteWriter {
    mutating func storedOutline(_ outline: ServerOutline) {
        let stored = outline.services.prefix(Int(UInt16.max))
        u16(UInt16(clamping: stored.count))
        for service in stored {
            u16(service.handles.lowerBound)
            u16(service.handles.upperBound)
            u32(service.checksum)
        }
    }
}

extension ByteReader {
    @_lifetime(self: copy self)
    mutating func storedOutline(in form: FileEnvelope) throws(MalformedPacket) -> ServerOutline {
        let start = offset
        guard let count = u16() else { throw .stored(form, at: start, .tooShort) }
        var services: [ServerOutline.Service] = []
        var last: AttributeHandle = 0
        for _ in 0..<count {
            let place = offset
            guard let first = u16(), let end = u16(), let checksum = u32() else {
                throw .stored(form, at: place, .tooShort)
            }
            guard first > last, first <= end else { throw .stored(form, at: place, .invalidField("service")) }
            services.append(ServerOutline.Service(handles: first...end, checksum: checksum))
            last = end
        }
        return ServerOutline(services: services)
    }
}
