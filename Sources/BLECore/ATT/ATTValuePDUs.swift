// The packets with values that a peer sends of its own accord.

/// Tells a value; nobody answers.
///
///     0x1B | handle 2 | value 0...
///
/// Spec: ATT_HANDLE_VALUE_NTF, Core Vol 3 Part F, 3.4.7.1.
public struct ATTHandleValueNotification: ATTHandleValuePDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.handleValueNotification
    /// The attribute whose value it is.
    public var handle: AttributeHandle
    /// The value, cut at MTU - 3 bytes.
    public var value: [UInt8]

    /// Tells `value` of `handle`.
    public init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }
}

/// Tells a value, and asks for a word that it came.
///
///     0x1D | handle 2 | value 0...             reply: ATTHandleValueConfirmation
///
/// Spec: ATT_HANDLE_VALUE_IND, Core Vol 3 Part F, 3.4.7.2.
public struct ATTHandleValueIndication: ATTHandleValuePDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.handleValueIndication
    /// The attribute whose value it is.
    public var handle: AttributeHandle
    /// The value, cut at MTU - 3 bytes.
    public var value: [UInt8]

    /// Tells `value` of `handle`.
    public init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }
}

/// The answer to `ATTHandleValueIndication`: it came.
///
///     0x1E
///
/// Spec: ATT_HANDLE_VALUE_CFM, Core Vol 3 Part F, 3.4.7.3.
public struct ATTHandleValueConfirmation: ATTEmptyPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.handleValueConfirmation

    /// Confirms the last indication.
    public init() {}
}

/// Tells several values at once; nobody answers.
///
///     0x23 | (handle 2 | length 2 | value length) ...
///
/// Spec: ATT_MULTIPLE_HANDLE_VALUE_NTF, Core Vol 3 Part F, 3.4.7.4.
public struct ATTMultipleHandleValueNotification: ATTPDU {
    /// One attribute and its whole value.
    public typealias Entry = ATTAttributeValue

    /// The packet's first byte.
    public static let opcode = ATTOpcode.multipleHandleValueNotification
    /// The values in the order of the packet; the specification wants two or more, one is accepted.
    public var entries: [Entry]

    /// Tells `entries`.
    public init(entries: [Entry]) {
        self.entries = entries
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
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

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter()
        for entry in entries {
            writer.u16(entry.handle)
            writer.u16(UInt16(truncatingIfNeeded: entry.value.count))
            writer.array(entry.value)
        }
        return writer.bytes
    }
}
