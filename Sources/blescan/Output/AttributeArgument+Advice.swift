import BLECore
import BareBLE

extension AttributeArgument {
    /// Returns the failure of an operation on the named attribute, with suggestions where there are any.
    ///
    /// - Parameters:
    ///   - subscribing: Whether the operation was a subscription, which descriptors do not support.
    ///   - reading: What reads a value that can only be read, as a sentence.
    ///   - notifying: What shows a value that the peer sends, as a sentence.
    func advised(
        _ error: BLEError, _ peripheral: Peripheral, subscribing: Bool = false,
        reading: String = "`blescan watch` reads it again and again.", notifying: String = AttributeArgument.sent
    ) async -> BLEError {
        if error.attError == .readNotPermitted {
            // A read by UUID or handle needs no properties, so that they may not be known.
            let database = try? await peripheral.discover(level: .structure, timeout: .seconds(5))
            let characteristic = reference.valueHandle(in: database).flatMap {
                database?.characteristic(valueHandle: $0)
            }
            let isSent = characteristic?.properties.canSubscribe == true
            return error.with(reason: "it is not readable", hint: isSent ? notifying : Self.readable)
        }
        let database = await peripheral.database
        let characteristic = reference.valueHandle(in: database).flatMap { database?.characteristic(valueHandle: $0) }
        if let characteristic {
            if characteristic.uuid == 0x2A39, error.attError?.rawValue == 0x80 {
                // Heart Rate Service 1.0, 1.6.
                return error.with(
                    reason: "refused: control point not supported", hint: "Write 01, which resets the energy expended.")
            }
            if let advised = Self.advised(
                error, of: characteristic.properties, subscribing: subscribing, reading: reading)
            {
                return advised
            }
        } else if error.attError == .writeNotPermitted {
            // The properties of a value that is named by its handle are not known.
            return error.with(reason: "it is not writable", hint: Self.writable)
        }
        switch reference {
        case .handle(let handle):
            let isUnknown = error.attError == .invalidHandle || error.code == .attributeNotFound
            let uuid = BluetoothUUID(handle)
            guard isUnknown, text.utf8.count == 6, let name = AssignedNumbers.characteristicName(uuid) else {
                return error
            }
            return error.with(hint: "0x is for handles. Did you mean \(uuid), \(name)?")
        case .uuid(let uuid, _, _):
            if error.code == .attributeNotFound, AssignedNumbers.name(of: uuid) == nil, let handle = uuid.short {
                return error.with(
                    hint: "Handles begin with 0x. Did you mean \(CharacteristicReference.handle(handle))?")
            }
            guard error.code == .attributeNotFound || error.code == .ambiguous,
                AssignedNumbers.descriptorName(uuid) != nil,
                let database = try? await peripheral.discover(level: .full, timeout: .seconds(5))
            else { return error }
            let owners = database.characteristics.filter { characteristic in
                database.descriptors(of: characteristic).contains { $0.uuid == uuid }
            }
            guard !owners.isEmpty else { return error }
            let handles = owners.flatMap { database.descriptors(of: $0) }.filter { $0.uuid == uuid }.map {
                CharacteristicReference.handle($0.handle).description
            }
            let hint =
                subscribing
                ? "Name the characteristic that has it: \(owners.map(\.uuid.description).joined(separator: ", "))."
                : "Name it by its handle: \(handles.joined(separator: ", "))."
            return error.with(reason: "\(uuid) is a descriptor", hint: hint)
        case .characteristic:
            return error
        }
    }

    static let sent = "`blescan notify` prints a value that the peer sends."
    static let readable = "`blescan explore` shows which values can be read."
    private static let writable = "`blescan explore` shows which values can be written."

    /// Returns the failure of what the properties do not permit; `nil` for another one.
    private static func advised(
        _ error: BLEError, of properties: CharacteristicProperties, subscribing: Bool, reading: String
    ) -> BLEError? {
        if error.attError == .writeNotPermitted, !properties.canWrite {
            return error.with(reason: "it is not writable (properties: \(properties))", hint: writable)
        }
        guard error.code == .notSupported, error.attError == nil else { return nil }
        if !subscribing, properties.canWrite {
            // The other kind of write is possible.
            return error.with(
                hint: properties.contains(.write) ? "Leave out --without-response." : "Add --without-response.")
        }
        guard error.hint == nil else { return nil }
        if !subscribing { return error.with(hint: writable) }
        return error.with(
            hint: properties.contains(.read) ? reading : "`blescan explore` shows which values the peer sends.")
    }

    /// To the library a descriptor's handle would stand for its characteristic, which is not what the user wrote.
    func expectValue(in database: GATTDatabase) throws(Failure) {
        guard case .handle(let handle) = reference, let characteristic = database.characteristic(containing: handle),
            characteristic.valueHandle != handle
        else {
            return
        }
        let descriptor = database.descriptors(of: characteristic).first { $0.handle == handle }
        let kind = handle == characteristic.declarationHandle ? "declaration" : "descriptor"
        let name = descriptor.flatMap { AssignedNumbers.descriptorName($0.uuid) } ?? kind
        let owner = [AssignedNumbers.characteristicName(characteristic.uuid), characteristic.uuid.description]
        let value = CharacteristicReference.handle(characteristic.valueHandle)
        throw Failure(
            message: "\(CharacteristicReference.handle(handle)) is the \(name) of "
                + "\(owner.compactMap(\.self).joined(separator: " ")), whose value is at \(value)",
            hint: "Subscribe to that.", status: .notFound)
    }
}

extension BLEError {
    /// Returns the same failure with other texts.
    func with(subject: String? = nil, reason: String? = nil, hint: String? = nil) -> BLEError {
        BLEError(
            code, subject: subject ?? self.subject, during: operation, because: reason ?? self.reason,
            hint: hint ?? self.hint, attError: attError, attributeHandle: attributeHandle, hciStatus: hciStatus,
            errorNumber: errorNumber, partialValue: partialValue, origin: origin)
    }
}
