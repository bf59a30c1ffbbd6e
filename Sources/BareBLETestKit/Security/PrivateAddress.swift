package import BLECore

/// Resolvable private addresses of virtual peers, and the kernel's resolution of them.
package enum PrivateAddress {
    /// Returns the private address of a peer with this key; of `prand` the low 22 bits count.
    ///
    /// Spec: Core Vol 6 Part B, 1.3.2.2.
    package static func address(_ key: Secret128, prand: UInt32) -> BluetoothAddress {
        let prand = prand & 0x3F_FFFF | 0x40_0000
        return BluetoothAddress(rawValue: UInt64(prand) << 24 | UInt64(hash(key, prand)))
    }

    /// Returns whether a private address is one of the peer with this key.
    package static func isResolved(_ peer: PeerID, by key: Secret128) -> Bool {
        let value = peer.address.rawValue
        guard peer.type == .random, value >> 46 == 0b01 else { return false }
        return hash(key, UInt32(truncatingIfNeeded: value >> 24)) == UInt32(truncatingIfNeeded: value) & 0xFF_FFFF
    }

    /// Spec: random address hash function ah, Core Vol 3 Part H, 2.2.2.
    package static func hash(_ key: Secret128, _ prand: UInt32) -> UInt32 {
        let shifts: [UInt32] = [16, 8, 0]
        let block = [UInt8](repeating: 0, count: 13) + shifts.map { UInt8(truncatingIfNeeded: prand >> $0) }
        let reversed = key.withBytes { bytes in (0..<bytes.count).map { bytes[bytes.count - 1 - $0] } }
        return VirtualCipher(key: reversed).encrypt(block).suffix(3).reduce(0) { $0 << 8 | UInt32($1) }
    }
}

/// AES-128 for tests: correct, and neither fast nor safe from an observer.
///
/// Spec: FIPS 197.
package struct VirtualCipher {
    private var roundKeys: [[UInt8]] = []

    /// Creates a cipher with a key of 16 bytes, the most significant one first.
    package init(key: [UInt8]) {
        var words = (0..<4).map { word in (0..<4).map { key.indices.contains(4 * word + $0) ? key[4 * word + $0] : 0 } }
        var constant: UInt8 = 1
        while words.count < 44 {
            var word = words[words.count - 1]
            if words.count.isMultiple(of: 4) {
                word = [word[1], word[2], word[3], word[0]].map { Self.substitutes[Int($0)] }
                word[0] ^= constant
                constant = Self.doubled(constant)
            }
            let former = words[words.count - 4]
            words.append(zip(word, former).map { $0 ^ $1 })
        }
        roundKeys = (0..<11).map { round in Array(words[4 * round..<4 * round + 4].joined()) }
    }

    /// Encrypts a block of 16 bytes.
    package func encrypt(_ block: [UInt8]) -> [UInt8] {
        var state = zip(block, roundKeys[0]).map { $0 ^ $1 }
        for round in 1...10 {
            state = state.map { Self.substitutes[Int($0)] }
            // Column by column: row r moves r columns to the left.
            state = (0..<16).map { state[($0 + 4 * ($0 % 4)) % 16] }
            if round < 10 { state = stride(from: 0, to: 16, by: 4).flatMap { Self.mixed(Array(state[$0..<$0 + 4])) } }
            state = zip(state, roundKeys[round]).map { $0 ^ $1 }
        }
        return state
    }

    private static func mixed(_ column: [UInt8]) -> [UInt8] {
        let all = column.reduce(0, ^)
        return (0..<4).map { column[$0] ^ all ^ doubled(column[$0] ^ column[($0 + 1) % 4]) }
    }

    private static func doubled(_ value: UInt8) -> UInt8 {
        value << 1 ^ (value & 0x80 != 0 ? 0x1B : 0)
    }

    private static let substitutes: [UInt8] = {
        var table = [UInt8](repeating: 0x63, count: 256)
        // A number and its inverse, over all powers of 3.
        var number: UInt8 = 1
        var inverse: UInt8 = 1
        repeat {
            number ^= doubled(number)
            inverse ^= inverse << 1
            inverse ^= inverse << 2
            inverse ^= inverse << 4
            if inverse & 0x80 != 0 { inverse ^= 0x09 }
            table[Int(number)] = (1...4).reduce(inverse ^ 0x63) { $0 ^ (inverse << $1 | inverse >> (8 - $1)) }
        } while number != 1
        return table
    }()
}
