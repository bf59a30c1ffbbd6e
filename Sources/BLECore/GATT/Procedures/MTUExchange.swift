/// Exchanges the MTU with the peer.
///
/// The result is the smaller of both values, and never below 23. A peer that refuses, with whatever error, stays at
/// 23; that is a result and not a failure. Sent once per link.
///
/// Spec: Exchange MTU, Core Vol 3 Part G, 4.3.1.
package struct MTUExchange: GATTProcedure {
    /// The MTU of a link without an exchange.
    package static let minimum: UInt16 = 23
    /// The MTU to offer: an attribute value of 512 bytes fits, with the header of every packet.
    package static let preferred: UInt16 = 517

    private let offer: UInt16

    package init(offer: UInt16 = preferred) {
        self.offer = max(offer, Self.minimum)
    }

    package mutating func begin() -> GATTStep<UInt16> {
        .send(ATTExchangeMTURequest(mtu: offer).bytes)
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<UInt16> {
        .attempt { () throws(GATTFailure) in
            if case .error = reply { return .finished(Self.minimum) }
            let response = try Self.response(to: ATTExchangeMTURequest.self, in: reply)
            return .finished(max(Self.minimum, min(offer, response.mtu)))
        }
    }
}
