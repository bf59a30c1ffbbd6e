internal import BLECore

/// An Eddystone-URL frame: a link to a web page.
///
///     10 | power 1 | scheme 1 | encoded URL, up to 17 bytes
public struct EddystoneURL: Hashable, Sendable {
    /// The transmit power at 0 m, in dBm; the expected signal strength at one metre is 41 dB lower.
    public let txPower: Int8
    /// The decoded URL.
    public let url: String

    init?(_ value: inout ByteReader) {
        guard let power = value.i8(), let scheme = value.u8(), let prefix = Self.prefix(scheme) else { return nil }
        var text = prefix
        while let byte = value.u8() {
            if let ending = Self.ending(byte) {
                text += ending
            } else if 0x21...0x7E ~= byte {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                return nil
            }
        }
        txPower = power
        url = text
    }

    private static func prefix(_ code: UInt8) -> String? {
        switch code {
        case 0: "http://www."
        case 1: "https://www."
        case 2: "http://"
        case 3: "https://"
        default: nil
        }
    }

    private static func ending(_ code: UInt8) -> String? {
        let domain: String
        switch code % 7 {
        case 0: domain = ".com"
        case 1: domain = ".org"
        case 2: domain = ".edu"
        case 3: domain = ".net"
        case 4: domain = ".info"
        case 5: domain = ".biz"
        default: domain = ".gov"
        }
        return code < 7 ? domain + "/" : code < 14 ? domain : nil
    }
}
