import BLECore
import BareBLE

/// A link to the peer of the self-test.
struct SelfTestLink: Sendable {
    let device: Peripheral
    let handle: ConnectionHandle
}

/// The peer of a self-test, and the link to it.
final class SelfTestPeering {
    private let plan: SelfTestPlan
    /// The name of the adapter under test.
    private let adapter: String
    private let machine: SelfTestMachine
    private let access: SelfTestAccess
    /// The second adapter, while it advertises and serves.
    private(set) var peer: SelfTestPeer?
    /// Why the second adapter does not serve.
    private var peerObstacle: String?
    /// What could not be restored of one that does not serve.
    private var restoration: [String] = []
    /// The device to connect to; `nil` before it was heard.
    private(set) var target: PeerID?
    private var central: Central?
    /// The link that several checks use.
    private(set) var link: SelfTestLink?

    init(_ plan: SelfTestPlan, from adapter: String, on machine: SelfTestMachine, _ access: SelfTestAccess) {
        self.plan = plan
        self.adapter = adapter
        self.machine = machine
        self.access = access
    }

    // MARK: The peer

    /// Has the second adapter advertise, before the scans that are to hear it.
    func prepare(_ facts: SystemFacts) async {
        guard let selector = plan.peerAdapter else { return }
        do throws(Failure) {
            let found = try SelfTestRunner.find(selector, in: facts)
            let peer = SelfTestPeer(found, on: machine)
            do throws(Failure) {
                try await peer.start()
                self.peer = peer
            } catch {
                restoration = await peer.stop()
                throw error
            }
        } catch {
            peerObstacle = error.message
        }
    }

    /// Decides which device is the peer, by what a scan has heard.
    func findTarget(_ heard: SelfTestHeard) {
        switch plan.peer {
        case .address(let address, let type?)?:
            let peer = PeerID(address: address, type: type)
            target = heard.advertisers[peer] == nil ? nil : peer
        case .address(let address, nil)?: target = heard.advertisers.keys.first { $0.address == address }
        case .unix?, .demo?, nil: target = heard.marks[1] ?? heard.marks.values.first
        }
    }

    /// Why the checks that need a peer cannot run; `nil` if they can.
    func obstacle(needsAdapter: Bool) -> String? {
        if let peerObstacle { return peerObstacle }
        if needsAdapter, peer == nil { return "needs --peer-adapter" }
        if plan.peer == nil, peer == nil { return "needs --peer-adapter or --peer" }
        if target == nil { return "the peer was not heard" }
        return nil
    }

    // MARK: The link

    /// The central on the adapter under test.
    func centralUnderTest() -> Central {
        if let central { return central }
        let new = machine.central(on: adapter)
        central = new
        return new
    }

    /// Returns the link that the checks share; `nil` if the peer cannot be connected.
    func linked() async throws(SelfTestEnd) -> SelfTestLink? {
        if let link, await link.device.disconnectReason == nil { return link }
        guard let target else { return nil }
        link = nil
        await access.channel.forget()
        do throws(BLEError) {
            let device = try await centralUnderTest().connect(target)
            var handle: ConnectionHandle?
            for packet in await access.channel.drain() {
                if case .event(.connectionComplete(let complete)) = packet.content, complete.status.isSuccess {
                    handle = complete.handle
                }
            }
            guard let handle else {
                await device.disconnect()
                return nil
            }
            let found = SelfTestLink(device: device, handle: handle)
            link = found
            return found
        } catch {
            if error.code == .cancelled { throw .interrupted }
            return nil
        }
    }

    /// Ends the shared link.
    func unlink() async {
        await link?.device.disconnect()
        link = nil
    }

    /// Ends the link and the peer.
    ///
    /// - Returns: What could not be restored.
    func end() async -> [String] {
        await unlink()
        let failures = await peer?.stop() ?? []
        // Their sockets close with them.
        peer = nil
        central = nil
        return restoration + failures
    }
}
