import BLECore
import BareBLETestKit

/// The five databases on which the discovery of different stacks is compared; Docs/users/performance.md describes them.
enum SampleDatabases {
    static let all: [(name: String, services: [VirtualService])] = [
        ("a", standard),
        ("b", ownServices),
        ("b+", Array(standard.prefix(2)) + ownServices),
        ("c", fortyServices(long: false)),
        ("c+", fortyServices(long: true)),
    ]

    /// A small sensor as most are: GAP, GATT, heart rate, battery, device information. 38 attributes.
    private static let standard = [
        VirtualService(0x1800, [read(0x2A00), read(0x2A01), read(0x2A04)]),
        VirtualService(0x1801, [VirtualCharacteristic(0x2A05, .indicate)]),
        VirtualService(
            0x180D, [VirtualCharacteristic(0x2A37, .notify), read(0x2A38), VirtualCharacteristic(0x2A39, .write)]),
        VirtualService(0x180F, [VirtualCharacteristic(0x2A19, [.read, .notify])]),
        VirtualService(
            0x180A,
            [read(0x2A29), read(0x2A24), read(0x2A25), read(0x2A27), read(0x2A26), read(0x2A28), read(0x2A23)]),
    ]

    /// Three services of a maker's own with eight characteristics each; every second one, from the first,
    /// notifies and has a description.
    private static let ownServices = (0..<3).map { service in
        VirtualService(
            own(UInt16(service) << 8),
            (0..<8).map { index in
                let uuid = own(UInt16(service) << 8 | UInt16(index + 1))
                guard index % 2 == 0 else { return VirtualCharacteristic(uuid, .read) }
                return VirtualCharacteristic(uuid, .notify, descriptors: [VirtualDescriptor(0x2901, value: [0x41])])
            })
    }

    /// 40 services of five characteristics; with long UUIDs the first of each notifies.
    private static func fortyServices(long: Bool) -> [VirtualService] {
        (0..<40).map { service in
            let base = UInt16(0x4000 + service * 16)
            return VirtualService(
                long ? own(base) : BluetoothUUID(base),
                (1...5).map { index in
                    let number = base + UInt16(index)
                    guard long else { return read(BluetoothUUID(number)) }
                    return VirtualCharacteristic(own(number), index == 1 ? .notify : .read)
                })
        }
    }

    private static func read(_ uuid: BluetoothUUID) -> VirtualCharacteristic {
        VirtualCharacteristic(uuid, .read)
    }

    private static func own(_ number: UInt16) -> BluetoothUUID {
        BluetoothUUID(high: 0xA1B2_0000_0000_1000 | UInt64(number) << 32, low: 0x8000_0080_5F9B_0000)
    }
}
