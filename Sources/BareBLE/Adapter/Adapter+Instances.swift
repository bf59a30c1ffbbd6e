internal import BLECore
internal import BLELinux
internal import Logging

// How the adapter uses the kernel's advertising instances: it opens and reads the management interface for them, and
// decides what follows where that is lost.

extension Adapter {
    /// Has the kernel advertise until `stopAdvertising`.
    ///
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_ADMIN, `.invalidArgument` for data that does not fit,
    ///   `.notSupported`, `.busy` (no instance is free), `.cancelled`, and the codes of `prepare`.
    func addInstance(
        _ advertisement: Advertisement, during operation: String
    ) async throws(BLEError) -> InstanceCoordinator.Started {
        try openInstances(during: operation)
        let features = await instances.readFeatures()
        let kernel: ManagementAdvertisingFeatures
        switch features {
        case .success(let found)?: kernel = found
        case .failure(let failure)?: throw BLEError(failure, advertisingOn: name, during: operation)
        case nil: throw cancelledError(during: operation)
        }
        if !kernel.hasSets, advertiser.setCount > 0 { throw BLEError(oneAdvertiserOf: name, during: operation) }
        // Where it has just come back, its instances may still wait for the management.
        if presence == .up { instances.adapterUp() }
        let plan = try advertisement.plan(on: kernel, name, during: operation)
        let result = await instances.start(plan, on: kernel, of: address, reclaims: !system.runsBluetoothd())
        watchPresence()
        switch result {
        case .success(let started)?: return started
        case .failure(let failure)?: throw BLEError(failure, adapter: name, links: linksUp.count, during: operation)
        case nil: throw cancelledError(during: operation)
        }
    }

    /// Serves the deadline; a socket that was lost and could not be opened again is opened first.
    func instancesTimePassed() {
        if !instances.isResting, !instances.isOpen { try? openInstances(during: "advertise") }
        instances.timePassed()
    }

    /// Removes an instance.
    func removeInstance(_ id: InstanceSession.InstanceID) async {
        // A socket that was lost would fail the removal.
        try? openInstances(during: "stop advertising")
        await instances.stop(id)
        watchPresence()
    }

    /// Has the kernel pair with the adapter's own address, where centrals may pair: an advertising instance of any
    /// program may have made it another one. `AdvertisingAddressReset` has the reason.
    ///
    /// - Parameter settings: The adapter's settings: with private addresses, the kernel pairs with these.
    func keepPairingAddress(_ settings: ManagementSettings) async {
        guard traits.ownAddressType == .public, !settings.contains(.privacy), let address else { return }
        let obstacle: String
        do throws(BLEError) {
            try openInstances(during: "let centrals pair")
            // Centrals may pair by now: a cancellation comes too late.
            let features = await instances.readFeatures(interruption: .ignoresCancellation)
            switch features {
            case .success(let kernel)?:
                guard allowsCentralPairing else { return }
                await instances.keepAddress(of: address, on: kernel)
                guard let failure = instances.addressFailure else { return }
                obstacle = "\(failure)"
            case .failure(let failure)?: obstacle = "\(failure)"
            case nil: return
            }
        } catch {
            obstacle = "\(error)"
        }
        logger.warning(
            "pairings fail if an advertisement of another program has changed the address that the kernel pairs with",
            metadata: ["adapter": "\(name)", "reason": "\(obstacle)"])
    }

    private func openInstances(during operation: String) throws(BLEError) {
        guard let index = info?.index else { throw downError(during: operation) }
        if instances.isOpen { return useInstances(of: index) }
        instances.onDeadlineChange { [weak self] in
            self?.assumeIsolated {
                $0.armTimer()
                $0.noteAdvertising()
            }
        }
        do throws(SystemCallError) {
            instances.open(try system.openManagement(), adapter: index)
            guard let descriptor = instances.descriptor else { return }
            let failure = loop.onReadable(descriptor) { [weak self] in
                self?.assumeIsolated { $0.instancesReadable() }
            }
            if let failure {
                instances.close()
                throw failure
            }
        } catch {
            throw BLEError(error, subject: name, during: operation)
        }
    }

    /// The adapter is there again, perhaps with another index.
    func useInstances(of index: UInt16) {
        // That it was away may not be read yet.
        instancesReadable()
        instances.use(adapter: index)
    }

    private func instancesReadable() {
        if instances.read() {
            closeInstances()
            // Without advertisements, the deadline of the address has it opened.
            guard instances.count > 0 else { return }
            logger.warning("the management interface was lost: it is opened again", metadata: ["adapter": "\(name)"])
            try? openInstances(during: "advertise")
        }
    }

    /// Closes the socket; the instances stay.
    func closeInstances() {
        if let descriptor = instances.descriptor { loop.unregister(descriptor) }
        instances.close()
    }
}
