package import BLELinux
package import BareBLE

/// A number that identifies a service for L2CAP channels, 0x0080 to 0x00FF.
public typealias CBL2CAPPSM = UInt16

/// An open L2CAP channel to a peer.
///
/// The program keeps the channel, opens its streams, and schedules them in a run loop, or polls them. The channel
/// closes when both streams are closed, or when the last reference to the channel and its streams goes away. The
/// borders of packets are not kept: the streams are of bytes.
///
/// Spec: LE credit based connection, Core Vol 3 Part A, 4.22.
open class CBL2CAPChannel: NSObject, @unchecked Sendable {
    /// The channels of both roles have the longest packets that streams need.
    static let options = L2CAPChannel.Options(mtu: 2_048)

    private let otherSide: CBPeer
    private let number: CBL2CAPPSM
    private let input: ChannelInputStream
    private let output: ChannelOutputStream

    package init(_ channel: L2CAPChannel, to peer: CBPeer, loop: EventLoop) {
        otherSide = peer
        number = channel.psm
        let pipe = ChannelPipe(channel, loop: loop)
        input = ChannelInputStream(pipe)
        output = ChannelOutputStream(pipe)
        super.init()
        pipe.start(input.events, output.events)
    }

    /// The device at the other end.
    open var peer: CBPeer! { otherSide }
    /// The bytes from the peer.
    open var inputStream: InputStream! { input }
    /// The bytes to the peer.
    open var outputStream: OutputStream! { output }
    /// The PSM of the channel.
    open var psm: CBL2CAPPSM { number }
}
