import BareBLE
import BareBLETestKit
import Glibc

/// A local peripheral, and centrals at the other ends of socket pairs.
struct ServingBench: Sendable {
    let central: Central
    let peripheral: LocalPeripheral
    let lines = Lines()

    /// In virtual time, or in the machine's.
    init(_ time: VirtualTime? = nil) {
        central = Central(radio: time.map(VirtualRadio.init(time:)) ?? VirtualRadio())
        peripheral = LocalPeripheral(on: central)
    }

    /// Connects a client of this library.
    func connect() async throws -> (id: ConnectedCentral.ID, client: Peripheral) {
        let (ours, theirs) = try Self.pair()
        let id = try await peripheral.attach(descriptor: ours, name: "central")
        return (id, try await central.attach(descriptor: theirs))
    }

    /// Two connected sockets, which keep packets apart as links do.
    static func pair() throws -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0 else {
            throw WaitTimeout(what: "two sockets are there", seen: [String(cString: strerror(errno))])
        }
        return (ends[0], ends[1])
    }
}
