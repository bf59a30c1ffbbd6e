public import BLECore

extension Peripheral {
    /// The physical layers of a link, one for each direction.
    public struct LinkPHY: Hashable, Sendable {
        /// The PHY on which this host sends.
        public let transmit: PHY
        /// The PHY on which this host receives.
        public let receive: PHY

        /// Creates a value with a PHY for each direction.
        public init(transmit: PHY, receive: PHY) {
            self.transmit = transmit
            self.receive = receive
        }
    }
}

/// The former name of `Peripheral.LinkPHY`.
@available(*, deprecated, renamed: "Peripheral.LinkPHY")
public typealias LinkPHY = Peripheral.LinkPHY
