import BLEProfiles
import BareBLE

/// A daemon with a session and a subscription for each of some peers, that has nothing to do.
///
/// It has the one thread of `Central.serve`. Where Swift's own pool of threads has been used, the system's library for
/// it looks at those threads once a second.
struct IdleTrial {
    let peers: [PeerID]

    func run(_ central: Central) async throws {
        try await central.ready(powerOn: true)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for peer in peers {
                let session = try await central.session(with: peer)
                group.addTask {
                    for try await change in await session.subscribe(to: .heartRateMeasurement) {
                        switch change {
                        case .began: LinkTrials.say("began \(peer)")
                        case .value: LinkTrials.say("value \(peer)")
                        case .interrupted(let error): LinkTrials.say("interrupted \(error)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
