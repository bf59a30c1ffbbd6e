/// An exact decimal number: an integer times a power of ten.
package struct DecimalNumber: Hashable, Sendable, CustomStringConvertible {
    package let mantissa: Int64
    package let exponent: Int

    package init(_ mantissa: some FixedWidthInteger, exponent: Int = 0) {
        self.mantissa = Int64(clamping: mantissa)
        self.exponent = exponent
    }

    /// The nearest `Double`.
    package var double: Double {
        var power = 1.0
        for _ in 0..<min(exponent.magnitude, 400) { power *= 10 }
        return exponent < 0 ? Double(mantissa) / power : Double(mantissa) * power
    }

    /// Returns the number with at most this number of decimal places, with halves rounded away from zero.
    package func rounded(toPlaces places: Int) -> DecimalNumber {
        let surplus = 0 &- places &- exponent
        guard surplus > 0 else { return self }
        var (magnitude, dropped) = (mantissa.magnitude, UInt64(0))
        // A mantissa has 19 digits.
        for _ in 0..<min(surplus, 20) { (magnitude, dropped) = (magnitude / 10, magnitude % 10) }
        if dropped >= 5 { magnitude += 1 }
        let rounded = Int64(clamping: magnitude)
        return DecimalNumber(mantissa < 0 ? 0 - rounded : rounded, exponent: 0 &- places)
    }

    /// The number with all decimal places of the exponent, such as "36.40"; large exponents are written as in "5e-40".
    /// Also valid JSON.
    package var description: String {
        guard exponent >= -18, exponent <= 18, mantissa != 0 || exponent < 0 else {
            return mantissa == 0 ? "0" : "\(mantissa)e\(exponent)"
        }
        let sign = mantissa < 0 ? "-" : ""
        let digits = String(mantissa.magnitude)
        if exponent >= 0 { return sign + digits + String(repeating: "0", count: exponent) }
        let places = 0 &- exponent
        let missing = String(repeating: "0", count: max(0, places + 1 - digits.utf8.count))
        let whole = missing + digits
        let point = whole.utf8.count - places
        return "\(sign)\(whole.prefix(point)).\(whole.suffix(places))"
    }
}
