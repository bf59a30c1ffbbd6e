public import BLECore
internal import BLELinux
internal import Glibc

// The other role: what the adapters advertise, the centrals that hear it, the links that they make, and the sockets that
// listen for them.

extension VirtualRadio {
    /// How long the kernel keeps a link of a central that no socket has.
    static let unattachedCentralTime: Duration = .milliseconds(4200)
    /// The time from the command that enables an advertisement to its first event.
    private static let startTime: Duration = .milliseconds(1)
    /// The parameters with which centrals connect.
    private static let centralParameters = ConnectionParameters(
        intervalMin: 24, intervalMax: 24, latency: 0, timeout: 500)

    /// A socket that listens on the ATT channel of an adapter.
    struct Listener {
        let number: UInt64
        let address: BluetoothAddress
        /// Announces links to the program; the program's end is its listening socket.
        let announcements: PeerLink
        /// The links that were not accepted yet, in their order.
        var waiting: [WaitingLink] = []
    }

    /// A link that waits to be accepted.
    struct WaitingLink {
        let name: VirtualManagement.LinkName
        let peer: PeerID
        /// The program's end.
        let end: LinkEndpoint
        let fate: Lock<Int32?>
    }

    /// A central in the air.
    struct PlacedCentral {
        let central: VirtualCentral
        var peer: PeerID
        var proximity: VirtualProximity
        var reaction = VirtualSecurityReaction.ignore
        var securityRequests = 0
    }

    // MARK: Centrals

    /// Adds a central, which hears the adapters' advertisements and connects to them.
    ///
    /// - Parameters:
    ///   - peer: Its address; `nil` for a static random one that no other device has.
    ///   - proximity: The distance.
    @discardableResult
    public func addCentral(as peer: PeerID? = nil, proximity: VirtualProximity = .near) -> VirtualCentral {
        let peer = peer ?? newAddress()
        let central = VirtualCentral(on: self, as: peer)
        centrals.append(PlacedCentral(central: central, peer: peer, proximity: proximity))
        return central
    }

    /// Moves a central. Out of range, its link ends after the supervision timeout, unless it returns earlier.
    public func move(_ central: VirtualCentral, to proximity: VirtualProximity) {
        guard let place = placement(of: central) else { return }
        centrals[place].proximity = proximity
        central.assumeIsolated { $0.hold(proximity.rssi == nil) }
        forEachLink(of: central) { adapter, handle in
            if let rssi = proximity.rssi {
                controllers[adapter]?.controller.links[handle]?.rssi = rssi
                // A link whose socket is closed cannot recover.
                if controllers[adapter]?.links[handle]?.isAttached == true { keepUp(adapter, handle) }
            } else {
                loseTouch(adapter, handle)
            }
        }
        scheduleHearing()
    }

    /// Changes a central's address, as phones do every 15 minutes. An existing link is kept.
    public func changeAddress(of central: VirtualCentral, to peer: PeerID) {
        guard let place = placement(of: central) else { return }
        centrals[place].peer = peer
        central.assumeIsolated { $0.addressChanged(peer) }
    }

    /// Power-cycles a central: it has no link any more and does not disconnect. The adapter detects that by the
    /// supervision timeout; the central may connect again before.
    public func reset(_ central: VirtualCentral) {
        forEachLink(of: central) { adapter, handle in
            controllers[adapter]?.links[handle]?.isForgotten = true
            loseTouch(adapter, handle)
        }
        central.assumeIsolated { $0.forgetLink() }
    }

    /// Removes a central permanently, as if out of range.
    public func remove(_ central: VirtualCentral) {
        move(central, to: .outOfRange)
        centrals.removeAll { $0.central === central }
    }

    /// Makes a central encrypt its link, as with the key of a bond that both sides have; does nothing without a link.
    ///
    /// The library is not asked, and has no bond afterwards.
    public func encrypt(_ central: VirtualCentral, _ security: VirtualLinkSecurity = VirtualLinkSecurity()) {
        forEachLink(of: central) { adapter, handle in
            let wasEncrypted = controllers[adapter]?.links[handle]?.isEncrypted ?? false
            controllers[adapter]?.links[handle]?.isEncrypted = security.isEncrypted
            management.centralEncrypted(VirtualManagement.LinkName(adapter: adapter, handle: handle), security)
            send(
                wasEncrypted && security.isEncrypted
                    ? VirtualController.encryptionKeyRefresh(handle)
                    : VirtualController.encryptionChange(handle, .success, isOn: security.isEncrypted), adapter)
        }
    }

    /// Makes a central begin to pair, as phones do after an attribute was refused to them; does nothing without a link, or
    /// while a pairing runs on it.
    ///
    /// The adapter refuses it unless `LocalPeripheral.allowPairing` lets centrals pair. Its results follow; the key is in
    /// the library's store then, and the use of the central's own on later links is up to `encrypt(_:_:)`.
    ///
    /// - Parameters:
    ///   - central: The central.
    ///   - security: How it pairs.
    public func pair(_ central: VirtualCentral, _ security: VirtualSecurity = VirtualSecurity()) {
        forEachLink(of: central) { adapter, handle in
            perform(
                management.centralPairs(VirtualManagement.LinkName(adapter: adapter, handle: handle), security))
        }
    }

    /// Sets how a central reacts to the Security Requests of the adapter; at first it ignores them.
    public func setReaction(of central: VirtualCentral, toSecurityRequests reaction: VirtualSecurityReaction) {
        if let place = placement(of: central) { centrals[place].reaction = reaction }
    }

    /// Returns the number of Security Requests that a central has received.
    public func securityRequests(to central: VirtualCentral) -> Int {
        placement(of: central).map { centrals[$0].securityRequests } ?? 0
    }

    /// Sends a Security Request to the central of a link, unless one is out or the link is encrypted.
    ///
    /// - Returns: Whether there is such a link.
    func requestSecurity(of peer: PeerID, on own: BluetoothAddress) -> Bool {
        for (adapter, running) in controllers where running.controller.address == own {
            for (handle, link) in running.links {
                let name = VirtualManagement.LinkName(adapter: adapter, handle: handle)
                guard management.peer(of: name) == peer, let central = link.central else { continue }
                guard let actions = management.requestSecurity(name) else { return true }
                perform(actions)
                guard let place = placement(of: central) else { return true }
                centrals[place].securityRequests += 1
                _ = loop.schedule(at: loop.now() + Self.usualEncryptionTime) { [weak self] in
                    self?.assumeIsolated { $0.react(central, name) }
                }
                return true
            }
        }
        return false
    }

    private func react(_ central: VirtualCentral, _ name: VirtualManagement.LinkName) {
        guard let place = placement(of: central) else { return }
        switch centrals[place].reaction {
        case .ignore: break
        case .refuse: perform(management.refuseSecurity(name))
        case .encrypt(let security): encrypt(central, security)
        case .pair(let security): pair(central, security)
        }
    }

    // MARK: Adapters

    /// Returns the advertisements that an adapter has on air, of all programs, in the order of their sets. They outlive a
    /// program that does not end them.
    public func advertisements(of name: String = "hci0") -> [HeardAdvertisement] {
        guard let index = index(of: name), isUp(index), let controller = controllers[index]?.controller else {
            return []
        }
        return controller.advertiser.setsOnAir.map { HeardAdvertisement($0, of: controller.address, adapter: name) }
    }

    /// Sets the number of links that an adapter's controller can have; it refuses connectable advertisements beyond it.
    public func limitLinks(to count: Int, _ name: String = "hci0") {
        guard let index = index(of: name) else { return }
        controllers[index]?.controller.linkLimit = max(0, count)
    }

    // MARK: Hearing

    /// Called when advertisements went on air or off.
    func advertisingChanged(_ adapter: UInt16) {
        guard let controller = controllers[adapter]?.controller else { return scheduleHearing() }
        let onAir = Set(controller.advertiser.setsOnAir.map(\.handle))
        let now = loop.now()
        var times = (controllers[adapter]?.airTimes ?? [:]).filter { onAir.contains($0.key) }
        for handle in onAir where times[handle] == nil { times[handle] = now + Self.startTime }
        controllers[adapter]?.airTimes = times
        scheduleHearing()
    }

    /// Sets the timer to the next advertising event that a central may hear.
    func scheduleHearing() {
        if let hearingTimer { loop.cancel(hearingTimer) }
        hearingTimer = nil
        guard centrals.contains(where: { $0.proximity.rssi != nil && $0.central.assumeIsolated { $0.isHearing } })
        else { return }
        let now = loop.now()
        var earliest: BootInstant?
        for (adapter, running) in controllers where isUp(adapter) {
            for set in running.controller.advertiser.setsOnAir {
                guard var due = running.airTimes[set.handle] else { continue }
                if due < now {
                    // Advertising events also pass while nobody hears them.
                    let beat = set.interval.saturatedNanoseconds
                    due = due + .nanoseconds(((now - due).saturatedNanoseconds + beat - 1) / beat * beat)
                    controllers[adapter]?.airTimes[set.handle] = due
                }
                earliest = min(earliest ?? due, due)
            }
        }
        guard let earliest else { return }
        hearingTimer = loop.schedule(at: earliest) { [weak self] in
            self?.assumeIsolated { $0.advertisingEvents() }
        }
    }

    private func advertisingEvents() {
        hearingTimer = nil
        let now = loop.now()
        for (adapter, running) in controllers.sorted(by: { $0.key < $1.key }) where isUp(adapter) {
            for set in running.controller.advertiser.setsOnAir {
                guard let due = running.airTimes[set.handle], due <= now else { continue }
                controllers[adapter]?.airTimes[set.handle] = due + set.interval
                let heard = HeardAdvertisement(
                    set, of: running.controller.address,
                    adapter: machine.withLock { machine in
                        machine.adapters.first { $0.index == adapter }?.name ?? ""
                    })
                for placed in centrals where placed.proximity.rssi != nil {
                    let connects = placed.central.assumeIsolated { $0.hear(heard) }
                    if connects { connect(placed, adapter, heard) }
                }
            }
        }
        scheduleHearing()
    }

    // MARK: Links of centrals

    private func connect(_ placed: PlacedCentral, _ adapter: UInt16, _ heard: HeardAdvertisement) {
        // Another central may just have been faster.
        guard let controller = controllers[adapter]?.controller, let rssi = placed.proximity.rssi,
            controller.advertiser.setsOnAir.contains(where: { $0.handle == heard.set })
        else { return }
        let ends: (Int32, Int32)
        do throws(SystemCallError) {
            ends = try LinkSocket.pair()
            try LinkSocket.reportArrivals(of: ends.1)
        } catch {
            return placed.central.assumeIsolated { $0.failToConnect(errno: error.errno) }
        }
        guard
            let (handle, actions) = controllers[adapter]?.controller.centralConnects(
                placed.peer, by: heard.set, Self.centralParameters, rssi: rssi)
        else { return }
        let link = RadioLink(partner: .central(placed.central), peer: placed.peer, isAttached: true, fate: Lock(nil))
        controllers[adapter]?.links[handle] = link
        perform(actions, adapter)
        let name = VirtualManagement.LinkName(adapter: adapter, handle: handle)
        perform(management.linkBegan(name, placed.peer) { nil })
        placed.central.assumeIsolated { central in
            central.begin(
                over: ends.0, heard,
                ending: { [weak self] reason in
                    self?.assumeIsolated { $0.end(adapter, handle, reason, reporting: true) }
                },
                clientGone: { [weak self] in
                    self?.assumeIsolated { radio in
                        radio.controllers[adapter]?.links[handle]?.isAttached = false
                        radio.end(adapter, handle, .localHostTerminated, after: Self.unattachedCentralTime)
                    }
                })
        }
        if handOn(name, LinkEndpoint(ends.1), placed.peer, link.fate) { return }
        // The other end is closed, which the central does not see.
        controllers[adapter]?.links[handle]?.isAttached = false
        end(adapter, handle, .localHostTerminated, after: Self.unattachedCentralTime)
    }

    /// Returns the index of a central.
    private func placement(of central: VirtualCentral) -> Int? {
        centrals.firstIndex { $0.central === central }
    }

    func forEachLink(of central: VirtualCentral, _ body: (UInt16, ConnectionHandle) -> Void) {
        for (index, running) in controllers.sorted(by: { $0.key < $1.key }) {
            for (handle, link) in running.links.sorted(by: { $0.key < $1.key })
            where link.central === central && !link.isForgotten {
                body(index, handle)
            }
        }
    }

    // MARK: Listening sockets

    /// Listens for links to the adapter with this address, and returns the program's descriptor.
    func listen(on address: BluetoothAddress) -> Result<(descriptor: Int32, number: UInt64), SystemCallError> {
        do throws(TestLinkError) {
            let (announcements, other) = try PeerLink.open(on: loop)
            lastClient += 1
            let number = lastClient
            listeners.append(Listener(number: number, address: address, announcements: announcements))
            announcements.start(
                packet: { _ in }, ended: { [weak self] in self?.assumeIsolated { $0.listenerLeft(number) } })
            return .success((other, number))
        } catch {
            return .failure(SystemCallError(call: "socket", errno: EMFILE))
        }
    }

    private func listenerLeft(_ number: UInt64) {
        // The ends of links that were not accepted close, and the kernel ends the links a little later.
        listeners.removeAll { $0.number == number }
    }

    /// Returns the next link that a listening socket accepts; `nil` if the one that was announced has ended.
    func nextLink(of number: UInt64) -> ListeningSocket.AnnouncedLink? {
        guard let index = listeners.firstIndex(where: { $0.number == number }), !listeners[index].waiting.isEmpty
        else { return nil }
        let link = listeners[index].waiting.removeFirst()
        let descriptor = link.end.take()
        sockets[descriptor] = link.name
        let fate = link.fate
        return ListeningSocket.AnnouncedLink(
            descriptor: descriptor, peer: management.peer(of: link.name) ?? link.peer, handle: link.name.handle,
            reportedReason: { fate.withLock(\.self) })
    }

    /// Hands a link to the socket that listens on its adapter. Of several, the newest one gets it; without one, nobody
    /// has the link, and the kernel ends it a little later.
    ///
    /// - Returns: Whether there is such a socket.
    @discardableResult
    func handOn(
        _ name: VirtualManagement.LinkName, _ end: LinkEndpoint, _ peer: PeerID, _ fate: Lock<Int32?>
    ) -> Bool {
        let own = controllers[name.adapter]?.controller.address
        guard let index = listeners.lastIndex(where: { $0.address == own }) else { return false }
        listeners[index].waiting.append(WaitingLink(name: name, peer: peer, end: end, fate: fate))
        listeners[index].announcements.send([0])
        return true
    }

    /// A link that this machine has initiated by command goes to the listening socket as well, if there is one.
    func handOnInitiated(_ adapter: UInt16, _ handle: ConnectionHandle, _ peer: PeerID) {
        let own = controllers[adapter]?.controller.address
        guard listeners.contains(where: { $0.address == own }), let link = controllers[adapter]?.links[handle] else {
            return
        }
        let name = VirtualManagement.LinkName(adapter: adapter, handle: handle)
        do throws(SystemCallError) {
            let (ours, theirs) = try LinkSocket.pair()
            _ = attach(adapter, handle, LinkEndpoint(theirs), ours, nil)
            handOn(name, LinkEndpoint(ours), peer, link.fate)
        } catch {
            return
        }
    }

    /// A link has ended: nobody accepts it any more.
    func withdrawWaiting(_ name: VirtualManagement.LinkName) {
        for index in listeners.indices { listeners[index].waiting.removeAll { $0.name == name } }
    }
}
