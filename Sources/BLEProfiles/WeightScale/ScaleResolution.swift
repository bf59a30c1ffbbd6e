internal import BLECore

/// The resolution codes of scales.
///
/// Spec: Weight Scale Service 1.0, 3.1.1; Body Composition Service 1.0, 3.1.1.
enum ScaleResolution {
    /// Returns the resolution that the lowest four bits of `code` encode.
    static func mass(_ code: UInt32) -> (kilograms: Double, pounds: Double)? {
        switch code & 0xF {
        case 1: (0.5, 1)
        case 2: (0.2, 0.5)
        case 3: (0.1, 0.2)
        case 4: (0.05, 0.1)
        case 5: (0.02, 0.05)
        case 6: (0.01, 0.02)
        case 7: (0.005, 0.01)
        default: nil
        }
    }

    /// Returns the resolution that the lowest three bits of `code` encode.
    static func height(_ code: UInt32) -> (metres: Double, inches: Double)? {
        switch code & 0x7 {
        case 1: (0.01, 1)
        case 2: (0.005, 0.5)
        case 3: (0.001, 0.1)
        default: nil
        }
    }

    static func fields(
        _ names: ValueField.Content, mass: (kilograms: Double, pounds: Double)?,
        height: (metres: Double, inches: Double)?
    ) -> [ValueField] {
        var list = FieldList()
        list.add("mass resolution", mass?.kilograms, places: 3, "kg")
        list.add("height resolution", height?.metres, places: 3, "m")
        return [ValueField("features", names)] + list.fields
    }
}
