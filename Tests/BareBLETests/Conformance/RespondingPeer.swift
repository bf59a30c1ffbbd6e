import BLECore
import BLELinux
import BareBLETestKit
import TestSupport

/// The server's side of a recording, for a client that asks in another order: a request that was recorded gets the
/// recorded responses, the others have responses from the attributes that the recording speaks of.
struct RecordedServer: Sendable {
    /// Handles a request before everything else; `nil` continues.
    typealias Intercept = @Sendable ([UInt8]) -> [[UInt8]]?

    private var recorded: [[UInt8]: [[[UInt8]]]] = [:]
    private var inTurn: ArraySlice<[UInt8]> = []
    private var model: AttributeServer
    private let intercept: Intercept

    init(_ database: ServerDatabase, mtu: Int = 23, intercept: @escaping Intercept = { _ in nil }) {
        model = AttributeServer(database, maximumMTU: UInt16(clamping: mtu))
        self.intercept = intercept
    }

    /// Takes in a recording. Asked the same again, the peer gives the responses in their order, and the last one
    /// forever.
    mutating func add(_ lines: [GATTVectors.Line]) throws {
        var request: [UInt8]?
        for line in lines {
            if let sent = line.c2s {
                request = try bytes(sent)
                request.map { recorded[$0, default: []].append([]) }
            } else if let request, let responses = recorded[request] {
                recorded[request]?[responses.count - 1].append(try bytes(line.s2c))
            }
        }
    }

    /// The next requests get these responses, whatever they ask.
    mutating func respond(inTurn responses: [String]) throws {
        inTurn = try responses.map { try bytes($0.filter { $0 != " " }) }[...]
    }

    mutating func received(_ pdu: [UInt8]) -> [[UInt8]] {
        if let response = intercept(pdu) { return response }
        if let next = inTurn.popFirst() { return [next] }
        // The model has to know the MTU too.
        guard pdu.first != ATTOpcode.exchangeMTURequest.rawValue, let responses = recorded[pdu],
            let first = responses.first
        else { return model.received(pdu) }
        if responses.count > 1 { recorded[pdu]?.removeFirst() }
        return first
    }
}

/// A peer on a socketpair that responds by a `RecordedServer`, and remembers what it was sent.
actor RespondingPeer {
    private let loop = EventLoop.peers
    private var server: RecordedServer
    private var link: PeerLink?
    /// The packets from the client, in order.
    private(set) var received: [[UInt8]] = []

    init(_ server: RecordedServer) {
        self.server = server
    }

    isolated deinit {
        link?.close()
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe EventLoop.peers.asUnownedSerialExecutor()
    }

    /// Opens the link; returns the client's end of it.
    func connect() throws -> Int32 {
        let (link, other) = try PeerLink.open(on: loop)
        self.link = link
        link.start(
            packet: { [weak self] pdu in
                self?.assumeIsolated { peer in
                    peer.received.append(pdu)
                    for response in peer.server.received(pdu) { peer.link?.send(response) }
                }
            },
            ended: {})
        return other
    }

    func send(_ pdu: [UInt8]) {
        link?.send(pdu)
    }
}
