import BareBLE

/// Everything that one adapter can do at once: a scan, sessions with some peers, and the peripheral of `ServeTrial`
/// with its centrals.
struct RolesTrial {
    let peers: [PeerID]

    func run(_ central: Central) async throws {
        try await central.ready(powerOn: true)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await ServeTrial(central: central).run() }
            group.addTask { try await IdleTrial(peers: peers).run(central) }
            group.addTask {
                for try await event in central.scan(.any, .balanced.duplicates(.every(.seconds(1)))) {
                    switch event {
                    case .found(let device), .updated(let device):
                        LinkTrials.say("heard \(device.peer?.description ?? "nobody")")
                    case .dropped(let count): LinkTrials.say("missed \(count) scan events")
                    case .lost, .paused, .resumed: break
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
