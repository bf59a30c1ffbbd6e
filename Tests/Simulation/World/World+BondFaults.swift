import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc

// What happens to bonds: at the peer, in the kernel, on the disk; and how they are made good in the end.

extension World {
    func strikeBonds(_ step: Script.Step) {
        guard !script.security.isEmpty else { return }
        eventCounts.add("fault.\(step.verb.rawValue)")
        if step.verb.isOnAdapter { return strikeStore(step, hosts[hostNumber(step)]) }
        guard let peer = peer(step.subject), var security = peer.pairs else { return }
        let peripheral = peer.peripheral
        switch step.verb {
        case .loseBonds: peripheral.assumeIsolated { $0.forgetBonds() }
        case .otherKeys: peripheral.assumeIsolated { $0.replaceBondKeys() }
        case .requestSecurity:
            let request = VirtualSecurityRequest(
                isBonding: step.first & 1 != 0, isAuthenticated: step.first & 2 != 0)
            peripheral.assumeIsolated { $0.requestSecurity(request) }
        case .rotateAddress:
            // An application that has no bond would have to look for it again.
            guard let identity = peer.identity,
                peer.session == nil || host(peer.adapter).adapter.assumeIsolated({ $0.isBonded(with: identity) })
            else { return }
            if let former = address(of: peripheral) { peer.formerAddresses.insert(former) }
            radio.assumeIsolated { _ = $0.rotateAddress(of: peripheral) }
        case .forge:
            security.earlyPackets = SimulatedPeer.earlyPackets(peer.number)
            set(security, of: peer, step)
        case .failPairings:
            security.response = [.refuse, .reject, .ignore][step.second % 3]
            set(security, of: peer, step)
        default:
            guard peripheral.assumeIsolated({ $0.linkSecurity.isEncrypted }) else { return }
            radio.assumeIsolated { $0.stopEncryption(of: peripheral) }
        }
    }

    private func set(_ security: VirtualSecurity, of peer: SimulatedPeer, _ step: Script.Step) {
        let peripheral = peer.peripheral
        peripheral.assumeIsolated { $0.setSecurity(security) }
        after(step) { [pairs = peer.pairs] _ in peripheral.assumeIsolated { $0.setSecurity(pairs) } }
    }

    private func strikeStore(_ step: Script.Step, _ host: Host) {
        switch step.verb {
        case .emptyLists:
            if step.first & 1 != 0 { foreign(host, .loadLongTermKeys, [0, 0]) }
            if step.first & 2 != 0 { foreign(host, .loadIdentityResolvingKeys, [0, 0]) }
        case .changeSetting:
            switch step.first {
            case 0:
                foreign(host, .setPowered, [0])
                var end = step
                end.first = step.second
                after(end) { $0.foreign(host, .setPowered, [1]) }
            case 1: foreign(host, .setBondable, [1])
            default: foreign(host, .setSecureConnections, [0])
            }
        case .unpair:
            guard let peer = peer(step.first), peer.adapter == step.subject % hosts.count else { return }
            var writer = ByteWriter()
            writer.managementPeer(ManagementPeer(peer.identity ?? peer.peer))
            foreign(host, .unpairDevice, writer.bytes + [UInt8(step.second & 1)])
        case .loseManagement:
            loseManagement()
            radio.assumeIsolated { $0.closeManagement() }
        case .failDisk:
            guard let store = host.store, !store.mayFail else { return }
            store.fail([ENOSPC, EROFS, EIO][step.second % 4 % 3], after: step.second / 4)
            after(step) { _ in if !store.isStopped { store.heal() } }
        case .loseStore: host.store?.lose()
        default: host.store?.restore()
        }
    }

    /// Programs lose the management interface, by which alone they could cancel what the kernel pairs.
    func loseManagement() {
        hasLostManagement = true
        for peer in peers where peer.pairingTasks > 0 { peer.pairingEnd = loop.now() + .seconds(35) }
    }

    /// Another program sends a command to the kernel's management interface.
    private func foreign(_ host: Host, _ code: ManagementCommandCode, _ parameters: [UInt8]) {
        let index = Int(host.name.dropFirst(3)).flatMap { UInt16(exactly: $0) }
        guard case .success(let descriptor) = radio.assumeIsolated({ $0.openManagement() }) else {
            return fail("no descriptors are left")
        }
        var socket = LinkSocket(adopting: descriptor)
        let packet = ManagementPacket(code: code.rawValue, adapter: index, parameters: parameters)
        if socket.send(packet.bytes) != .sent { fail("the management interface takes nothing") }
    }

    // MARK: The end of all faults

    func healBonds() {
        guard !script.security.isEmpty else { return }
        for host in hosts where host.store?.isStopped == false { host.store?.heal() }
        for peer in peers {
            // A peer that asks for more than a program without an agent has ends each of its links.
            var security = peer.pairs
            security?.request = nil
            peer.peripheral.assumeIsolated { $0.setSecurity(security) }
        }
    }

    /// Where the management interface was lost, the adapters are switched off and on once, for which no link may be up.
    func recoverManagement() async {
        guard hasLostManagement else { return }
        for peer in peers where security(of: peer) != nil {
            let (session, link) = (peer.session, peer.link)
            (peer.session, peer.link) = (nil, nil)
            await session?.disconnect()
            await link?.disconnect()
        }
        for host in hosts where host.store != nil {
            // A power that was off for some milliseconds is not seen here, as the kernel's own reset afterwards shows
            // it: links would be taken for up.
            await radio.reset(host.name)
            try? await host.central.ready(powerOn: true)
        }
    }

    /// An honest peer can be paired, and its next link is encrypted.
    func recoverBond(_ peer: SimulatedPeer, _ link: Peripheral, _ host: Host) async throws {
        peer.pairingTasks += 1
        defer {
            checkPairings()
            peer.pairingTasks -= 1
        }
        let bond = try await link.pair(PairingOptions(replacing: .lostByPeer, timeout: .seconds(10)))
        if await link.isConnected, await !link.security.isEncrypted {
            fail("after the faults, peer \(peer.number) was paired, and its link is not encrypted")
        }
        guard peer.session == nil else { return eventCounts.add("recovered.bond") }
        await link.disconnect()
        let next = try await host.central.connect(bond.peer, ConnectOptions(security: .bonded))
        peer.link = next
        made.append(WeakLink(link: next))
        if await next.isConnected, await !next.security.isEncrypted {
            fail("after the faults, a link to bonded peer \(peer.number) is not encrypted")
        }
        eventCounts.add("recovered.bond")
    }

    /// What an application does about a bond that cannot be used: it is forgotten on both sides.
    func recoverSecurity(_ peer: SimulatedPeer, _ error: any Error) async {
        guard let host = security(of: peer) else { return }
        if let link = peer.link {
            peer.link = nil
            await link.disconnect()
        }
        let code = (error as? BLEError)?.code
        // The kernel keeps the keys of bonds that another program has removed from the file until the next load, and
        // files their peers' links under the identities.
        if host.store?.hasOthersChanges == true { foreign(host, .loadIdentityResolvingKeys, [0, 0]) }
        // The adapter has to be switched off and on once.
        if code == .pairingUnavailable || code == .pairingFailed,
            hasLostManagement || (error as? BLEError)?.subject == host.name
        {
            hasLostManagement = true
            return await recoverManagement()
        }
        if let session = peer.session, code == .bondRejected || code == .notBonded || peer.identity != nil {
            peer.session = nil
            await session.disconnect()
        }
        if code == .bondRejected, await replacesBond(with: peer, host) { return }
        let codes: [BLEError.Code] = [
            .bondRejected, .notBonded, .keyTooShort, .bondNotStored, .pairingFailed, .pairingUnavailable,
        ]
        guard codes.contains(where: { $0 == code }) else { return }
        host.store?.changed()
        try? await host.central.forgetBond(with: peer.identity ?? peer.peer)
        await peer.peripheral.forgetBonds()
    }

    /// Replaces the bond that an honest peer has lost by a connect. One that is not heard is tried again, within the
    /// time of the recovery.
    ///
    /// - Returns: Whether that is enough; else the bond has to be forgotten, as one that is worth more.
    private func replacesBond(with peer: SimulatedPeer, _ host: Host) async -> Bool {
        guard peer.kind == .honest, peer.pairs?.isGood == true else { return false }
        peer.pairingTasks += 1
        defer {
            checkPairings()
            peer.pairingTasks -= 1
        }
        let pairing = PairingOptions(replacing: .lostByPeer, timeout: .seconds(10))
        let options = ConnectOptions(timeout: .seconds(10), security: .pairing(pairing))
        do throws(BLEError) {
            let link = try await host.central.connect(name(of: peer), options)
            peer.link = link
            made.append(WeakLink(link: link))
            eventCounts.add("recovered.replacement")
            return true
        } catch {
            return error.code == .timedOut
        }
    }
}

extension VirtualSecurity {
    /// Whether any program can pair the device and keep the bond.
    var isGood: Bool { keepsBonds && keySize == 16 && !requiresAuthentication }
}
