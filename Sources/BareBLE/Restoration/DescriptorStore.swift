internal import BLECore
internal import BLELinux

/// Links that the service manager keeps between runs of the daemon, so that they stay up during a restart.
///
/// systemd offers this to a unit with `FileDescriptorStoreMax=` above 0: it holds the descriptors that a service
/// stores while the service is restarted, and passes them to the next process. Each link needs two: its socket, and a
/// file in memory with the protocol's state.
///
/// ```swift
/// // At the end:
/// try await store.put(try await device.detach())
/// // At the next start:
/// for link in DescriptorStore.take().links { try await central.adopt(link) }
/// ```
public struct DescriptorStore: Hashable, Sendable {
    private static let prefix = "bareble."
    /// What `LocalPeripheral` hands over: the sockets on which links are accepted, and the links of centrals.
    static let listenerPrefix = "bareble-listener."
    static let centralPrefix = "bareble-central."
    private static let ownPrefixes = [prefix, listenerPrefix, centralPrefix]

    let notifier: ServiceNotifier

    /// Creates the store of the manager that `notifier` talks to.
    public init(_ notifier: ServiceNotifier) {
        self.notifier = notifier
    }

    /// Returns the name under which a link is stored, which contains the peer.
    public static func name(of link: DetachedLink) -> String {
        name(prefix, link.peer.map { "\($0)" } ?? link.name)
    }

    static func name(_ prefix: String, _ text: String) -> String {
        // The manager accepts ASCII without colons and control characters, up to 255 bytes.
        let allowed = text.unicodeScalars.map { scalar in
            scalar.value > 0x20 && scalar.value < 0x7F && scalar != ":" ? Character(scalar) : "-"
        }
        return prefix + String(allowed.prefix(200))
    }

    /// Puts a link into the store, and waits until the manager has it. This process no longer owns it.
    ///
    /// - Returns: The name under which it is stored.
    /// - Throws: `BLEError` with `.invalidArgument` for a link that was released before; `.busy`, `.notPermitted`,
    ///   `.system` if the message could not be sent; `.timedOut`, `.system` if it is unknown whether the manager has
    ///   the link. The caller still owns the link if its `fileDescriptor` is not `nil`.
    @discardableResult
    public func put(_ link: DetachedLink) async throws(BLEError) -> String {
        let name = try send(link)
        try await notifier.barrier()
        return name
    }

    /// Puts a link into the store without waiting for the manager.
    func send(_ link: DetachedLink) throws(BLEError) -> String {
        let name = Self.name(of: link)
        guard let number = link.fileDescriptor else { throw link.givenAwayError(during: "store a link") }
        let file = try link.memoryFile()
        defer { MemoryFile.close(file) }
        // The manager adds to the descriptors that it has under a name.
        try notifier.send(["FDSTOREREMOVE=1", "FDNAME=\(name)"])
        try notifier.send(["FDSTORE=1", "FDNAME=\(name)"], descriptors: [number, file])
        if let own = link.release() { MemoryFile.close(own) }
        return name
    }

    /// Stores descriptors in place of what has this name, without waiting for the manager, unless it accepts no
    /// messages now. The caller still owns them.
    func put(_ descriptors: [Int32], named name: String) async throws(BLEError) {
        try await removeSoon(named: name)
        try await sendSoon(["FDSTORE=1", "FDNAME=\(name)"], descriptors)
    }

    /// Removes what has this name, once the manager accepts messages.
    func removeSoon(named name: String) async throws(BLEError) {
        try await sendSoon(["FDSTOREREMOVE=1", "FDNAME=\(name)"])
    }

    private func sendSoon(_ lines: [String], _ descriptors: [Int32] = []) async throws(BLEError) {
        do throws(BLEError) {
            try notifier.send(lines, descriptors: descriptors)
        } catch {
            guard error.code == .busy else { throw error }
            // Once it has read those in the queue it accepts more, unless it hangs.
            try await notifier.barrier()
            try notifier.send(lines, descriptors: descriptors)
        }
    }

    /// Removes the link with this name; the link ends, unless it was adopted.
    ///
    /// - Throws: `BLEError` as `ServiceNotifier.ready(status:)` does.
    public func remove(named name: String) throws(BLEError) {
        try notifier.send(["FDSTOREREMOVE=1", "FDNAME=\(name)"])
    }
}

// MARK: - At the next start

extension DescriptorStore {
    /// The descriptors that the service manager has passed back.
    public struct Contents: Sendable {
        /// The links, in the order of their names.
        public fileprivate(set) var links: [DetachedLink] = []
        /// The links that could not be used, by name, with the reason. They are closed.
        public fileprivate(set) var damaged: [String: BLEError] = [:]
        /// Descriptors of others, such as those of a socket unit; they are unchanged. What `LocalPeripheral` has handed
        /// over is not among them: `LocalPeripheral.restore(from:)` takes that.
        public fileprivate(set) var others: [ServiceEnvironment.Descriptor] = []
    }

    /// Takes the links that the manager has passed to this process. Call it once, at the start: a second call finds
    /// nothing.
    ///
    /// The manager keeps its own copies until they are removed (`remove(named:)`); while they exist, a link does not
    /// end with this process.
    public static func take(from environment: ServiceEnvironment = .process) -> Contents {
        var contents = Contents()
        contents.others = environment.descriptors.filter { descriptor in
            LinkSocket.livesAcrossExec(descriptor.number) && !ownPrefixes.contains(where: descriptor.name.hasPrefix)
        }
        let pairs = descriptors(of: [prefix], from: environment)
        for (name, numbers) in pairs {
            do throws(BLEError) {
                contents.links.append(try link(of: numbers, named: name))
            } catch {
                contents.damaged[name] = error
            }
        }
        return contents
    }

    private static func link(of numbers: [Int32], named name: String) throws(BLEError) -> DetachedLink {
        let (socket, file) = try pair(numbers, named: name, during: "take a link from the service manager")
        return try DetachedLink(bytes: DetachedLink.bytes(of: file), descriptor: socket)
    }

    /// Takes the descriptors whose names have one of these prefixes, ordered by name; those of one name together.
    static func descriptors(
        of prefixes: [String], from environment: ServiceEnvironment
    ) -> [(name: String, numbers: [Int32])] {
        var numbers: [String: [Int32]] = [:]
        for descriptor in environment.descriptors where prefixes.contains(where: descriptor.name.hasPrefix) {
            // Descriptors that are closed on exec were opened by this program, or already taken.
            guard LinkSocket.livesAcrossExec(descriptor.number) else { continue }
            LinkSocket.setLivesAcrossExec(false, descriptor.number)
            numbers[descriptor.name, default: []].append(descriptor.number)
        }
        return numbers.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Returns which of the descriptors of a link is its socket, and which its file: the manager passes them back in an
    /// arbitrary order. They are closed if they are something else.
    static func pair(
        _ numbers: [Int32], named name: String, during operation: String
    ) throws(BLEError) -> (socket: Int32, file: Int32) {
        let files = numbers.filter { MemoryFile.isFile($0) }
        let sockets = numbers.filter { !MemoryFile.isFile($0) }
        guard let file = files.first, let socket = sockets.first, numbers.count == 2, files.count == 1 else {
            for number in numbers { MemoryFile.close(number) }
            throw BLEError(
                .unusableState, subject: name, during: operation,
                because: "a socket and a file belong to a link, and \(sockets.count) and \(files.count) came",
                hint: "The link is closed; connect again.")
        }
        return (socket, file)
    }
}
