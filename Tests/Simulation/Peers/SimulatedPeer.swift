import BLECore
import BareBLE
import BareBLETestKit

/// One device of a simulation: what it serves, how it behaves, and what of its values a client may have seen.
///
/// It belongs to its `World`, on whose loop everything happens.
final class SimulatedPeer {
    /// A characteristic, and the values that it has had.
    struct Value {
        let uuid: BluetoothUUID
        let properties: CharacteristicProperties
        /// The number of different values that were written to it.
        var versions = 1
        /// The number of values that it has sent without a request.
        var sent: UInt32 = 0
        /// The writes of this value that may take effect at any moment.
        var writes = 0
        /// Whether a write was cancelled, so that it may take effect at any time.
        var isUncertain = false
        /// The number of writes that have begun.
        var writesBegun = 0
    }

    let number: Int
    let kind: Script.PeerKind
    var peer: PeerID
    let peripheral: VirtualPeripheral
    let device: VirtualDevice
    var values: [Value]
    let adapter: Int
    var conduct: Conduct

    // What the applications have of it.
    var link: Peripheral?
    var session: Session?

    // What happens to it now.
    var responsesToDrop = 0
    var isHealed = false
    /// Whether the second form of its services is served.
    var isChanged = false

    // Its bonds.
    /// Its identity, if it uses private addresses.
    let identity: PeerID?
    /// How it pairs when nothing is wrong.
    let pairs: VirtualSecurity?
    /// The private addresses that it has used.
    var formerAddresses: Set<PeerID> = []
    /// How many tasks pair it now, and have done so.
    var pairingTasks = 0
    var pairings = 0
    /// Until when the kernel may end a pairing whose program has died.
    var pairingEnd = BootInstant(nanoseconds: 0)
    /// The pairings that have been looked at.
    var seenPairings = 0
    /// Whether its link has to be encrypted.
    var isProtected = false

    var readable: [Int] { values.indices.filter { values[$0].properties.contains(.read) } }
    var writable: [Int] { values.indices.filter { values[$0].properties.contains(.write) } }
    var commandable: [Int] { values.indices.filter { values[$0].properties.contains(.writeWithoutResponse) } }
    var subscribable: [Int] { values.indices.filter { values[$0].properties.canSubscribe } }

    init(_ number: Int, _ script: Script, _ radio: VirtualRadio, adapter: Int) {
        var numbers = Numbers(seed: script.seed, .device, number)
        self.number = number
        self.adapter = adapter
        kind = script.peers[number]
        peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0100 + UInt64(number)), type: .random)
        let (described, values) = Self.device(number, &numbers)
        self.values = values
        let security = Self.security(number, script)
        pairs = security
        identity = security?.identity?.address
        device = Self.protected(described, security, number, script)
        peripheral = radio.peripheral(device, latency: .milliseconds(numbers.pick([0, 1, 30, 30, 100])))
        conduct = Conduct(kind, mtu: device.maximumMTU, Numbers(seed: script.seed, .conduct, number))
    }

    /// Its advertisement: random bytes for an adversary.
    func advertisement(_ script: Script) -> VirtualAdvertisement {
        var numbers = Numbers(seed: script.seed, .device, 1000 + number)
        let interval = Duration.milliseconds(numbers.pick([100, 500, 1000, 1500]))
        guard kind == .adversary else { return VirtualAdvertisement(device, interval: interval) }
        var data = VirtualAdvertisement(device).data
        switch numbers.pick(0...3) {
        case 0: data = numbers.bytes(0...31)
        case 1: data = numbers.bytes(32...600)
        case 2:
            for _ in 0..<3 where !data.isEmpty { data[numbers.pick(0...data.count - 1)] = numbers.byte() }
        default: data += numbers.bytes(0...8)
        }
        return VirtualAdvertisement(data, scanResponse: numbers.bytes(0...31), interval: interval)
    }

    // MARK: Security

    /// How it pairs; `nil` in a world without bonds, and for some that cannot pair.
    private static func security(_ number: Int, _ script: Script) -> VirtualSecurity? {
        guard !script.security.isEmpty else { return nil }
        var numbers = Numbers(seed: script.seed, .security, number + 1)
        guard numbers.chance(90) else { return nil }
        var security = VirtualSecurity(
            capability: numbers.pick([.noInputNoOutput, .noInputNoOutput] + VirtualSecurity.Capability.allCases))
        security.hasSecureConnections = numbers.chance(70)
        security.passkey = numbers.chance(50) ? UInt32(numbers.pick(0...999_999)) : nil
        security.requiresAuthentication = security.capability != .noInputNoOutput && numbers.chance(20)
        security.keepsBonds = numbers.chance(90)
        security.keepsConfigurations = numbers.chance(80)
        security.keySize = numbers.chance(90) ? 16 : numbers.pick(7...15)
        security.acceptsSignedWrites = numbers.chance(20)
        // What an adversary advertises may be nothing that every controller hears.
        if numbers.chance(40), script.peers[number] != .adversary {
            security.identity = VirtualIdentity(
                PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0500 + UInt64(number)), type: .random),
                key: (0..<16).map { UInt8($0) &+ UInt8(truncatingIfNeeded: 16 * number + 1) })
        }
        if numbers.chance(20) {
            security.request = VirtualSecurityRequest(
                isBonding: numbers.chance(70), isAuthenticated: numbers.chance(30))
        }
        // On each link, not only for the time of a fault: few links to a bonded peer begin in that.
        if numbers.chance(20) { security.earlyPackets = earlyPackets(number) }
        return security
    }

    /// Has the device demand encryption for some of its values, but not for the first that can be read: an application
    /// that does not pair reads that one.
    private static func protected(
        _ device: VirtualDevice, _ security: VirtualSecurity?, _ number: Int, _ script: Script
    ) -> VirtualDevice {
        guard let security else { return device }
        var device = device
        device.security = security
        var numbers = Numbers(seed: script.seed, .security, 1000 + number)
        var isFirst = true
        for service in device.services.indices where device.services[service].uuid.isOwn {
            for index in device.services[service].characteristics.indices {
                let isReadable = device.services[service].characteristics[index].properties.contains(.read)
                if isReadable, isFirst {
                    isFirst = false
                } else if numbers.chance(40) {
                    device.services[service].characteristics[index].protection =
                        numbers.chance(80) ? .encrypted : .authenticated
                }
            }
        }
        return device
    }

    /// What it sends before a link is encrypted: nothing of this may reach an application on a bonded link.
    var forgery: [UInt8] { Self.forgery(number) }

    private static func forgery(_ number: Int) -> [UInt8] {
        [0x1B, 0x03, 0x00, 0xF0, 0x67, UInt8(truncatingIfNeeded: number)]
    }

    /// All that it sends then: what has to be discarded, confirmed and refused.
    static func earlyPackets(_ number: Int) -> [[UInt8]] {
        [forgery(number), [0x1D, 0x03, 0x00, 0x01], forgery(number), [0x0A, 0x03, 0x00]]
    }

    // MARK: Services

    private static func device(_ number: Int, _ numbers: inout Numbers) -> (VirtualDevice, [Value]) {
        var services: [VirtualService] = [.genericAccess(name: "Peer \(number)", appearance: 0)]
        if numbers.chance(70) { services.append(.genericAttribute) }
        var values: [Value] = []
        for service in 0..<numbers.pick(1...3) {
            var characteristics: [VirtualCharacteristic] = []
            for _ in 0..<numbers.pick(1...4) {
                let uuid = BluetoothUUID(UInt16(0xA000 + values.count))
                let properties = numbers.pick(
                    [.read, [.read, .write], [.read, .write], [.writeWithoutResponse], .notify, .notify, .indicate]
                        as [CharacteristicProperties])
                let length = numbers.pick([4, 8, 19, 20, 22, 23, 60, 200, 512])
                characteristics.append(
                    VirtualCharacteristic(
                        uuid, properties, value: pattern(number, values.count, 0, length)))
                values.append(Value(uuid: uuid, properties: properties))
            }
            services.append(VirtualService(BluetoothUUID(UInt16(0xF000 + service)), characteristics))
        }
        // One that can be read is in every device: the last phase reads it.
        if !values.contains(where: { $0.properties.contains(.read) }) {
            services[services.count - 1].characteristics.append(
                VirtualCharacteristic(0xA0FF, .read, value: pattern(number, values.count, 0, 8)))
            values.append(Value(uuid: 0xA0FF, properties: .read))
        }
        let mtu = UInt16(numbers.pick([23, 24, 64, 185, 247, 517]))
        return (VirtualDevice(name: "Peer \(number)", services: services, maximumMTU: mtu), values)
    }

    /// The services after an update: another one in front of the device's own, whose handles move.
    var changedDevice: VirtualDevice {
        var changed = device
        let standard = changed.services.prefix { $0.uuid == 0x1800 || $0.uuid == 0x1801 }.count
        changed.services.insert(
            VirtualService(0xFE00, [VirtualCharacteristic(0xFE01, .read, value: [1])]), at: standard)
        return changed
    }

    // MARK: Values that show what they are

    /// The value of that version: whose it is, which one, and nothing else fits to it.
    static func pattern(_ peer: Int, _ value: Int, _ version: Int, _ length: Int) -> [UInt8] {
        let head = [
            UInt8(truncatingIfNeeded: peer), UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: version),
            UInt8(truncatingIfNeeded: version >> 8),
        ]
        let rest = (0..<max(0, length - 4)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ version &* 13 &+ value) }
        return head + rest
    }

    /// The error in a value that was read; `nil` if this characteristic has had it.
    func fault(_ bytes: [UInt8], of value: Int, mayBeTorn: Bool) -> String? {
        guard bytes.count >= 4, bytes[0] == UInt8(truncatingIfNeeded: number),
            bytes[1] == UInt8(truncatingIfNeeded: value)
        else { return "the value of another characteristic" }
        if mayBeTorn { return nil }
        let version = Int(bytes[2]) | Int(bytes[3]) << 8
        guard version < values[value].versions, bytes == Self.pattern(number, value, version, bytes.count) else {
            return "a value that it never had"
        }
        return nil
    }

    /// The value that it sends next without a request. It contains how many were sent before.
    func sentValue(_ value: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: value)]
            + (0..<4).map { UInt8(truncatingIfNeeded: values[value].sent >> (8 * UInt32($0))) }
    }

    /// Whose the value is, and which one in the row.
    func place(_ bytes: [UInt8], of value: Int) -> UInt32? {
        guard bytes.count == 6, bytes[0] == UInt8(truncatingIfNeeded: number),
            bytes[1] == UInt8(truncatingIfNeeded: value)
        else { return nil }
        return bytes[2...].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
}

extension BluetoothUUID {
    /// Whether it is that of a service with the simulation's values.
    fileprivate var isOwn: Bool { self != 0x1800 && self != 0x1801 }
}
