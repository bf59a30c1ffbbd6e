import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// A channel over a socketpair, beside a link to a virtual device.
struct ChannelBench: Sendable {
    let time: VirtualTime
    let device: VirtualPeripheral
    let link: Peripheral
    let channel: L2CAPChannel
    let far: FarEnd

    init(_ options: L2CAPChannel.Options = L2CAPChannel.Options()) async throws {
        time = try #require(VirtualTimeTrait.time, "the test lacks .virtualTime")
        device = VirtualPeripheral(.battery, time: time)
        let (ours, theirs) = try LinkSocket.pair()
        far = FarEnd(theirs)
        link = try await Central(time: time).attach(descriptor: device.connect())
        channel = try await link.attachChannel(descriptor: ours, psm: 0x80, options)
    }
}

/// The peer's end of a channel. Its calls never wait for the other end.
actor FarEnd {
    private var socket: LinkSocket?
    private var buffer = [UInt8](repeating: 0, count: 70_000)

    init(_ descriptor: Int32) {
        socket = LinkSocket(adopting: descriptor)
    }

    func send(_ packet: [UInt8]) -> Bool {
        socket?.send(packet) == .sent
    }

    /// Sends numbered packets, four bytes each, while the kernel takes them; returns the first number that was not
    /// sent.
    func count(from first: UInt32, to end: UInt32) -> UInt32 {
        var number = first
        while number < end, send(numbered(number)) { number += 1 }
        return number
    }

    /// The next packet that is there.
    func receive() -> [UInt8]? {
        guard case .packet(let count, _)? = socket?.receive(into: &buffer) else { return nil }
        return Array(buffer.prefix(count))
    }

    /// Waits for a packet.
    func packet() async -> [UInt8] {
        while !Task.isCancelled {
            if let packet = receive() { return packet }
            await Task.yield()
        }
        return []
    }

    /// Waits until the other end is closed, and nothing is left to read.
    func ended() async {
        while !Task.isCancelled {
            if case .ended? = socket?.receive(into: &buffer) { return }
            await Task.yield()
        }
    }

    func close() {
        socket = nil
    }
}

/// A packet that carries its number.
func numbered(_ number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
}
