internal import BLECore

/// Reads numbers of any width from bytes, the least significant bit of the first byte first.
struct BitReader {
    private let bytes: [UInt8]
    private var place = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Reads a number of up to 32 bits; `nil` at the end of the bytes, and for one of which all bits are set: the
    /// formats here mean by it that the value is not known.
    mutating func known(_ width: Int) -> UInt32? {
        guard let number = unsigned(width) else { return nil }
        return number == Self.allOnes(width) ? nil : number
    }

    /// Reads a signed number of up to 32 bits; `nil` at the end of the bytes, and for the largest number.
    mutating func knownSigned(_ width: Int) -> Int32? {
        guard let number = unsigned(width), number != Self.allOnes(width) >> 1 else { return nil }
        let unused = UInt32(32 - width)
        return Int32(bitPattern: number << unused) >> Int32(unused)
    }

    /// Reads a number of 1 to 32 bits; `nil` at the end of the bytes.
    mutating func unsigned(_ width: Int) -> UInt32? {
        guard place + width <= bytes.count * 8 else { return nil }
        var number: UInt32 = 0
        for bit in 0..<width {
            let byte = bytes.dropFirst(place >> 3).first ?? 0
            number |= UInt32(byte >> UInt8(place & 7) & 1) << UInt32(bit)
            place += 1
        }
        return number
    }

    /// Returns whether this number of bits is there.
    func has(_ width: Int) -> Bool { place + width <= bytes.count * 8 }

    private static func allOnes(_ width: Int) -> UInt32 { UInt32.max >> UInt32(32 - width) }
}
