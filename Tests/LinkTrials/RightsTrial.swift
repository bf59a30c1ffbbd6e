import BareBLE

/// Reports the features of a link that this process may use with the capabilities that its parent gave it, one line for
/// each.
struct RightsTrial {
    let peer: PeerID
    /// A channel that sends back what it gets.
    let psm: UInt16

    func run() async throws {
        let device = try await Central().connect(peer, ConnectOptions(timeout: .seconds(30)))
        await tell("discover") { _ = try await device.discover() }
        await tell("channel") {
            let channel = try await device.openChannel(psm: psm)
            try await channel.send([1])
            var packets = channel.packets.makeAsyncIterator()
            guard try await packets.next() == [1] else { LinkTrials.fail("no echo", 1) }
            await channel.close()
        }
        await tell("rssi") { _ = try await device.rssi() }
        await tell("parameters") { _ = try await device.requestConnectionParameters(.lowPower) }
        await tell("phy") { _ = try await device.requestPHY(.le2M) }
        await device.disconnect()
    }

    private func tell(_ feature: String, _ use: () async throws -> Void) async {
        do {
            try await use()
            LinkTrials.say("\(feature) works")
        } catch {
            LinkTrials.say("\(feature) fails: \((error as? BLEError).map { "\($0.code)" } ?? "\(error)")")
        }
    }
}
