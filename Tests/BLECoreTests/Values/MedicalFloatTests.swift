import BLECore
import Testing

/// Bit patterns by IEEE 11073-20601 and the Bluetooth SIG's Personal Health Devices Transcoding White Paper.
@Suite struct MedicalFloatTests {
    @Test(
        arguments: [
            (0x0072, .finite(mantissa: 114, exponent: 0), "114"),
            (0xF16C, .finite(mantissa: 364, exponent: -1), "36.4"),
            (0xF800, .finite(mantissa: -2048, exponent: -1), "-204.8"),
            (0x8001, .finite(mantissa: 1, exponent: -8), "0.00000001"),
            (0x7FFF, .finite(mantissa: -1, exponent: 7), "-10000000"),
            (0xE004, .finite(mantissa: 4, exponent: -2), "0.04"),
            (0x0000, .finite(mantissa: 0, exponent: 0), "0"),
            (0x07FE, .positiveInfinity, "above the range"), (0x07FF, .notANumber, "not a number"),
            (0x0800, .notAtThisResolution, "not at this resolution"), (0x0801, .reserved, "reserved"),
            (0x0802, .negativeInfinity, "below the range"),
        ] as [(UInt16, MedicalNumber, String)])
    func aFloatOf16BitsHasTheSpecifiedValue(_ bits: UInt16, _ expected: MedicalNumber, _ text: String) throws {
        let value = try MedicalFloat16(value: [UInt8(bits & 0xFF), UInt8(bits >> 8)])
        #expect(value.number == expected)
        #expect(value.number.description == text)
        #expect(value.valueBytes == [UInt8(bits & 0xFF), UInt8(bits >> 8)])
    }

    /// 0xFF00016C is 36.4 in the Health Thermometer Service's example.
    @Test(
        arguments: [
            ([0x6C, 0x01, 0x00, 0xFF], .finite(mantissa: 364, exponent: -1), 36.4),
            ([0x9C, 0xFF, 0xFF, 0xFE], .finite(mantissa: -100, exponent: -2), -1),
            ([0xFE, 0xFF, 0x7F, 0x00], .positiveInfinity, .infinity),
            ([0x02, 0x00, 0x80, 0x00], .negativeInfinity, -.infinity),
            ([0x01, 0x00, 0x00, 0x80], .finite(mantissa: 1, exponent: -128), 1e-128),
        ] as [([UInt8], MedicalNumber, Double)])
    func aFloatOf32BitsHasTheSpecifiedValue(_ bytes: [UInt8], _ expected: MedicalNumber, _ double: Double) throws {
        let value = try MedicalFloat32(value: bytes)
        #expect(value.number == expected)
        #expect(abs(value.doubleValue - double) <= abs(double) * 1e-12 || value.doubleValue == double)
        #expect(value.valueBytes == bytes)
    }

    @Test func specialsAreNoNumbers() throws {
        for raw: UInt32 in [0x007F_FFFF, 0x0080_0000, 0x0080_0001] {
            #expect(MedicalFloat32(rawValue: raw).doubleValue.isNaN)
        }
        #expect(MedicalFloat32(rawValue: 0x007F_FFFF).number == .notANumber)
        #expect(MedicalFloat32(rawValue: 0x0080_0000).number == .notAtThisResolution)
        #expect(MedicalFloat32(rawValue: 0x0080_0001).number == .reserved)
    }

    @Test func numbersAreBuiltWhenTheyFit() {
        #expect(MedicalFloat16(mantissa: 364, exponent: -1)?.rawValue == 0xF16C)
        #expect(MedicalFloat16(mantissa: -1, exponent: 7)?.rawValue == 0x7FFF)
        #expect(MedicalFloat16(mantissa: 2047, exponent: 0) == nil)
        #expect(MedicalFloat16(mantissa: 2047, exponent: -1) != nil)
        #expect(MedicalFloat16(mantissa: 2048, exponent: 0) == nil)
        #expect(MedicalFloat16(mantissa: 1, exponent: 8) == nil)
        #expect(MedicalFloat32(mantissa: 364, exponent: -1)?.rawValue == 0xFF00_016C)
        #expect(MedicalFloat32(mantissa: 0x80_0000, exponent: 0) == nil)
    }

    /// Every bit pattern has one meaning, and a finite one goes back to its bits.
    @Test func everyPatternOf16BitsHasOneMeaning() {
        var specials = 0
        for bits in UInt16.min ... .max {
            guard case .finite(let mantissa, let exponent) = MedicalFloat16(rawValue: bits).number else {
                specials += 1
                continue
            }
            if MedicalFloat16(mantissa: Int(mantissa), exponent: Int(exponent))?.rawValue != bits {
                Issue.record("\(bits)")
            }
        }
        #expect(specials == 5)
    }
}
