import ArgumentParser
import BLECore
import BareBLE

extension ConnectionFacts {
    /// Connects to a peer, finds out what it has, and takes the time.
    ///
    /// - Throws: `Failure` for a peer that makes no sense; that the peer cannot be reached is a result.
    init(of peer: PeerArgument, adapter: AdapterArgument?) async throws {
        let adapterOption = peer.isInTheAir ? adapter.map { ["--adapter", $0.selector.description] } : nil
        let options = try ConnectionOptions.parse(adapterOption ?? [])
        let clock = ContinuousClock()
        let start = clock.now
        do {
            self = try await Connection.run(with: peer, options, cache: .unneeded) { peripheral in
                var facts = ConnectionFacts(peer: peer.description)
                let connected = clock.now
                facts.connecting = (connected - start).milliseconds
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
