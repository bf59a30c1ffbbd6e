public import BLECore
internal import BLELinux
internal import Glibc

// The other role: what the adapters advertise, the centrals that hear it, the links that they make, and the sockets
// that listen for them.

extension VirtualRadio {
    /// The time for which the kernel keeps a link of a central that no socket has.
    static let unattachedCentralTime: Duration = .milliseconds(4200)
    /// The parameters with which centrals connect.
    private static let centralParameters = ConnectionParameters(
        intervalMin: 24, intervalMax: 24, latency: 0, timeout: 500)

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
        centrals.add(central, as: peer, proximity)
        return central
    }

    /// Moves a central. Out of range, its link ends after the supervision timeout, unless it returns earlier.
    public func move(_ central: VirtualCentral, to proximity: VirtualProximity) {
        guard centrals[central] != nil else { return }
        centrals.setProximity(of: central, proximity)
        central.assumeIsolated { $0.hold(proximity.rssi == nil) }
        for name in links.names(of: central) {
            guard let rssi = proximity.rssi else {
                loseTouch(name)
                continue
            }
            adapters[name.adapter]?.setRSSI(rssi, of: name.handle)
            // A link whose socket is closed cannot recover.
            if links[name]?.isAttached == true { links.keep(name) }
        }
        scheduleHearing()
    }

    /// Changes a central's address, as phones do every 15 minutes. An existing link is kept.
    public func changeAddress(of central: VirtualCentral, to peer: PeerID) {
        guard centrals[central] != nil else { return }
        centrals.setAddress(of: central, peer)
        central.assumeIsolated { $0.addressChanged(peer) }
    }

    /// Returns the connection parameters of a central's link, as they were set last; `nil` without a link.
    package func connectionParameters(of central: VirtualCentral) -> ConnectionParameters? {
        guard let name = links.names(of: central).first else { return nil }
        return adapters[name.adapter]?.parameters(of: name.handle)
    }

    /// Has a central change the connection parameters of its link, as it may at any time; does nothing without a link.
    package func changeParameters(of central: VirtualCentral, to parameters: ConnectionParameters) {
        for name in links.names(of: central) { perform([.update(name.handle, parameters)], name.adapter) }
    }

    /// Power-cycles a central: it has no link any more and does not disconnect. The adapter detects that by the
    /// supervision timeout; the central may connect again before.
    public func reset(_ central: VirtualCentral) {
        for name in links.names(of: central) {
            links.forget(name)
            loseTouch(name)
        }
        central.assumeIsolated { $0.forgetLink() }
    }

    /// Removes a central permanently, as if out of range.
    public func remove(_ central: VirtualCentral) {
        move(central, to: .outOfRange)
        centrals.remove(central)
    }

    /// Makes a central encrypt its link, as with the key of a bond that both sides have; does nothing without a link.
    ///
    /// The library is not asked, and has no bond afterwards.
    public func encrypt(_ central: VirtualCentral, _ security: VirtualLinkSecurity = VirtualLinkSecurity()) {
        for name in links.names(of: central) {
            let wasEncrypted = links[name]?.isEncrypted ?? false
            links.setEncrypted(name, security.isEncrypted)
            management.centralEncrypted(name, security)
            send(
                wasEncrypted && security.isEncrypted
                    ? VirtualController.encryptionKeyRefresh(name.handle)
                    : VirtualController.encryptionChange(name.handle, .success, isOn: security.isEncrypted),
                name.adapter)
        }
    }

    /// Makes a central begin to pair, as phones do after an attribute was refused to them; does nothing without a link,
    /// or while a pairing runs on it.
    ///
    /// The adapter refuses it unless `LocalPeripheral.allowPairing` lets centrals pair. Its results follow; the key is
    /// in the library's store then, and the use of the central's own on later links is up to `encrypt(_:_:)`.
    ///
    /// - Parameters:
    ///   - central: The central.
    ///   - security: How it pairs.
    public func pair(_ central: VirtualCentral, _ security: VirtualSecurity = VirtualSecurity()) {
        for name in links.names(of: central) { perform(management.centralPairs(name, security)) }
    }

    /// Sets how a central reacts to the Security Requests of the adapter; at first it ignores them.
    public func setReaction(of central: VirtualCentral, toSecurityRequests reaction: VirtualSecurityReaction) {
        centrals.setReaction(of: central, reaction)
    }

    /// Returns the number of Security Requests that a central has received.
    public func securityRequests(to central: VirtualCentral) -> Int {
        centrals[central]?.securityRequests ?? 0
    }

    /// Sends a Security Request to the central of a link, unless one is out or the link is encrypted.
    ///
    /// - Returns: Whether there is such a link.
    func requestSecurity(of peer: PeerID, on own: BluetoothAddress) -> Bool {
        for adapter in adapters.all where adapter.address == own {
            for name in links.names(of: adapter.index) {
                guard management.peer(of: name) == peer, let central = links[name]?.central else { continue }
                guard let actions = management.requestSecurity(name) else { return true }
                perform(actions)
                guard centrals[central] != nil else { return true }
                centrals.countSecurityRequest(to: central)
                _ = loop.schedule(at: loop.now() + SecurityTimers.usualEncryptionTime) { [weak self] in
                    self?.assumeIsolated { $0.react(central, name) }
                }
                return true
            }
        }
        return false
    }

    private func react(_ central: VirtualCentral, _ name: LinkName) {
        switch centrals[central]?.reaction {
        case .ignore, nil: break
        case .refuse: perform(management.refuseSecurity(name))
        case .encrypt(let security): encrypt(central, security)
        case .pair(let security): pair(central, security)
        }
    }

    // MARK: Adapters

    /// Returns the advertisements that an adapter has on air, of all programs, in the order of their sets. They outlive
    /// a program that does not end them.
    public func advertisements(of name: String = "hci0") -> [HeardAdvertisement] {
        guard let adapter = adapter(name), isUp(adapter.index) else { return [] }
        return adapter.setsOnAir.map { HeardAdvertisement($0, of: adapter.address, adapter: name) }
    }

    /// Sets the number of links that an adapter's controller can have; it refuses connectable advertisements beyond it.
    public func limitLinks(to count: Int, _ name: String = "hci0") {
        adapter(name)?.limitLinks(to: count)
    }

    // MARK: Hearing

    /// Called when advertisements went on air or off.
    func advertisingChanged(_ adapter: UInt16) {
        adapters[adapter]?.advertisingChanged(at: loop.now())
        scheduleHearing()
    }

    /// Sets the timer to the next advertising event that a central may hear.
    func scheduleHearing() {
        centrals.schedule(nextAdvertisingEvent) { [weak self] in
            self?.assumeIsolated { $0.advertisingEvents() }
        }
    }

    private func nextAdvertisingEvent() -> BootInstant? {
        let now = loop.now()
        return adapters.all.filter { isUp($0.index) }.compactMap { $0.nextAdvertisingEvent(from: now) }.min()
    }

    private func advertisingEvents() {
        let now = loop.now()
        let events = adapters.all.map { ($0, $0.setsDue(at: now)) }
        for (adapter, sets) in events where isUp(adapter.index) {
            for (set, due) in sets {
                adapter.passEvent(of: set, due: due)
                let name = machine.withLock { $0.adapter(adapter.index)?.name ?? "" }
                let heard = HeardAdvertisement(set, of: adapter.address, adapter: name)
                for placed in centrals.inRange {
                    let connects = placed.central.assumeIsolated { $0.hear(heard) }
                    if connects { connect(placed, adapter, heard) }
                }
            }
        }
        scheduleHearing()
    }

    // MARK: Links of centrals

    private func connect(
        _ placed: PlacedCentrals.Placement, _ adapter: RadioAdapter, _ heard: HeardAdvertisement
    ) {
        // Another central may just have been faster.
        guard let rssi = placed.proximity.rssi, adapter.setsOnAir.contains(where: { $0.handle == heard.set })
        else { return }
        let ends: (Int32, Int32)
        do throws(SystemCallError) {
            ends = try LinkSocket.pair()
            try LinkSocket.reportArrivals(of: ends.1)
        } catch {
            return placed.central.assumeIsolated { $0.failToConnect(errno: error.errno) }
        }
        let (handle, actions) = adapter.centralConnects(
            placed.peer, by: heard.set, Self.centralParameters, rssi: rssi)
        let name = LinkName(adapter: adapter.index, handle: handle)
        let link = RadioLink(.central(placed.central), placed.peer, isAttached: true)
        links.begin(name, link)
        perform(actions, adapter.index)
        management.centralConnected(adapter.index, by: heard.set)
        perform(management.linkBegan(name, placed.peer) { nil })
        placed.central.assumeIsolated { central in
            central.begin(
                over: ends.0, heard,
                ending: { [weak self] reason in
                    self?.assumeIsolated { $0.end(name, reason, reporting: true) }
                },
                clientGone: { [weak self] in self?.assumeIsolated { $0.detach(name) } })
        }
        let waiting = RadioListeners.WaitingLink(
            name: name, peer: placed.peer, end: FarEnd(ends.1), fate: link.fate)
        // Without a listening socket, the other end is closed, which the central does not see.
        if !listeners.handOn(waiting, on: adapter.address) { detach(name) }
    }

    /// No socket has a central's link any more: the kernel ends it a little later.
    private func detach(_ name: LinkName) {
        links.setAttached(name, false)
        end(name, .localHostTerminated, after: Self.unattachedCentralTime)
    }

    // MARK: Listening sockets

    /// Listens for links to the adapter with this address, and returns the program's descriptor.
    func listen(on address: BluetoothAddress) -> Result<(descriptor: Int32, number: UInt64), SystemCallError> {
        do throws(TestLinkError) {
            let (announcements, other) = try PeerLink.open(on: loop)
            let number = newSocket()
            listeners.add(number, address, announcements)
            announcements.start(
                packet: { _ in }, ended: { [weak self] in self?.assumeIsolated { $0.listeners.remove(number) } })
            return .success((other, number))
        } catch {
            return .failure(SystemCallError(call: "socket", errno: EMFILE))
        }
    }

    /// Returns the next link that a listening socket accepts; `nil` if the one that was announced has ended.
    func nextLink(of number: UInt64) -> ListeningSocket.AnnouncedLink? {
        guard let link = listeners.next(of: number) else { return nil }
        let descriptor = link.end.take()
        links.connect(descriptor, to: link.name)
        let fate = link.fate
        return ListeningSocket.AnnouncedLink(
            descriptor: descriptor, peer: management.peer(of: link.name) ?? link.peer, handle: link.name.handle,
            reportedReason: { fate.withLock(\.self) })
    }

    /// A link that this machine has initiated by command goes to the listening socket as well, if there is one.
    func handOnInitiated(_ name: LinkName, _ peer: PeerID) {
        guard let own = adapters[name.adapter]?.address, listeners.isListening(on: own), let link = links[name] else {
            return
        }
        do throws(SystemCallError) {
            let (ours, theirs) = try LinkSocket.pair()
            _ = attach(name, FarEnd(theirs), ours, nil)
            listeners.handOn(.init(name: name, peer: peer, end: FarEnd(ours), fate: link.fate), on: own)
        } catch {
            return
        }
    }
}
