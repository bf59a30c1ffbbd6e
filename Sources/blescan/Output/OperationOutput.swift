import BLECore
import BLEProfiles
import BareBLE

/// The lines about operations on a peer's attributes, the same in `read`, `write`, `notify` and `talk`.
struct OperationOutput: Sendable {
    let peer: String
    let isJSON: Bool
    /// Whether every object says which operation it is the result of.
    var namesOperations = false

    /// Returns the line about a value that was read; `label` is in front of it.
    func line(ofReading value: [UInt8], at handle: AttributeHandle, _ uuid: BluetoothUUID?, label: String?) -> [UInt8] {
        let meaning = ValueDescription.of(value, uuid: uuid)
        guard isJSON else { return plain([label, Hex.encode(value), meaning?.line]) }
        return JSONLine.object([
            "v": 1, "operation": operation("read"), "peer": .string(peer), "handle": .integer(Int(handle)),
            "uuid": uuid.map { .string($0.description) }, "name": name(uuid), "hex": .string(Hex.encode(value)),
            "value": meaning?.json,
        ]).bytes
    }

    /// Returns the line about a value that the peer has sent.
    func line(of value: ReceivedValue, _ uuid: BluetoothUUID?, label: String?) -> [UInt8] {
        let meaning = ValueDescription.of(value.bytes, uuid: uuid)
        guard isJSON else { return plain([Timestamp.localNow(), label, Hex.encode(value.bytes), meaning?.line]) }
        return JSONLine.object([
            "v": 1, "t": .string(Timestamp.now()), "peer": .string(peer), "handle": .integer(Int(value.handle)),
            "uuid": uuid.map { .string($0.description) }, "name": name(uuid),
            "event": value.isIndication ? "indication" : "notification", "hex": .string(Hex.encode(value.bytes)),
            "value": meaning?.json,
            "dropped": value.droppedBefore > 0 ? .integer(value.droppedBefore) : nil,
        ]).bytes
    }

    /// Returns the line about a value that was written.
    func line(
        ofWriting bytes: [UInt8], to attribute: AttributeArgument, at handle: AttributeHandle?, _ uuid: BluetoothUUID?,
        _ kind: WriteKind
    ) -> [UInt8] {
        let isConfirmed = kind == .withResponse
        guard isJSON else {
            let count = bytes.count.counted("byte")
            var target = attribute.text
            if case .uuid = attribute.reference, let handle { target += " (\(CharacteristicReference.handle(handle)))" }
            return plain([
                isConfirmed ? "wrote \(count) to \(target)" : "sent \(count) to \(target), no response expected"
            ])
        }
        return JSONLine.object([
            "v": 1, "operation": operation("write"), "peer": .string(peer), "attribute": .string(attribute.text),
            "handle": handle.map { .integer(Int($0)) }, "uuid": uuid.map { .string($0.description) },
            "name": name(uuid), "written": .integer(bytes.count), "hex": .string(Hex.encode(bytes)),
            "confirmed": .bool(isConfirmed),
        ]).bytes
    }

    private func operation(_ name: String) -> JSONLine? { namesOperations ? .string(name) : nil }

    private func name(_ uuid: BluetoothUUID?) -> JSONLine? { uuid.flatMap(AssignedNumbers.name).map { .string($0) } }

    private func plain(_ parts: [String?]) -> [UInt8] {
        Array(Console.spelled(parts.compactMap(\.self).joined(separator: "  ")).utf8)
    }
}
