import BLECore
import Glibc

/// Pings the gateway of the network, to see what a scan leaves to Wi-Fi on the same antenna.
struct GatewayPing: Hashable, Sendable {
    /// The number of requests, and the times of the responses.
    var sent = 0
    var times: [Duration] = []

    private static let pause: Duration = .milliseconds(100)
    /// A response that comes later counts as lost.
    private static let responseTimeout: Duration = .seconds(1)

    var lost: Int { max(0, sent - times.count) }

    /// Returns the gateway of the default route over one of these interfaces, in the order of bytes of the network.
    ///
    /// - Parameter routes: The text of `/proc/net/route`: the interface, the destination, the gateway and the flags are
    ///   the first fields of a line, numbers as the machine has them in memory.
    static func gateway(over interfaces: [String], routes: String) -> UInt32? {
        for line in routes.split(separator: "\n").dropFirst() {
            let fields = line.split(whereSeparator: { $0 == "\t" || $0 == " " })
            guard fields.count > 3, interfaces.contains(String(fields[0])), UInt32(fields[1], radix: 16) == 0,
                let gateway = UInt32(fields[2], radix: 16), gateway != 0
            else { continue }
            return gateway
        }
        return nil
    }

    /// Pings an address for a time, on the calling thread; `nil` if this process may not.
    static func measure(_ address: UInt32, for time: Duration) -> GatewayPing? {
        // The first kind is for everybody where the system permits it, the second for CAP_NET_RAW.
        var isRaw = false
        var descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), Int32(IPPROTO_ICMP))
        if descriptor < 0 {
            isRaw = true
            descriptor = socket(AF_INET, Int32(SOCK_RAW.rawValue), Int32(IPPROTO_ICMP))
        }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var destination = sockaddr_in()
        destination.sin_family = sa_family_t(AF_INET)
        destination.sin_addr.s_addr = address
        let connected = unsafe withUnsafePointer(to: &destination) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { return nil }
        let clock = ContinuousClock()
        let start = clock.now
        var ping = GatewayPing()
        var sentAt: [UInt16: ContinuousClock.Instant] = [:]
        while true {
            let now = clock.now
            let isOver = now >= start + time
            if isOver, ping.lost == 0 || now >= start + time + responseTimeout { return ping }
            if !isOver, start + pause * ping.sent <= now {
                let number = UInt16(truncatingIfNeeded: ping.sent)
                sentAt[number] = now
                ping.sent += 1
                let request = Self.request(number)
                _ = unsafe request.withUnsafeBytes { unsafe send(descriptor, $0.baseAddress, $0.count, 0) }
            }
            var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&wanted, 1, 20) > 0 else { continue }
            var buffer = [UInt8](repeating: 0, count: 256)
            let count = unsafe buffer.withUnsafeMutableBytes {
                unsafe recv(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
            }
            guard count > 0, let number = Self.number(in: Array(buffer.prefix(count)), isRaw: isRaw),
                let began = sentAt.removeValue(forKey: number)
            else { continue }
            ping.times.append(clock.now - began)
        }
    }

    /// The identifier of the requests of this process; of the first kind of socket the kernel has its own.
    private static let identifier = UInt16(truncatingIfNeeded: getpid())

    /// An ICMP Echo Request. RFC 792: type 8, code 0, checksum, identifier, number.
    static func request(_ number: UInt16) -> [UInt8] {
        var words: [UInt16] = [0x0800, 0, identifier, number]
        var sum = words.reduce(UInt32(0)) { $0 + UInt32($1) }
        while sum > 0xFFFF { sum = (sum & 0xFFFF) + sum >> 16 }
        words[1] = ~UInt16(truncatingIfNeeded: sum)
        return words.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
    }

    /// The number in an Echo Reply (type 0) to this process; a raw socket also has the header of IP before it, and
    /// other programs' replies.
    static func number(in packet: [UInt8], isRaw: Bool) -> UInt16? {
        var reader = ByteReader(packet.span)
        if isRaw {
            guard let first = packet.first, reader.skip(Int(first & 0x0F) * 4) else { return nil }
        }
        // Multi-byte fields are in the order of the network.
        guard let type = reader.u8(), type == 0, reader.skip(3), let identifier = reader.u16()?.byteSwapped,
            let number = reader.u16()?.byteSwapped, !isRaw || identifier == self.identifier
        else { return nil }
        return number
    }
}
