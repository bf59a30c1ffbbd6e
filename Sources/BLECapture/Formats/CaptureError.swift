internal import BLECore

/// An error that ends the reading of a capture.
///
/// Packets read before the error remain valid.
public enum CaptureError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file is not in a known capture format.
    case notACapture
    /// The capture contains neither HCI traffic nor Bluetooth LE packets captured on air; with the number of its link
    /// type.
    case unsupportedDatalink(UInt32)
    /// The version of the capture format is not supported.
    case unsupportedVersion(UInt32)
    /// The file ends in the middle of a record; with the number of complete packets before it.
    case truncated(packetsRead: Int)
    /// A record's header is inconsistent, so that the next one cannot be found; with the number of packets before it.
    case corruptRecord(packetsRead: Int)

    /// A message that describes the problem.
    public var description: String {
        switch self {
        case .notACapture: "not a capture file in btsnoop, pcap, pcapng or PacketLogger format"
        case .unsupportedDatalink(let number):
            "link type \(number) is not supported: it is neither HCI traffic nor Bluetooth LE captured on air"
        case .unsupportedVersion(let number): "version \(number) of this capture format is not supported"
        case .truncated(let count): "the capture ends in the middle of a record, after \(count) complete packets"
        case .corruptRecord(let count): "the capture is damaged after packet \(count)"
        }
    }
}
