public import BLECore

extension Peripheral {
    /// Reads a descriptor of a characteristic.
    ///
    /// If the descriptors of the characteristic are unknown, they are discovered first. A descriptor can be read by
    /// its handle with `read(.handle(…))`. If the peer announces meanwhile that the descriptor may have changed, a
    /// characteristic that is named by its UUID is looked up again.
    ///
    /// - Parameter timeout: The longest time, including the wait for its turn; `nil` for 60 s.
    /// - Throws: `BLEError` as `read(_:timeout:)` does; `.attributeNotFound` also if the characteristic has no such
    ///   descriptor; `.servicesChanged` for a handle or a `GATTCharacteristic` that may mean another one now.
    ///
    /// Spec: Core Vol 3 Part G, 4.12.
    public func readDescriptor(
        _ uuid: BluetoothUUID, of characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        let context = context(
            "read descriptor \(uuid) of \(characteristic)", within: timeout ?? Self.valueTimeout)
        return try await recovering(context) { () async throws(BLEError) in
            var owner = try await resolve(characteristic, in: context)
            while true {
                if let value = try await readDescriptor(uuid, of: owner, in: context) { return value }
                let former = owner
                owner = try await resolve(characteristic, in: context)
                // A UUID means the same after a change; a handle or a characteristic must be found unchanged.
                if case .uuid = characteristic { continue }
                guard owner.uuid == former.uuid, peerDatabase.state.confirms(owner) else {
                    throw changed(during: context.operation)
                }
            }
        }
    }

    /// Writes a descriptor of a characteristic.
    ///
    /// - Parameter timeout: The longest time, including the wait for its turn; `nil` for 60 s.
    /// - Throws: `BLEError` as `write(_:to:_:timeout:)` does; `.attributeNotFound` also if the characteristic has no
    ///   such descriptor; `.servicesChanged` if the peer announces meanwhile that the characteristic may have changed;
    ///   `.busy` for a client configuration that a subscription uses; `.notSupported` for a user description that is
    ///   known not to be writable.
    ///
    /// Spec: Core Vol 3 Part G, 4.12.
    public func writeDescriptor(
        _ value: [UInt8], to uuid: BluetoothUUID, of characteristic: CharacteristicReference,
        timeout: Duration? = nil
    ) async throws(BLEError) {
        let context = context(
            "write descriptor \(uuid) of \(characteristic)", within: timeout ?? Self.valueTimeout, retrying: .never)
        try await recovering(context) { () async throws(BLEError) in
            let owner = try await resolve(characteristic, in: context)
            if uuid == .userDescription, let known = peerDatabase.extendedProperties(of: owner),
                !known.contains(.writableAuxiliaries)
            {
                throw BLEError(
                    .notSupported, subject: name, during: context.operation,
                    because: "the characteristic's extended properties do not allow it",
                    hint: "Nothing was written; this peer's description can only be read.")
            }
            let descriptor = try await descriptor(uuid, of: owner, in: context)
            try checkConfiguration(descriptor.handle, in: context)
            try await writeOnce(value, to: descriptor.handle, in: context)
        }
    }

    /// Reads the peer's description of a characteristic, for users.
    ///
    /// - Throws: `BLEError` as `readDescriptor(_:of:timeout:)` does; `.malformedValue` if it is not UTF-8 text.
    ///
    /// Spec: Characteristic User Description, Core Vol 3 Part G, 3.3.3.2.
    public func userDescription(
        of characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) -> String {
        let value = try await readDescriptor(.userDescription, of: characteristic, timeout: timeout)
        return try decode(value, as: String.self, during: "read the user description of \(characteristic)")
    }

    /// Reads the extended properties of a characteristic. Reliable writes, and writes of the user description, are
    /// refused from then on if it does not allow them.
    ///
    /// - Throws: `BLEError` as `readDescriptor(_:of:timeout:)` does; `.malformedValue` for fewer than two bytes.
    ///
    /// Spec: Characteristic Extended Properties, Core Vol 3 Part G, 3.3.3.1.
    public func extendedProperties(
        of characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDescriptor.ExtendedProperties {
        let value = try await readDescriptor(.extendedProperties, of: characteristic, timeout: timeout)
        return try decode(
            value, as: GATTDescriptor.ExtendedProperties.self,
            during: "read the extended properties of \(characteristic)")
    }

    /// Reads the presentation format of a characteristic's value; the first one, if it has several.
    ///
    /// - Throws: `BLEError` as `readDescriptor(_:of:timeout:)` does; `.malformedValue` for an invalid format.
    ///
    /// Spec: Characteristic Presentation Format, Core Vol 3 Part G, 3.3.3.5.
    public func presentationFormat(
        of characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDescriptor.PresentationFormat {
        let value = try await readDescriptor(.presentationFormat, of: characteristic, timeout: timeout)
        return try decode(
            value, as: GATTDescriptor.PresentationFormat.self,
            during: "read the presentation format of \(characteristic)")
    }

    /// Requests the peer to start or stop broadcasting a characteristic's value in its advertisements.
    ///
    /// - Parameter timeout: The longest time, including the wait for its turn; `nil` for 60 s.
    /// - Throws: `BLEError` with `.notSupported` for a characteristic that cannot be broadcast, and as
    ///   `writeDescriptor(_:to:of:timeout:)` does.
    ///
    /// Spec: Server Characteristic Configuration, Core Vol 3 Part G, 3.3.3.4.
    public func setBroadcast(
        _ isOn: Bool, of characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) {
        let context = context(
            "\(isOn ? "start" : "stop") the broadcast of \(characteristic)", within: timeout ?? Self.valueTimeout,
            retrying: .never)
        try await recovering(context) { () async throws(BLEError) in
            let owner = try await resolve(characteristic, in: context)
            guard owner.properties.contains(.broadcast) else {
                throw BLEError(
                    .notSupported, subject: name, during: context.operation,
                    because: "the characteristic is not for broadcast",
                    hint: "Its properties are: \(owner.properties).")
            }
            let descriptor = try await descriptor(
                .serverCharacteristicConfiguration, of: owner, in: context)
            try await writeOnce([isOn ? 1 : 0, 0], to: descriptor.handle, in: context)
        }
    }

    // MARK: Inside

    /// Reads a descriptor. Returns `nil` if the peer has announced meanwhile that its handle may now belong to another
    /// attribute.
    private func readDescriptor(
        _ uuid: BluetoothUUID, of owner: GATTCharacteristic, in context: CallContext
    ) async throws(BLEError) -> [UInt8]? {
        let changes = peerDatabase.state.changeCount
        let descriptor: GATTDescriptor
        do {
            descriptor = try await self.descriptor(uuid, of: owner, in: context)
        } catch  where error.code == .servicesChanged {
            return nil
        }
        let value = try await readValue(descriptor.handle, in: context)
        guard peerDatabase.state.confirms(owner, since: changes) else { return nil }
        if uuid == .extendedProperties { noteExtendedProperties(value, of: owner) }
        return value
    }

    private func noteExtendedProperties(_ value: [UInt8], of owner: GATTCharacteristic) {
        if let known = try? GATTDescriptor.ExtendedProperties(value: value) { peerDatabase.note(known, of: owner) }
    }

    /// Looks for a descriptor in the known database, and then on the peer.
    private func descriptor(
        _ uuid: BluetoothUUID, of owner: GATTCharacteristic, in context: CallContext
    ) async throws(BLEError) -> GATTDescriptor {
        let known = peerDatabase.state.database?.descriptors(of: owner).first { $0.uuid == uuid && !$0.isInferred }
        if let known { return known }
        let found = try await findDescriptors(of: owner, in: context)
        if let first = found.first(where: { $0.uuid == uuid }) { return first }
        throw BLEError(
            .attributeNotFound, subject: name, during: context.operation,
            because: "the characteristic has no descriptor \(uuid)",
            hint: found.isEmpty
                ? "It has no descriptors." : "It has \(found.map(\.uuid.description).joined(separator: ", ")).")
    }

    /// Discovers the descriptors of one characteristic, and records them.
    ///
    /// - Throws: Also `.servicesChanged` if the peer announces meanwhile that the characteristic may have changed.
    func findDescriptors(
        of characteristic: GATTCharacteristic, in context: CallContext
    ) async throws(BLEError) -> [GATTDescriptor] {
        while true {
            let changes = peerDatabase.state.changeCount
            let outcome = try await run(in: context) { client, id, deadline, now in
                let procedure = DescriptorDiscovery(of: characteristic)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .descriptors($0) }
            }
            guard case .descriptors(let descriptors) = outcome else { throw unexpected(outcome, in: context) }
            if changes == peerDatabase.state.changeCount {
                peerDatabase.found(descriptors, of: characteristic)
                return descriptors
            }
            // What was found may be older than the change.
            guard peerDatabase.state.confirms(characteristic) else { throw changed(during: context.operation) }
        }
    }

    /// Refuses a reliable write to a characteristic that is known not to support it.
    func checkReliableWrite(to reference: CharacteristicReference, in context: CallContext) throws(BLEError) {
        guard let owner = peerDatabase.known(reference),
            let known = peerDatabase.extendedProperties(of: owner), !known.contains(.reliableWrite)
        else { return }
        throw BLEError(
            .notSupported, subject: name, during: context.operation,
            because: "the extended properties of \(reference) do not allow reliable writes",
            hint: "Write it by itself.")
    }
}

extension BluetoothUUID {
    static let extendedProperties = BluetoothUUID(0x2900 as UInt16)
    static let userDescription = BluetoothUUID(0x2901 as UInt16)
    static let presentationFormat = BluetoothUUID(0x2904 as UInt16)
    static let serverCharacteristicConfiguration = BluetoothUUID(0x2903 as UInt16)
}
