package import BLECore

/// Keys that kernel 6.12 reported of pairings with Bumble, whose own record of them has the same bytes.
package enum RecordedKeys {
    /// LE Secure Connections by passkey.
    package static let secureConnections = bytes(
        "1122334455c6 02 03 00 10 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e")
    /// LE legacy pairing by passkey: the key for links whose Central is the host, and the other one.
    package static let legacyCentral = bytes(
        "1122334455c6 02 01 01 10 0000 0000000000000000 a4e41d70088de98196ae36dec58877be")
    package static let legacyPeripheral = bytes(
        "1122334455c6 02 01 00 10 86b3 8512f2f27da034bc d970e770609e64246dd1d9f24a5938bc")
}

private func bytes(_ hex: String) -> [UInt8] { (try? Hex.decode(hex)) ?? [] }

/// Bonds with the keys that kernel 6.12 reported, and their lines in a file, laid out by hand.
package enum RecordedBonds {
    package static let phone = PeerID(address: BluetoothAddress("C6:55:44:33:22:11")!, type: .random)
    package static let scale = PeerID(address: BluetoothAddress("06:05:04:03:02:01")!, type: .public)

    package static func secret(_ hex: String) -> Secret128 { Secret128(bytes(hex).span)! }

    /// An entry of the kernel's list, for another peer than the recorded one if that is given.
    package static func key(_ entry: [UInt8], of peer: PeerID = phone) -> ManagementLongTermKey {
        let event = ManagementPacket(code: 0x0A, adapter: 0, parameters: [1] + entry)
        guard case .newLongTermKey(let new)? = try? ManagementEvent(event.bytes.span).content else {
            fatalError("no entry of a key")
        }
        var key = new.key
        key.peer = ManagementPeer(peer)
        return key
    }

    package static let secureConnections = key(RecordedKeys.secureConnections)
    package static let legacy = [key(RecordedKeys.legacyCentral), key(RecordedKeys.legacyPeripheral)]

    /// By LE Secure Connections with a passkey.
    package static let first = BondRecord(
        identity: phone, name: "Front door", keys: [secureConnections],
        identityKey: .key(secret("000102030405060708090a0b0c0d0e0f")), level: .secureConnections,
        method: .passkeyTyped, peerCapability: .displayOnly, bondedAt: 1_790_000_000,
        lastEncryptedAt: 1_790_003_600, generation: 7)
    /// By legacy pairing, with all that a line can have beside it.
    package static let second = BondRecord(
        identity: scale,
        keys: [key(RecordedKeys.legacyCentral, of: scale), key(RecordedKeys.legacyPeripheral, of: scale)],
        identityKey: .unusable(.shared), level: .authenticated, method: .passkeyShown, bondedAt: 1_790_000_001,
        state: .rejected(since: 1_790_000_002),
        signing: .init(key: secret("202122232425262728292a2b2c2d2e2f"), counter: 41), generation: 9,
        adapterPin: "usb-1.2%")

    package static let firstLine =
        "C6:55:44:33:22:11/random name=Front%20door level=4 method=passkey-typed io=0 bonded=1790000000 "
        + "encrypted=1790003600 state=good generation=7 "
        + "ltk=1122334455c60203001000000000000000000000ef8c26c1e45e8cbe9d7e39d53905d68e "
        + "irk=000102030405060708090a0b0c0d0e0f\n"
    package static let secondLine =
        "06:05:04:03:02:01/public level=3 method=passkey-shown bonded=1790000001 state=rejected:1790000002 "
        + "generation=9 ltk=0102030405060101011000000000000000000000a4e41d70088de98196ae36dec58877be "
        + "ltk=0102030405060101001086b38512f2f27da034bcd970e770609e64246dd1d9f24a5938bc irk=shared "
        + "csrk=202122232425262728292a2b2c2d2e2f:41 adapter=usb-1.2%25\n"
    /// Both, with the checksum that zlib computes.
    package static let file = "BareBLE bonds 1 generation 9\n" + firstLine + secondLine + "checksum 637ec9f4\n"

    /// A bond of a peer with this number, whose keys nobody else has.
    package static func numbered(_ number: Int, identityKey: Bool = true) -> BondRecord {
        let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001 + UInt64(number)), type: .random)
        let digits = Array("\(1_000_000 + number)".utf8)
        let unique = Secret128((digits + [UInt8](repeating: 0x5A, count: 16 - digits.count)).span)!
        return BondRecord(
            identity: peer,
            keys: [
                ManagementLongTermKey(
                    peer: ManagementPeer(peer), kind: .secureConnections, isCentral: false, size: 16, ediv: 0, rand: 0,
                    key: unique)
            ],
            identityKey: identityKey ? .key(unique) : .none, level: .encrypted, method: .justWorks,
            bondedAt: 1_790_000_000)
    }
}

extension BondRecord {
    /// The same bond with other keys.
    package func with(
        identity: PeerID? = nil, keys: [ManagementLongTermKey]? = nil, identityKey: IdentityKey? = nil,
        level: Level? = nil, adapterPin: String? = nil
    ) -> BondRecord {
        BondRecord(
            identity: identity ?? self.identity, name: name, keys: keys ?? self.keys,
            identityKey: identityKey ?? self.identityKey, level: level ?? self.level, method: method,
            peerCapability: peerCapability, bondedAt: bondedAt, lastEncryptedAt: lastEncryptedAt, state: state,
            signing: signing, generation: generation, adapterPin: adapterPin ?? self.adapterPin)
    }

    /// The same bond with another key for this side's links.
    package func with(_ change: (inout ManagementLongTermKey) -> Void) -> BondRecord {
        var keys = keys
        change(&keys[0])
        return with(keys: keys)
    }
}
