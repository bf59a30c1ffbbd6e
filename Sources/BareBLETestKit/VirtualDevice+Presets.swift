internal import BLECore

extension VirtualDevice {
    /// A heart rate belt: device information, a heart rate every second, and a battery level.
    public static var heartRate: VirtualDevice {
        let beats: [UInt8] = [72, 73, 74, 75, 75, 74, 73, 72]
        // Flags 0x16: skin contact, beats in one byte, RR intervals in 1/1024 s.
        let values = beats.map { beat -> [UInt8] in
            let interval = UInt16(61_440 / UInt32(beat))
            return [0x16, beat, UInt8(truncatingIfNeeded: interval), UInt8(truncatingIfNeeded: interval >> 8)]
        }
        return VirtualDevice(
            name: "Virtual HRM",
            services: [
                .genericAccess(name: "Virtual HRM", appearance: 0x0341),
                .genericAttribute,
                VirtualService(
                    0x180D,
                    [
                        VirtualCharacteristic(0x2A37, .notify, plan: NotifyPlan(values, every: .seconds(1))),
                        VirtualCharacteristic(0x2A38, .read, value: [0x01]),
                        VirtualCharacteristic(
                            0x2A39, .write,
                            onWrite: .call { value in
                                value == [0x01] ? nil : ATTErrorCode(rawValue: 0x80)
                            }),
                    ]),
                .battery(level: 87),
                .deviceInformation(manufacturer: "BareBLE", model: "HRM-1"),
            ])
    }

    /// A device with a battery and nothing else.
    public static var battery: VirtualDevice {
        VirtualDevice(
            name: "Virtual battery",
            services: [.genericAccess(name: "Virtual battery", appearance: 0), .battery(level: 64)])
    }

    /// A serial line over Bluetooth that echoes its input, with the 128-bit UUIDs of the Nordic UART Service. What is
    /// longer than a packet comes back in several notifications, as the responses of most battery monitors do.
    public static var uart: VirtualDevice {
        VirtualDevice(
            name: "Virtual UART",
            services: [
                .genericAccess(name: "Virtual UART", appearance: 0),
                VirtualService(
                    Self.uart(1),
                    [
                        VirtualCharacteristic(
                            Self.uart(2), [.write, .writeWithoutResponse], onWrite: .echo(Self.uart(3))),
                        VirtualCharacteristic(
                            Self.uart(3), .notify,
                            descriptors: [VirtualDescriptor(0x2901, value: Array("Echo".utf8))]),
                    ]),
            ])
    }

    /// A device with a readable and writable value of 512 bytes, and others that reject reads.
    public static var longValue: VirtualDevice {
        let long = (0..<512).map { UInt8(truncatingIfNeeded: $0) }
        return VirtualDevice(
            name: "Virtual long value",
            services: [
                .genericAccess(name: "Virtual long value", appearance: 0),
                VirtualService(
                    Self.longValueService,
                    [
                        VirtualCharacteristic(0xFFF1, [.read, .write], value: long),
                        VirtualCharacteristic(0xFFF2, .read, onRead: .refuse(.insufficientAuthentication)),
                        VirtualCharacteristic(0xFFF3, .read, onRead: .refuse(ATTErrorCode(rawValue: 0x81))),
                        VirtualCharacteristic(0xFFF4, [.write, .indicate], onWrite: .echo(0xFFF4)),
                    ]),
            ])
    }

    /// A lock: its bolt can be read and moved on an authenticated link only, and it always shows the passkey 123456.
    public static var lock: VirtualDevice {
        var device = VirtualDevice(
            name: "Virtual lock",
            services: [
                .genericAccess(name: "Virtual lock", appearance: 0x0708),
                VirtualService(
                    Self.lockService,
                    [VirtualCharacteristic(0xFFF1, [.read, .write], value: [0x01], protection: .authenticated)]),
                .battery(level: 91),
            ])
        device.security = VirtualSecurity(capability: .displayOnly, passkey: 123_456)
        return device
    }

    /// The belt with a Database Hash, by which a client can validate its cache in one request.
    private static var heartRateWithHash: VirtualDevice {
        var device = heartRate
        device.services = device.services.map { service in
            service.uuid == 0x1801 ? .genericAttribute(databaseHash: heartRateHash) : service
        }
        return device
    }

    /// The hash that the specification defines for these attributes, most significant octet first.
    private static let heartRateHash: [UInt8] = [
        0xC3, 0xE9, 0x14, 0x7E, 0x89, 0x51, 0xA3, 0xE0, 0xFB, 0xA3, 0xFA, 0x99, 0xE8, 0xF6, 0x2F, 0x7C,
    ]

    /// The preset devices, by the names that `demo:NAME` uses; `heart-rate` also has a Database Hash.
    public static var presets: [(name: String, device: VirtualDevice)] {
        [
            ("heart-rate", .heartRateWithHash), ("battery", .battery), ("uart", .uart), ("long-value", .longValue),
            ("lock", .lock),
        ]
    }

    /// 9D5A0001-3C7E-4B1F-8A26-E4710C95B3D8, generated for this purpose; 0xFFF0 and its neighbours are assigned to SIG
    /// members.
    private static let longValueService = BluetoothUUID(high: 0x9D5A_0001_3C7E_4B1F, low: 0x8A26_E471_0C95_B3D8)

    /// The next one after that.
    private static let lockService = BluetoothUUID(high: 0x9D5A_0002_3C7E_4B1F, low: 0x8A26_E471_0C95_B3D8)

    /// 6E40000n-B5A3-F393-E0A9-E50E24DCCA9E.
    private static func uart(_ number: UInt64) -> BluetoothUUID {
        BluetoothUUID(high: 0x6E40_0000_B5A3_F393 | number << 32, low: 0xE0A9_E50E_24DC_CA9E)
    }
}

extension VirtualService {
    /// Generic Access: the device's name and appearance.
    public static func genericAccess(name: String, appearance: UInt16) -> VirtualService {
        let bytes = [UInt8(truncatingIfNeeded: appearance), UInt8(truncatingIfNeeded: appearance >> 8)]
        return VirtualService(
            0x1800,
            [
                VirtualCharacteristic(0x2A00, .read, value: Array(name.utf8)),
                VirtualCharacteristic(0x2A01, .read, value: bytes),
            ])
    }

    /// Generic Attribute: a database that never changes.
    public static var genericAttribute: VirtualService {
        VirtualService(0x1801, [VirtualCharacteristic(0x2A05, .indicate)])
    }

    /// Generic Attribute of a device whose services may change: Service Changed, Client Supported Features and a
    /// Database Hash. The hash is `hash`, or 16 bytes that change with the services and are not the hash that the
    /// specification defines.
    public static func genericAttribute(databaseHash hash: [UInt8]?) -> VirtualService {
        VirtualService(
            0x1801,
            [
                VirtualCharacteristic(0x2A05, .indicate), VirtualCharacteristic(0x2B29, [.read, .write], value: [0]),
                VirtualCharacteristic(0x2B2A, .read, value: hash ?? []),
            ])
    }

    /// Battery: a level in percent that can be read, and notified with `notify`.
    public static func battery(level: UInt8) -> VirtualService {
        VirtualService(0x180F, [VirtualCharacteristic(0x2A19, [.read, .notify], value: [level])])
    }

    /// Device Information: manufacturer name and model number.
    public static func deviceInformation(manufacturer: String, model: String) -> VirtualService {
        VirtualService(
            0x180A,
            [
                VirtualCharacteristic(0x2A29, .read, value: Array(manufacturer.utf8)),
                VirtualCharacteristic(0x2A24, .read, value: Array(model.utf8)),
                VirtualCharacteristic(0x2A26, .read, value: Array("1.0".utf8)),
            ])
    }
}
