/// Why a capture cannot be read, or not any further.
///
/// What was read before the error stands.
public enum CaptureError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file begins like no capture format that is known here.
    case notACapture
    /// A capture, but of neither packets between a host and a controller nor Bluetooth LE in the air; the number of its link
    /// type.
    case unsupportedDatalink(UInt32)
    /// A capture format in a version that is not known here.
    case unsupportedVersion(UInt32)
    /// The file ends in the middle of a record; how many whole packets came before.
    case truncated(packetsRead: Int)
    /// A record's header contradicts itself, so that the next one cannot be found; how many packets came before.
    case corruptRecord(packetsRead: Int)

    /// A sentence that says what is wrong with the file.
    public var description: String {
        switch self {
        case .notACapture: "this is no capture: it begins like none of btsnoop, pcap, pcapng and PacketLogger"
        case .unsupportedDatalink(let number):
            "this capture holds link type \(number), which is neither traffic between a host and a controller nor what a sniffer "
                + "of Bluetooth LE hears"
        case .unsupportedVersion(let number): "this capture is written in version \(number) of its format"
        case .truncated(let count): "the capture ends in the middle of a record, behind \(count) whole packets"
        case .corruptRecord(let count): "the capture is damaged behind packet \(count)"
        }
    }
}
