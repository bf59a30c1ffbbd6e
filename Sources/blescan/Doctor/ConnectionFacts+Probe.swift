import ArgumentParser
import BLECore
import BLELinux
import BareBLE

extension ConnectionFacts {
    /// Connects to a peer, finds out what it has, and takes the time. The adapter stays off if it is.
    ///
    /// - Throws: `Failure` for a peer that makes no sense; that the peer cannot be reached is a result.
    init(of peer: PeerArgument, adapter: AdapterArgument?, recording: RecordingOptions) async throws {
        var options = try ConnectionOptions.parse([])
        if peer.isInTheAir { options.adapter = adapter }
        options.recording = recording
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
                let database = try await peripheral.discover(.full)
                let statistics = await peripheral.statistics
                facts.discovering = (clock.now - connected).milliseconds
                facts.mtu = await peripheral.mtu
                facts.requests = statistics.requestsSent
                facts.strays = statistics.knownStrays + statistics.unexplainedAnswers
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

/// When the call to the peer began.
private final class Begun: Sendable {
    let time = Lock<ContinuousClock.Instant?>(nil)
}
