internal import BLECore

/// An Airthings Wave. Its measurements are read over a link; it advertises its serial number, whose first four digits
/// are the model's number.
///
///     company 0x0334 | serial number 4 | … 2
///
/// Spec: Airthings, waveplus-reader.
enum Airthings {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.remaining == 6, let serial = value.u32(), serial >= 2_900_000_000, serial < 4_000_000_000 else {
            return nil
        }
        let title =
            switch serial / 1_000_000 {
            case 2900: "Airthings Wave"
            case 2920: "Airthings Wave Mini"
            case 2930: "Airthings Wave Plus"
            case 2950: "Airthings Wave Radon"
            case 3210: "Airthings Wave Enhance"
            default: "Airthings"
            }
        return DecodedAdvertisement(.airthings, title, [.number("serial number", serial)])
    }
}
