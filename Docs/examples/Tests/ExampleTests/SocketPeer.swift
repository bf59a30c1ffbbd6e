import BareBLETestKit
import Dispatch
import Glibc

/// A virtual device on a Unix SEQPACKET socket, as the examples find it by `unix:PATH`: one client after the other.
final class SocketPeer: Sendable {
    /// The path after `unix:`.
    let path = "/tmp/bareble-example-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock"
    let peripheral: VirtualPeripheral
    private let listener: Int32

    init(_ device: VirtualDevice) throws {
        peripheral = VirtualPeripheral(device)
        listener = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { [path] in $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0, listen(listener, 4) == 0 else { throw WaitTimeout(what: "\(path) listens", seen: []) }
        Self.acceptClients(at: listener, peripheral)
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        unlink(path)
    }

    private static func acceptClients(at listener: Int32, _ peripheral: VirtualPeripheral) {
        inThread {
            while case let client = accept(listener, nil, nil), client >= 0 {
                Task { await serve(client, peripheral) }
            }
        }
    }

    private static func serve(_ client: Int32, _ peripheral: VirtualPeripheral) async {
        // It hears of the end of its last link a little later than the client.
        while await peripheral.isConnected { await Task.yield() }
        guard let link = try? await peripheral.connect() else { return }
        _ = fcntl(link, F_SETFL, 0)
        // Closed only after both threads: until then the numbers are theirs.
        let threads = DispatchGroup()
        for (from, to) in [(client, link), (link, client)] {
            threads.enter()
            inThread {
                carry(from, to)
                threads.leave()
            }
        }
        threads.notify(queue: .global()) {
            close(client)
            close(link)
        }
    }

    /// Carries packets until one side disconnects, and then closes both.
    private static func carry(_ from: Int32, _ to: Int32) {
        var packet = [UInt8](repeating: 0, count: 1024)
        while case let count = recv(from, &packet, packet.count, 0), count > 0 {
            send(to, packet, count, Int32(MSG_NOSIGNAL))
        }
        shutdown(to, Int32(SHUT_RDWR))
        shutdown(from, Int32(SHUT_RDWR))
    }

    /// On a thread of its own, which may block.
    private static func inThread(_ body: @Sendable @escaping () -> Void) {
        DispatchQueue(label: "peer").async(execute: body)
    }
}
