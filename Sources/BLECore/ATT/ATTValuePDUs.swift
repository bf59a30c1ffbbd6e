// PDUs with values that the server initiates.

/// Sends a value without acknowledgment.
///
///     0x1B | handle 2 | value 0...
///
/// Spec: ATT_HANDLE_VALUE_NTF, Core Vol 3 Part F, 3.4.7.1.
package struct ATTHandleValueNotification: ATTHandleValuePDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.handleValueNotification
    /// The handle of the attribute.
    package var handle: AttributeHandle
    /// The value, truncated to MTU - 3 bytes.
    package var value: [UInt8]

    /// Creates a notification.
    package init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }
}

/// Sends a value that the client must confirm.
///
///     0x1D | handle 2 | value 0...             reply: ATTHandleValueConfirmation
///
/// Spec: ATT_HANDLE_VALUE_IND, Core Vol 3 Part F, 3.4.7.2.
package struct ATTHandleValueIndication: ATTHandleValuePDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.handleValueIndication
    /// The handle of the attribute.
    package var handle: AttributeHandle
    /// The value, truncated to MTU - 3 bytes.
    package var value: [UInt8]

    /// Creates an indication.
    package init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }
}

/// The confirmation of an `ATTHandleValueIndication`.
///
///     0x1E
///
/// Spec: ATT_HANDLE_VALUE_CFM, Core Vol 3 Part F, 3.4.7.3.
package struct ATTHandleValueConfirmation: ATTEmptyPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.handleValueConfirmation

    /// Creates a confirmation.
    package init() {}
}

/// Sends several values without acknowledgment.
///
///     0x23 | (handle 2 | length 2 | value length) ...
///
/// Spec: ATT_MULTIPLE_HANDLE_VALUE_NTF, Core Vol 3 Part F, 3.4.7.4.
package struct ATTMultipleHandleValueNotification: ATTPDU {
    /// An attribute and its complete value.
    package typealias Entry = ATTAttributeValue

    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.multipleHandleValueNotification
    /// The values in packet order; the specification requires two or more, but one is accepted.
    package var entries: [Entry]

    /// Creates a notification.
    package init(entries: [Entry]) {
        self.entries = entries
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        var entries: [Entry] = []
        repeat {
            guard let handle = reader.u16(), let length = reader.u16(), let value = reader.array(Int(length)) else {
                throw Self.tooShort(reader)
            }
            entries.append(Entry(handle: handle, value: value))
        } while !reader.isAtEnd
        self.init(entries: entries)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter()
        for entry in entries {
            writer.u16(entry.handle)
            writer.u16(UInt16(truncatingIfNeeded: entry.value.count))
            writer.array(entry.value)
        }
        return writer.bytes
    }
}
