internal import BLECore

/// The advertisement of a phone that takes part in exposure notification. Its identifier changes every few minutes.
///
///     service 0xFD6F | rolling proximity identifier 16 | encrypted metadata 4
///
/// Spec: Exposure Notification, Bluetooth Specification 1.2, Advertising Payload.
enum ExposureNotification {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard let identifier = value.array(16), value.skip(4), value.isAtEnd else { return nil }
        return DecodedAdvertisement(
            .exposureNotification, "Exposure Notification",
            [ValueField("identifier", .text(Hex.encode(identifier)), showsName: false)])
    }
}
