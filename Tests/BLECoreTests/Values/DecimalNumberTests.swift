import BLECore
import Testing

@Suite struct DecimalNumberTests {
    @Test(
        arguments: [
            (24_300, -3, 2, "24.30"), (24_305, -3, 2, "24.31"), (-5, -3, 2, "-0.01"), (-4, -3, 2, "0.00"),
            (534_925, -4, 2, "53.49"), (534_950, -4, 2, "53.50"), (999_950, -4, 2, "100.00"), (53, -1, 2, "5.3"),
            (7, 2, 0, "700"), (15, -1, 0, "2"), (1, -18, 2, "0.00"), (.max, -19, 0, "1"), (.min, -30, 2, "0.00"),
        ] as [(Int64, Int, Int, String)])
    func surplusPlacesAreRounded(_ mantissa: Int64, _ exponent: Int, _ places: Int, _ text: String) {
        #expect(DecimalNumber(mantissa, exponent: exponent).rounded(toPlaces: places).description == text)
    }
}
