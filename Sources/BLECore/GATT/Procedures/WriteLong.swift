/// Writes one value that does not fit into a packet.
///
/// It is a reliable write of one part: the response to every piece is compared, and the peer's queue is emptied after
/// a failure.
///
/// Spec: Write Long Characteristic Values, Core Vol 3 Part G, 4.9.4.
package struct WriteLong: GATTProcedure {
    private var write: ReliableWrite

    package init(handle: AttributeHandle, value: [UInt8], offset: UInt16 = 0, mtu: UInt16) {
        write = ReliableWrite([.init(handle: handle, value: value, offset: offset)], mtu: mtu)
    }

    package var usesPreparedQueue: Bool { true }

    package var executesPreparedQueue: Bool { write.executesPreparedQueue }

    package mutating func begin() -> GATTStep<Void> { write.begin() }

    package mutating func received(_ reply: ATTReply) -> GATTStep<Void> { write.received(reply) }

    package mutating func abandoned() -> [UInt8]? { write.abandoned() }
}
