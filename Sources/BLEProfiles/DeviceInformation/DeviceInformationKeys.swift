public import BLECore

// The values of the Device Information service are mostly text, so only keys are needed.
// Spec: Device Information Service 1.2, 3.

extension CharacteristicKey where Value == String {
    /// Manufacturer Name String, 0x2A29.
    public static var manufacturerName: Self { Self(0x2A29) }
    /// Model Number String, 0x2A24.
    public static var modelNumber: Self { Self(0x2A24) }
    /// Serial Number String, 0x2A25.
    public static var serialNumber: Self { Self(0x2A25) }
    /// Hardware Revision String, 0x2A27.
    public static var hardwareRevision: Self { Self(0x2A27) }
    /// Firmware Revision String, 0x2A26.
    public static var firmwareRevision: Self { Self(0x2A26) }
    /// Software Revision String, 0x2A28.
    public static var softwareRevision: Self { Self(0x2A28) }
}

extension CharacteristicKey where Value == [UInt8] {
    /// IEEE 11073-20601 Regulatory Certification Data List, 0x2A2A: an opaque structure, defined by that standard.
    public static var regulatoryCertifications: Self { Self(0x2A2A) }
}
