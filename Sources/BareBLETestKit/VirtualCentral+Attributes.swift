public import BLECore

// What a central does with the attributes of a server, by packets that are encoded here.

extension VirtualCentral {
    /// A service that a central has found.
    public struct Service: Hashable, Sendable {
        /// The service's UUID.
        public let uuid: BluetoothUUID
        /// The handles of its attributes.
        public let handles: ClosedRange<AttributeHandle>
        /// Its characteristics, in the order of their handles.
        public internal(set) var characteristics: [Characteristic] = []
    }

    /// A characteristic that a central has found.
    public struct Characteristic: Hashable, Sendable {
        /// The characteristic's UUID.
        public let uuid: BluetoothUUID
        /// The operations that its declaration permits.
        public let properties: CharacteristicProperties
        /// The handle of its declaration.
        public let declaration: AttributeHandle
        /// The handle of its value.
        public let value: AttributeHandle
        /// Its descriptors, in the order of their handles.
        public internal(set) var descriptors: [Descriptor] = []
    }

    /// A descriptor that a central has found.
    public struct Descriptor: Hashable, Sendable {
        /// The descriptor's UUID.
        public let uuid: BluetoothUUID
        /// Its handle.
        public let handle: AttributeHandle
    }

    // MARK: Discovery

    /// Exchanges the MTU, and returns the one that is then in force.
    ///
    /// - Parameter mtu: The MTU that this side offers.
    /// - Throws: `VirtualCentralError`, `.refused` by a server that does not exchange it.
    @discardableResult
    public func exchangeMTU(_ mtu: UInt16 = 517) async throws(VirtualCentralError) -> UInt16 {
        let response = try await request([0x02] + mtu.littleEndianBytes, expecting: 0x03, 3)
        let offered = Self.number(response, at: 1)
        setMTU(max(23, min(mtu, offered)))
        return self.mtu
    }

    /// Discovers all primary services with their characteristics and descriptors, and returns them.
    ///
    /// - Throws: `VirtualCentralError`.
    @discardableResult
    public func discover() async throws(VirtualCentralError) -> [Service] {
        var found: [Service] = []
        var start: AttributeHandle = 1
        repeat {
            guard let list = try await list([0x10] + Self.range(start, 0xFFFF) + [0x00, 0x28], 0x11, least: 6) else {
                break
            }
            for entry in list {
                let (first, last) = (Self.number(entry, at: 0), Self.number(entry, at: 2))
                guard first >= start, last >= first, let uuid = Self.uuid(entry.dropFirst(4)) else {
                    throw .malformed(entry)
                }
                found.append(Service(uuid: uuid, handles: first...last))
                start = last &+ 1
            }
        } while start > 1
        for index in found.indices {
            found[index].characteristics = try await characteristics(in: found[index].handles)
        }
        setServices(found)
        return found
    }

    private func characteristics(
        in handles: ClosedRange<AttributeHandle>
    ) async throws(VirtualCentralError) -> [Characteristic] {
        var found: [Characteristic] = []
        var start = handles.lowerBound
        while start <= handles.upperBound, start != 0,
            let list = try await list([0x08] + Self.range(start, handles.upperBound) + [0x03, 0x28], 0x09, least: 7)
        {
            for entry in list {
                let declaration = Self.number(entry, at: 0)
                guard declaration >= start, let uuid = Self.uuid(entry.dropFirst(5)) else { throw .malformed(entry) }
                found.append(
                    Characteristic(
                        uuid: uuid, properties: CharacteristicProperties(rawValue: entry[2]), declaration: declaration,
                        value: Self.number(entry, at: 3)))
                start = declaration &+ 1
            }
        }
        for index in found.indices {
            let end = index + 1 < found.count ? found[index + 1].declaration - 1 : handles.upperBound
            found[index].descriptors = try await descriptors(after: found[index].value, until: end)
        }
        return found
    }

    private func descriptors(
        after value: AttributeHandle, until end: AttributeHandle
    ) async throws(VirtualCentralError) -> [Descriptor] {
        var found: [Descriptor] = []
        var last = value
        while last < end {
            let response: [UInt8]
            do throws(VirtualCentralError) {
                response = try await request([0x04] + Self.range(last + 1, end), expecting: 0x05, 6)
            } catch .refused(_, _, .attributeNotFound) {
                break
            }
            // One form has UUIDs of 2 bytes, the other one of 16.
            let size = response[1] == 1 ? 4 : 18
            for entry in Self.entries(response.dropFirst(2), size) {
                let handle = Self.number(entry, at: 0)
                guard handle > last, let uuid = Self.uuid(entry.dropFirst(2)) else { throw .malformed(response) }
                found.append(Descriptor(uuid: uuid, handle: handle))
                last = handle
            }
        }
        return found
    }

    /// Returns the characteristic with this UUID, the first one if there are several;
    /// discovers if nothing is known yet.
    ///
    /// - Throws: `VirtualCentralError.noSuchAttribute`, and the failures of `discover()`.
    public func characteristic(_ uuid: BluetoothUUID) async throws(VirtualCentralError) -> Characteristic {
        if services.isEmpty { try await discover() }
        for service in services {
            if let found = service.characteristics.first(where: { $0.uuid == uuid }) { return found }
        }
        throw .noSuchAttribute(uuid)
    }

    // MARK: Values

    /// Reads the value at a handle: what fits one packet.
    ///
    /// - Throws: `VirtualCentralError`.
    public func read(at handle: AttributeHandle) async throws(VirtualCentralError) -> [UInt8] {
        Array(try await request([0x0A] + handle.littleEndianBytes, expecting: 0x0B, 1).dropFirst())
    }

    /// Reads a part of the value at a handle, from an offset on.
    ///
    /// - Throws: `VirtualCentralError`.
    public func read(at handle: AttributeHandle, from offset: UInt16) async throws(VirtualCentralError) -> [UInt8] {
        let pdu = [0x0C] + handle.littleEndianBytes + offset.littleEndianBytes
        return Array(try await request(pdu, expecting: 0x0D, 1).dropFirst())
    }

    /// Reads the whole value of the first characteristic with this UUID, in as many parts as it takes.
    ///
    /// - Throws: `VirtualCentralError`.
    public func read(_ uuid: BluetoothUUID) async throws(VirtualCentralError) -> [UInt8] {
        let handle = try await characteristic(uuid).value
        var value = try await read(at: handle)
        var part = value.count
        while part == Int(mtu) - 1, value.count < ATTLimits.valueLength {
            let more = try await read(at: handle, from: UInt16(value.count))
            value += more
            part = more.count
        }
        return value
    }

    /// Writes a value that fits one packet to a handle, with a response.
    ///
    /// - Throws: `VirtualCentralError`.
    public func write(_ value: [UInt8], at handle: AttributeHandle) async throws(VirtualCentralError) {
        _ = try await request([0x12] + handle.littleEndianBytes + value, expecting: 0x13, 1)
    }

    /// Writes a value to the first characteristic with this UUID, with a response; one that does not fit a packet is
    /// prepared in parts.
    ///
    /// - Throws: `VirtualCentralError`.
    public func write(_ value: [UInt8], to uuid: BluetoothUUID) async throws(VirtualCentralError) {
        let handle = try await characteristic(uuid).value
        guard value.count > Int(mtu) - 3 else { return try await write(value, at: handle) }
        var offset = 0
        while offset < value.count {
            let part = Array(value.dropFirst(offset).prefix(Int(mtu) - 5))
            try await prepare(part, at: handle, from: UInt16(offset))
            offset += part.count
        }
        try await execute()
    }

    /// Writes a value to a handle without a response; does nothing without a link.
    public func command(_ value: [UInt8], at handle: AttributeHandle) {
        send(raw: [0x52] + handle.littleEndianBytes + value)
    }

    /// Prepares a part of a value to be written.
    ///
    /// - Throws: `VirtualCentralError`; `.malformed` if the server's echo differs.
    public func prepare(
        _ part: [UInt8], at handle: AttributeHandle, from offset: UInt16
    ) async throws(VirtualCentralError) {
        let pdu = [0x16] + handle.littleEndianBytes + offset.littleEndianBytes + part
        let response = try await request(pdu, expecting: 0x17, 5)
        guard response.dropFirst() == pdu.dropFirst() else { throw .malformed(response) }
    }

    /// Writes what was prepared, or drops it.
    ///
    /// - Throws: `VirtualCentralError`.
    public func execute(isWriting: Bool = true) async throws(VirtualCentralError) {
        _ = try await request([0x18, isWriting ? 1 : 0], expecting: 0x19, 1)
    }

    // MARK: Subscriptions

    /// Subscribes to the first characteristic with this UUID; `nextValue(within:)` returns the values.
    ///
    /// - Parameters:
    ///   - uuid: The characteristic.
    ///   - isIndicated: Whether to ask for indications, which are confirmed, instead of notifications.
    /// - Throws: `VirtualCentralError`; `.noSuchAttribute` if it has no client configuration.
    public func subscribe(
        to uuid: BluetoothUUID, isIndicated: Bool = false
    ) async throws(VirtualCentralError) {
        try await configure(isIndicated ? 2 : 1, of: uuid)
    }

    /// Ends the subscription to the first characteristic with this UUID.
    ///
    /// - Throws: `VirtualCentralError`.
    public func unsubscribe(from uuid: BluetoothUUID) async throws(VirtualCentralError) {
        try await configure(0, of: uuid)
    }

    /// Writes the client configuration of the first characteristic with this UUID, with any bits.
    ///
    /// - Throws: `VirtualCentralError`; `.noSuchAttribute` if it has none.
    public func configure(_ bits: UInt16, of uuid: BluetoothUUID) async throws(VirtualCentralError) {
        let descriptors = try await characteristic(uuid).descriptors
        guard let configuration = descriptors.first(where: { $0.uuid == 0x2902 }) else { throw .noSuchAttribute(uuid) }
        try await write(bits.littleEndianBytes, at: configuration.handle)
    }

    // MARK: Formats

    /// Sends a request, and checks the opcode and the least length of its response.
    private func request(
        _ pdu: [UInt8], expecting opcode: UInt8, _ length: Int
    ) async throws(VirtualCentralError) -> [UInt8] {
        let response = try await request(pdu)
        guard response.first == opcode, response.count >= length else { throw .malformed(response) }
        return response
    }

    /// The entries of a list whose response begins with their length; `nil` if there are none left.
    private func list(
        _ pdu: [UInt8], _ opcode: UInt8, least: Int
    ) async throws(VirtualCentralError) -> [[UInt8]]? {
        do throws(VirtualCentralError) {
            let response = try await request(pdu, expecting: opcode, 2 + least)
            let size = Int(response[1])
            guard size >= least, (response.count - 2) % size == 0 else { throw VirtualCentralError.malformed(response) }
            return Self.entries(response.dropFirst(2), size)
        } catch .refused(_, _, .attributeNotFound) {
            return nil
        }
    }

    private static func entries(_ bytes: ArraySlice<UInt8>, _ size: Int) -> [[UInt8]] {
        stride(from: 0, to: bytes.count - size + 1, by: size).map { Array(bytes.dropFirst($0).prefix(size)) }
    }

    private static func number(_ bytes: [UInt8], at offset: Int) -> UInt16 {
        let pair = Array(bytes.dropFirst(offset).prefix(2))
        return pair.count == 2 ? UInt16(pair[0]) | UInt16(pair[1]) << 8 : 0
    }

    private static func uuid(_ bytes: ArraySlice<UInt8>) -> BluetoothUUID? {
        bytes.count == 2 || bytes.count == 16 ? BluetoothUUID(littleEndian: Array(bytes).span) : nil
    }

    private static func range(_ first: AttributeHandle, _ last: AttributeHandle) -> [UInt8] {
        first.littleEndianBytes + last.littleEndianBytes
    }
}
