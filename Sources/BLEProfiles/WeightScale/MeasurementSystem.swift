internal import BLECore

/// The unit system of a scale.
public enum MeasurementSystem: Hashable, Sendable {
    /// Kilograms with a resolution of 0.005, and metres with a resolution of 0.001.
    case metric
    /// Pounds with a resolution of 0.01, and inches with a resolution of 0.1.
    case imperial

    var massesPerUnit: Double { self == .metric ? 200 : 100 }
    var heightsPerUnit: Double { self == .metric ? 1000 : 10 }

    /// Adds a mass with its unit.
    func add(_ name: String, mass: Double?, to list: inout FieldList) {
        list.add(name, mass, places: self == .metric ? 3 : 2, self == .metric ? "kg" : "lb")
    }

    /// Adds a height with its unit.
    func add(height: Double?, to list: inout FieldList) {
        list.add("height", height, places: self == .metric ? 3 : 1, self == .metric ? "m" : "in")
    }
}

extension ByteReader {
    /// Reads a mass, if present. Also returns `nil` if the scale could not measure it.
    @_lifetime(self: copy self)
    mutating func readMass(_ system: MeasurementSystem, if isPresent: Bool = true) throws(MalformedPacket) -> Double? {
        try read(UInt16.self, per: system.massesPerUnit, if: isPresent, unless: .max)
    }

    /// Reads a height, if present.
    @_lifetime(self: copy self)
    mutating func readHeight(_ system: MeasurementSystem, if isPresent: Bool) throws(MalformedPacket) -> Double? {
        try read(UInt16.self, per: system.heightsPerUnit, if: isPresent)
    }
}
