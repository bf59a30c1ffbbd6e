internal import BLECore
internal import BLELinux
package import BareBLE
internal import Glibc

extension VirtualRadio {
    /// The library's interface to the kernel, implemented by this radio.
    package nonisolated var system: AdapterSystem {
        var system = AdapterSystem.kernel
        // Other radios of the process have adapters with the same addresses.
        system.reserveHandle = { _, _ in .unknown }
        system.list = { () throws(SystemCallError) in self.machine.withLock { $0.adapters } }
        system.info = { index throws(SystemCallError) in
            guard let found = self.machine.withLock({ $0.adapter(index) }) else {
                throw SystemCallError(call: "HCIGETDEVINFO", errno: ENODEV)
            }
            return found
        }
        system.open = { index throws(SystemCallError) in
            let (commands, reports) = try self.assumeIsolated { $0.open(index) }.get()
            var ours = HCISocket(adopting: commands)
            try ours.reportArrivalsOfStandIn()
            var sockets = AdapterSockets(commands: ours, reports: HCISocket(adopting: reports))
            sockets.refuseCommands { self.machine.withLock { $0.refusal(of: index) } }
            return sockets
        }
        system.connect = { own, _, peer, timeout, security throws(SystemCallError) in
            let beginning = try self.assumeIsolated {
                $0.connect(from: own, to: peer, timeout: timeout, security: security)
            }.get()
            let fate = beginning.fate
            var socket = LinkSocket(
                adopting: beginning.descriptor, isConnecting: beginning.isConnecting, reportedHandle: beginning.handle,
                reportedReason: { fate.withLock(\.self) })
            // A full socket polls like one that is connecting.
            while beginning.isConnecting, socket.send([UInt8](repeating: 0, count: 1000)) == .sent {}
            return socket
        }
        system.listen = { address throws(SystemCallError) in
            let (descriptor, number) = try self.assumeIsolated { $0.listen(on: address) }.get()
            return ListeningSocket(simulatedBy: descriptor) { self.assumeIsolated { $0.nextLink(of: number) } }
        }
        system.security = { descriptor throws(SystemCallError) in
            // A socket of something else has none.
            if let security = self.assumeIsolated({ $0.security(of: descriptor) }) { return security }
            return try LinkSocket.security(of: descriptor)
        }
        system.setSecurity = { descriptor, level throws(SystemCallError) in
            switch self.assumeIsolated({ $0.requestLevel(level, of: descriptor) }) {
            case true: return
            case false: throw SystemCallError(call: "BT_SECURITY", errno: EINVAL)
            case nil: try LinkSocket.setSecurity(level, of: descriptor)
            }
        }
        system.requestSecurity = { own, _, central throws(SystemCallError) in
            let isUp = self.assumeIsolated { $0.requestSecurity(of: central, on: own) }
            guard isUp else { throw SystemCallError(call: "connect", errno: EHOSTUNREACH) }
        }
        system.openManagement = { () throws(SystemCallError) in try self.managementSocket() }
        system.hardware = { adapter in self.machine.withLock { $0.hardware(of: adapter.name) } }
        system.runsBluetoothd = { self.machine.withLock { $0.runsBluetoothd } }
        system.openChannel = { own, _, peer, request throws(SystemCallError) in
            let opening = try self.assumeIsolated {
                $0.openChannel(from: own, to: peer.address, request.psm, request.security)
            }.get()
            var socket = LinkSocket(adopting: opening.descriptor, isConnecting: opening.isConnecting)
            // A full socket polls like one that is connecting.
            while opening.isConnecting, socket.send([UInt8](repeating: 0, count: 1000)) == .sent {}
            return socket
        }
        system.wantedLevel = { descriptor in self.assumeIsolated { $0.wantedLevels[descriptor] } }
        system.listenForChannels = { own, request throws(SystemCallError) in
            // The process has no capability for the PSMs that the Bluetooth SIG assigns.
            guard request.psm == 0 || request.psm >= 0x0080 else { throw SystemCallError(call: "bind", errno: EACCES) }
            let waiting = Lock<[ConnectionHandle]>([])
            let socket = try ListeningSocket.standIn(psm: request.psm, named: self.channelName(of: own)) {
                waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            }
            let listener = RadioChannelListeners.Listener(waiting: waiting, security: request.security)
            let psm = socket.psm
            self.assumeIsolated { $0.channelListeners[own, psm] = listener }
            return socket
        }
        system.linkHandle = { index, address in
            self.assumeIsolated { radio in
                radio.links.names(of: index).first { radio.management.peer(of: $0)?.address == address }?.handle
            }
        }
        system.linkAddress = { index, handle in
            self.assumeIsolated { $0.management.peer(of: LinkName(adapter: index, handle: handle))?.address }
        }
        system.linkHandles = { index in
            self.assumeIsolated { radio in
                radio.adapters[index] == nil ? nil : radio.links.names(of: index).map(\.handle)
            }
        }
        system.lowEnergyLinkHandles = system.linkHandles
        system.sharesAntenna = { name in self.machine.withLock { $0.sharesAntenna(name) } }
        system.hasDefectiveCodedPHY = { name in
            self.assumeIsolated { radio in
                radio.adapter(name)?.personality.hasDefectiveCodedPHY ?? false
            }
        }
        system.mayBeSuspended = { _ in false }
        system.powerDown = { index throws(SystemCallError) in
            let isThere = self.machine.withLock { $0.setPower(of: index, false) }
            if !isThere { throw SystemCallError(call: "HCIDEVDOWN", errno: ENODEV) }
            // The call comes from any thread.
            Task(executorPreference: self.loop) { await self.setPower(index, false) }
        }
        system.claimRecovery = { adapter throws(RecoveryFailure) in try self.claimRecovery(of: adapter) }
        system.recover = { step, adapter, _, _ throws(RecoveryFailure) in
            guard self.machine.withLock({ $0.permissions.contains(.recovery) }) else {
                throw .notPermitted("no helper program")
            }
            let claim = try self.claimRecovery(of: adapter)
            defer { withExtendedLifetime(claim) {} }
            try await self.recover(adapter.index, by: step)
        }
        system.isBlocked = { name in self.machine.withLock { $0.isBlocked(name) } }
        system.powerUp = { index throws(SystemCallError) in
            let failure = self.machine.withLock { machine -> Int32? in
                if let errno = machine.powerUpFailure(of: index) { return errno }
                return machine.setPower(of: index, true) ? nil : ENODEV
            }
            if let failure { throw SystemCallError(call: "HCIDEVUP", errno: failure) }
            // The call comes from any thread.
            Task(executorPreference: self.loop) { await self.powerChanged(index) }
        }
        system.openDeviceEvents = { () throws(SystemCallError) in
            let descriptor: Int32? = self.assumeIsolated { $0.openDeviceEvents() }
            guard let descriptor else {
                throw SystemCallError(call: "HCI_FILTER", errno: SystemCallError.notPermitted)
            }
            return HCISocket(adopting: descriptor)
        }
        system.privileges = {
            let permissions = self.machine.withLock { $0.permissions }
            let bits: [(VirtualPermissions, Privileges.Capability)] = [
                (.commands, .netRaw), (.administration, .netAdmin),
            ]
            return Privileges(
                effective: bits.reduce(0) { permissions.contains($1.0) ? $0 | 1 << $1.1.rawValue : $0 })
        }
        return system
    }

    /// Claims an adapter for a step of recovery, among the programs that use this radio.
    private nonisolated func claimRecovery(of adapter: ControllerInfo) throws(RecoveryFailure) -> RecoveryClaim {
        let (machine, address) = (machine, adapter.address)
        guard machine.withLock({ $0.claimRecovery(of: address) }) else { throw .underWay }
        return RecoveryClaim { machine.withLock { $0.releaseRecovery(of: address) } }
    }
}
