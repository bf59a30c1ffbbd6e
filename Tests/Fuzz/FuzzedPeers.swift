// Peers that respond to requests: one by a pattern that the input gives, one honestly. Both read requests by the
// layouts of the specification, not with the library's own decoders.

@testable import BLECore

/// The number at `place`, least significant byte first.
func word(_ bytes: [UInt8], _ place: Int) -> UInt16 {
    place + 1 < bytes.count ? UInt16(bytes[place]) | UInt16(bytes[place + 1]) << 8 : 0
}

func octets(_ words: UInt16...) -> [UInt8] {
    words.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
}

/// Whether packets with this opcode are requests. Spec: Core Vol 3 Part F, 3.4.8.
func isRequest(_ opcode: UInt8) -> Bool {
    switch opcode {
    case 0x02, 0x04, 0x06, 0x08, 0x0A, 0x0C, 0x0E, 0x10, 0x12, 0x16, 0x18, 0x20: true
    default: false
    }
}

/// Whether a request names handles that there can be: none is 0, and no range ends before it begins.
func hasPossibleHandles(_ request: [UInt8]) -> Bool {
    switch request.first ?? 0 {
    case 0x04, 0x06, 0x08, 0x10: word(request, 1) > 0 && word(request, 1) <= word(request, 3)
    default: true
    }
}

/// A peer's response to any request: a list that is well-formed, and that may be impossible all the same.
struct ListedResponse {
    private let style: UInt8
    private let count: Int
    private let shift: UInt16
    private let stride: UInt16
    private let reach: UInt16
    private let kind: UInt16

    private static let kinds: [UInt16] = [
        0x1801, 0x180D, 0x2800, 0x2801, 0x2802, 0x2803, 0x2900, 0x2902, 0x2A00, 0x2A05, 0x2A37, 0x2B29, 0x2B2A, 0x0000,
    ]

    init(_ script: inout FuzzInput) {
        style = script.byte()
        count = Int(script.byte())
        let shifts: [UInt16] = [0, 1, 2, 3, 0xFFFF, 0xFF00, 7, 0x7FFF]
        shift = shifts[Int(script.byte() & 7)]
        stride = [1, 2, 3, 4, 0, 0xFFFF, 16, 0x4000][Int(script.byte() & 7)]
        reach = [0, 1, 2, 3, 7, 0xFFFF, 0x7FFF, 0xFFFE][Int(script.byte() & 7)]
        kind = Self.kinds[Int(script.byte()) % Self.kinds.count]
    }

    private var isLong: Bool { style & 1 == 1 }
    private var uuid: [UInt8] { isLong ? octets(0, 1, 2, 3, 4, 5, kind, 7) : octets(kind) }

    func reply(to request: [UInt8], mtu: Int) -> ATTReply {
        if style >> 5 == 7 {
            return .error(
                ATTErrorResponse(
                    requestOpcode: ATTOpcode(rawValue: request.first ?? 0), handle: word(request, 1),
                    code: ATTErrorCode(rawValue: UInt8(truncatingIfNeeded: count))))
        }
        return .response(response(to: request, mtu: mtu))
    }

    func response(to request: [UInt8], mtu: Int) -> [UInt8] {
        let start = word(request, 1) &+ shift
        switch request.first ?? 0 {
        case 0x02:
            return [0x03] + octets(UInt16(truncatingIfNeeded: count) &* 3)
        case 0x04:
            return list([0x05, isLong ? 2 : 1], mtu, from: start) { octets($0) + uuid }
        case 0x06:
            return list([0x07], mtu, from: start) { octets($0, $0 &+ reach) }
        case 0x08:
            return byType(word(request, 5), mtu, from: start)
        case 0x10:
            return list([0x11, UInt8(4 + uuid.count)], mtu, from: start) { octets($0, $0 &+ reach) + uuid }
        case 0x12:
            return [0x13]
        case 0x16:
            return [0x17] + request.dropFirst().map { style & 2 == 0 ? $0 : $0 ^ 1 }
        case 0x18:
            return [0x19]
        case 0x20:
            let value = [UInt8](repeating: style, count: count)
            return [0x21] + octets(UInt16(truncatingIfNeeded: count)) + value + octets(reach) + [1]
        case let opcode:
            let length = style & 2 == 0 ? mtu - 1 : min(count, mtu - 1)
            return [opcode &+ 1] + [UInt8](repeating: style, count: length)
        }
    }

    private func byType(_ type: UInt16, _ mtu: Int, from start: UInt16) -> [UInt8] {
        switch type {
        case 0x2803:
            return list([0x09, UInt8(5 + uuid.count)], mtu, from: start) {
                octets($0) + [style] + octets($0 &+ reach) + uuid
            }
        case 0x2802:
            let tail = isLong ? [] : octets(kind)
            return list([0x09, UInt8(6 + tail.count)], mtu, from: start) {
                octets($0, $0 &+ 8, $0 &+ 8 &+ reach) + tail
            }
        case 0x2902:
            return list([0x09, 4], mtu, from: start) { octets($0, 0) }
        default:
            return list([0x09, UInt8(2 + count & 31)], mtu, from: start) {
                octets($0) + [UInt8](repeating: style, count: count & 31)
            }
        }
    }

    private func list(_ head: [UInt8], _ mtu: Int, from start: UInt16, _ entry: (UInt16) -> [UInt8]) -> [UInt8] {
        var list = head
        var handle = start
        for _ in 0...(count & 15) {
            let next = entry(handle)
            guard list.count + next.count <= mtu else { break }
            list += next
            handle = handle &+ stride
        }
        return list
    }
}

/// A small server that keeps to the specification, so that a session gets as far as it can get.
struct HonestPeer {
    private struct Attribute {
        var handle: UInt16
        var type: UInt16
        var end: UInt16
        var value: [UInt8]
    }

    private static let attributes = [
        Attribute(handle: 1, type: 0x2800, end: 9, value: octets(0x1801)),
        Attribute(handle: 2, type: 0x2803, end: 2, value: [0x20] + octets(3, 0x2A05)),
        Attribute(handle: 3, type: 0x2A05, end: 3, value: octets(1, 0xFFFF)),
        Attribute(handle: 4, type: 0x2902, end: 4, value: octets(0)),
        Attribute(handle: 5, type: 0x2803, end: 5, value: [0x02] + octets(6, 0x2B2A)),
        Attribute(handle: 6, type: 0x2B2A, end: 6, value: [UInt8](0..<16)),
        Attribute(handle: 7, type: 0x2803, end: 7, value: [0x0A] + octets(8, 0x2B29)),
        Attribute(handle: 8, type: 0x2B29, end: 8, value: [0]),
        Attribute(handle: 20, type: 0x2800, end: 30, value: octets(0x180D)),
        Attribute(handle: 21, type: 0x2802, end: 21, value: octets(40, 44)),
        Attribute(handle: 22, type: 0x2803, end: 22, value: [0x1A] + octets(23, 0x2A37)),
        Attribute(handle: 23, type: 0x2A37, end: 23, value: [UInt8](repeating: 7, count: 60)),
        Attribute(handle: 24, type: 0x2902, end: 24, value: octets(0)),
        Attribute(handle: 25, type: 0x2901, end: 25, value: [0x41]),
        Attribute(handle: 26, type: 0x2803, end: 26, value: [0x38] + octets(27) + octets(0, 1, 2, 3, 4, 5, 6, 7)),
        Attribute(handle: 27, type: 0xFFFF, end: 27, value: []),
        Attribute(handle: 28, type: 0x2902, end: 28, value: octets(0)),
        Attribute(handle: 40, type: 0x2801, end: 44, value: octets(0, 1, 2, 3, 4, 5, 0x1234, 7)),
        Attribute(handle: 41, type: 0x2803, end: 41, value: [0x88] + octets(42, 0x2A00)),
        Attribute(handle: 42, type: 0x2A00, end: 42, value: [0x42]),
        Attribute(handle: 43, type: 0x2900, end: 43, value: octets(1)),
    ]

    static func response(to request: [UInt8], mtu: Int) -> [UInt8] {
        let opcode = request.first ?? 0
        let handle = word(request, 1)
        let found = attributes.first { $0.handle == handle }
        switch opcode {
        case 0x02: return [0x03] + octets(247)
        case 0x04: return list(request, mtu, { _ in true }) { octets($0.handle, $0.type) }
        case 0x06:
            let value = Array(request.dropFirst(7))
            return list(request, mtu, { $0.type == word(request, 5) && $0.value == value }) {
                octets($0.handle, $0.end)
            }
        case 0x08:
            return list(request, mtu, { $0.type == word(request, 5) }) { octets($0.handle) + $0.value.prefix(40) }
        case 0x10: return list(request, mtu, { $0.type == word(request, 5) }) { octets($0.handle, $0.end) + $0.value }
        case 0x0E: return [0x0F, 1, 2, 3]
        case 0x20: return [0x21] + octets(1) + [7] + octets(0)
        case 0x18: return [0x19]
        case _ where found == nil: return refusal(request, 0x01)
        case 0x0A: return [0x0B] + (found?.value.prefix(mtu - 1) ?? [])
        case 0x0C:
            let offset = Int(word(request, 3))
            guard let value = found?.value, offset <= value.count else { return refusal(request, 0x07) }
            return [0x0D] + value.dropFirst(offset).prefix(mtu - 1)
        case 0x12: return [0x13]
        case 0x16: return [0x17] + request.dropFirst()
        default: return refusal(request, 0x06)
        }
    }

    private static func refusal(_ request: [UInt8], _ code: UInt8) -> [UInt8] {
        [0x01, request.first ?? 0] + octets(word(request, 1)) + [code]
    }

    /// The attributes in the range that are `wanted`, as many as fit and as have entries of one size.
    private static func list(
        _ request: [UInt8], _ mtu: Int, _ wanted: (Attribute) -> Bool, _ entry: (Attribute) -> [UInt8]
    ) -> [UInt8] {
        let opcode = request.first ?? 0
        let range = max(1, word(request, 1))...max(1, word(request, 1), word(request, 3))
        var list: [UInt8] = []
        var size = 0
        for attribute in attributes where range.contains(attribute.handle) && wanted(attribute) {
            let next = entry(attribute)
            if size == 0 { size = next.count }
            guard next.count == size, list.count + size + 2 <= mtu else { break }
            list += next
        }
        if list.isEmpty { return refusal(request, 0x0A) }
        switch opcode {
        case 0x04: return [0x05, 1] + list
        case 0x06: return [0x07] + list
        default: return [opcode + 1, UInt8(size)] + list
        }
    }
}
