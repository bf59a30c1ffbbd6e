internal import BLECore
internal import BLELinux

/// Links that the service manager keeps from one run of the daemon to the next, so that a restart keeps the radio links.
///
/// systemd does that for a unit with `FileDescriptorStoreMax=` above 0: what a service puts there is held while the service is
/// restarted, and handed back as open descriptors. Each link takes two: its socket, and a file in memory that says how the
/// protocol stands.
///
/// ```swift
/// // At the end:
/// try await store.put(try await device.detach())
/// // At the next start:
/// for link in DescriptorStore.take().links { try await central.adopt(link) }
/// ```
public struct DescriptorStore: Hashable, Sendable {
    private static let prefix = "bareble."

    let notifier: ServiceNotifier

    /// The store of the manager that `notifier` talks to.
    public init(_ notifier: ServiceNotifier) {
        self.notifier = notifier
    }

    /// The name under which a link is stored: it says the peer.
    public static func name(of link: DetachedLink) -> String {
        let text = link.peer.map { "\($0)" } ?? link.name
        // The manager takes ASCII without colons and control characters, up to 255 bytes.
        let allowed = text.unicodeScalars.map { scalar in
            scalar.value > 0x20 && scalar.value < 0x7F && scalar != ":" ? Character(scalar) : "-"
        }
        return prefix + String(allowed.prefix(200))
    }

    /// Puts a link into the store, and waits until the manager has it. This process has it no more.
    ///
    /// - Returns: The name under which it is stored.
    /// - Throws: `BLEError` with `.invalidArgument` for a link that was given away before; `.busy`, `.notPermitted`, `.system` when the
    ///   manager could not be told; `.timedOut`, `.system` when nobody knows whether the manager has it. The link is still in the
    ///   caller's hands where its `fileDescriptor` is not `nil`.
    @discardableResult
    public func put(_ link: DetachedLink) async throws(BLEError) -> String {
        let name = try send(link)
        try await notifier.barrier()
        return name
    }

    /// Puts a link into the store, without knowing when the manager has it.
    func send(_ link: DetachedLink) throws(BLEError) -> String {
        let name = Self.name(of: link)
        guard let number = link.fileDescriptor else { throw link.givenAwayError(during: "store a link") }
        let file = try link.memoryFile()
        defer { MemoryFile.close(file) }
        // The manager adds to what it has under a name.
        try notifier.send(["FDSTOREREMOVE=1", "FDNAME=\(name)"])
        try notifier.send(["FDSTORE=1", "FDNAME=\(name)"], descriptors: [number, file])
        if let own = link.release() { MemoryFile.close(own) }
        return name
    }

    /// Removes what is stored under a name; the link ends with it, unless it was adopted.
    ///
    /// - Throws: `BLEError` as `ServiceNotifier.ready(status:)` does.
    public func remove(named name: String) throws(BLEError) {
        try notifier.send(["FDSTOREREMOVE=1", "FDNAME=\(name)"])
    }
}

// MARK: - At the next start

extension DescriptorStore {
    /// What the service manager has handed back.
    public struct Contents: Sendable {
        /// The links, in the order of their names.
        public fileprivate(set) var links: [DetachedLink] = []
        /// The names of those that could not be used, with the reason. They are closed.
        public fileprivate(set) var damaged: [String: BLEError] = [:]
        /// Descriptors of others, such as those of a socket unit. They are as they were.
        public fileprivate(set) var others: [ServiceEnvironment.Descriptor] = []
    }

    /// Takes the links that the manager has handed to this process. To be called once, at the start: a second call finds nothing.
    ///
    /// The manager keeps its own copies until they are removed (`remove(named:)`); a link does not end with this process as long as they are
    /// there.
    public static func take(from environment: ServiceEnvironment = .process) -> Contents {
        var contents = Contents()
        var pairs: [String: [Int32]] = [:]
        for descriptor in environment.descriptors {
            // Those that are closed on exec were opened by this program, or taken already.
            guard LinkSocket.livesAcrossExec(descriptor.number) else { continue }
            guard descriptor.name.hasPrefix(prefix) else {
                contents.others.append(descriptor)
                continue
            }
            LinkSocket.setLivesAcrossExec(false, descriptor.number)
            pairs[descriptor.name, default: []].append(descriptor.number)
        }
        for (name, numbers) in pairs.sorted(by: { $0.key < $1.key }) {
            do throws(BLEError) {
                contents.links.append(try link(of: numbers, named: name))
            } catch {
                contents.damaged[name] = error
            }
        }
        return contents
    }

    /// The manager hands descriptors back in an order of its own.
    private static func link(of numbers: [Int32], named name: String) throws(BLEError) -> DetachedLink {
        let files = numbers.filter { MemoryFile.isFile($0) }
        let sockets = numbers.filter { !MemoryFile.isFile($0) }
        guard let file = files.first, let socket = sockets.first, numbers.count == 2, files.count == 1 else {
            for number in numbers { MemoryFile.close(number) }
            throw BLEError(
                .unusableState, subject: name, during: "take a link from the service manager",
                because: "a socket and a file belong to a link, and \(sockets.count) and \(files.count) came",
                hint: "The link is closed; connect again.")
        }
        return try DetachedLink(bytes: DetachedLink.bytes(of: file), descriptor: socket)
    }
}
