import ArgumentParser
import BLECore
import BLELinux
import BareBLE

extension ConnectionFacts {
    /// Connects to a peer, discovers its database, and measures the time. An adapter that is off stays off.
    ///
    /// The link to a bonded peer is encrypted, as those of the other commands are. Without CAP_NET_ADMIN a command to
    /// the controller does it, which changes nothing of the adapter.
    ///
    /// - Throws: `Failure` for an invalid peer; an unreachable peer is a result.
    init(of peer: PeerArgument, adapter: AdapterArgument?, bonds: BondOptions, recording: RecordingOptions) async throws
    {
        var options = try OperationOptions.parse([])
        if peer.isInTheAir { options.connection.link.adapter = adapter }
        options.connection.link.bonds = bonds
        options.output.recording = recording
        let clock = ContinuousClock()
        let start = clock.now
        let begun = Begun()
        do {
            self = try await Connection.run(
                with: peer, options, cache: .unneeded, switchesOn: false,
                found: { begun.time.withLock { $0 = clock.now } }
            ) { peripheral in
                var facts = ConnectionFacts(peer: peer.description)
                let connected = clock.now
                let found = begun.time.withLock { $0 }
                facts.searching = found.map { ($0 - start).milliseconds }
                facts.connecting = (connected - (found ?? start)).milliseconds
                let database = try await peripheral.discover(level: .full)
                let statistics = await peripheral.statistics
                facts.discovering = (clock.now - connected).milliseconds
                facts.mtu = await peripheral.mtu
                facts.isEncrypted = await peripheral.security.isEncrypted
                facts.requests = statistics.requestsSent
                facts.strays = statistics.knownStrays + statistics.unexplainedResponses
                facts.attributes = database.attributeCount
                facts.hasHash = database.characteristics.contains { $0.uuid == .databaseHash }
                return facts
            }
        } catch let error as BLEError where error.code != .cancelled {
            self = ConnectionFacts(peer: peer.description)
            failure = error.description
            status = ExitStatus(error)
        }
    }
}

/// The time at which the connection attempt began.
private final class Begun: Sendable {
    let time = Lock<ContinuousClock.Instant?>(nil)
}
