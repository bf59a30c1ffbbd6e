import BLELinux
import BareBLETestKit
import Foundation
import Glibc

/// A peer on a Unix SEQPACKET socket, as `blescan … unix:PATH` connects to it. It serves one client.
///
/// Its thread closes each descriptor, after everything else that uses the number: another test may get it next.
final class SocketPeer: Sendable {
    /// The reaction to a packet from the client.
    enum Reaction: Sendable {
        case response([UInt8])
        case silence
        case disconnect
    }

    /// The path after `unix:`.
    let path: String
    private let listener: Lock<Int32>
    private let log = Lock<[[UInt8]]>([])
    private let client = Lock<Int32>(-1)

    /// The packets from the client so far.
    var packets: [[UInt8]] { log.withLock { $0 } }

    /// Creates a peer that reacts to each packet as `react` returns.
    convenience init(_ react: @Sendable @escaping ([UInt8]) -> Reaction) throws {
        try self.init()
        serve { client, packet in
            switch react(packet) {
            case .response(let response): Self.send(response, to: client)
            case .silence: break
            case .disconnect: shutdown(client, Int32(SHUT_RDWR))
            }
        }
    }

    /// Creates a peer that is a virtual device, and disconnects when the client sends `last`; at `path`, or at any free
    /// one.
    convenience init(_ device: VirtualDevice, until last: [UInt8]? = nil, at path: String? = nil) async throws {
        try self.init(link: try await VirtualPeripheral(device).connect(), until: last, at: path)
    }

    /// Creates a peer from the other end of `link`.
    convenience init(link: Int32, until last: [UInt8]? = nil, at path: String? = nil) throws {
        try self.init(at: path)
        // The threads wait in the kernel.
        _ = fcntl(link, F_SETFL, 0)
        let isForwarded = DispatchSemaphore(value: 0)
        serve(began: { client in
            Thread {
                while let packet = Self.receive(from: link) { Self.send(packet, to: client) }
                shutdown(client, Int32(SHUT_RDWR))
                isForwarded.signal()
            }.start()
        }) { _, packet in
            if packet == last {
                shutdown(link, Int32(SHUT_RDWR))
            } else {
                Self.send(packet, to: link)
            }
        } ended: {
            shutdown(link, Int32(SHUT_RDWR))
            isForwarded.wait()
            close(link)
        }
    }

    private init(at path: String? = nil) throws {
        self.path = path ?? "/tmp/blescan-test-\(UUID().uuidString.prefix(8)).sock"
        let listener = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        self.listener = Lock(listener)
        let path = self.path
        _ = unsafe unlink(path)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0, listen(listener, 1) == 0 else {
            let error = POSIXError(.init(rawValue: errno) ?? .EIO)
            close(listener)
            self.listener.withLock { $0 = -1 }
            throw error
        }
    }

    deinit {
        listener.withLock { if $0 >= 0 { shutdown($0, Int32(SHUT_RDWR)) } }
        _ = unsafe unlink(path)
    }

    /// Ends the link at the peer's side.
    func disconnect() {
        client.withLock { if $0 >= 0 { shutdown($0, Int32(SHUT_RDWR)) } }
    }

    /// Waits until the client has sent a packet that `isWanted` accepts.
    func received(_ what: String, _ isWanted: ([UInt8]) -> Bool) async throws {
        try await waited(for: "\(what) is received") { packets.contains(where: isWanted) }
    }

    private func serve(
        began: @Sendable @escaping (Int32) -> Void = { _ in },
        received: @Sendable @escaping (Int32, [UInt8]) -> Void, ended: @Sendable @escaping () -> Void = {}
    ) {
        Thread { [weak self, listener] in
            defer {
                listener.withLock {
                    close($0)
                    $0 = -1
                }
            }
            let client = accept(listener.withLock(\.self), nil, nil)
            guard client >= 0 else { return }
            self?.client.withLock { $0 = client }
            began(client)
            while let packet = Self.receive(from: client) {
                self?.log.withLock { $0.append(packet) }
                received(client, packet)
            }
            ended()
            self?.client.withLock { $0 = -1 }
            close(client)
        }.start()
    }

    private static func receive(from descriptor: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
        return count > 0 ? Array(buffer.prefix(count)) : nil
    }

    private static func send(_ packet: [UInt8], to descriptor: Int32) {
        _ = unsafe packet.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }
}
