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

    let notifier: ServiceNotifier

    /// Creates the store of the manager that `notifier` talks to.
    public init(_ notifier: ServiceNotifier) {
        self.notifier = notifier
    }

    /// Returns the name under which a link is stored, which contains the peer.
    public static func name(of link: DetachedLink) -> String {
        let text = link.peer.map { "\($0)" } ?? link.name
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
        /// Descriptors of others, such as those of a socket unit; they are unchanged.
        public fileprivate(set) var others: [ServiceEnvironment.Descriptor] = []
    }

    /// Takes the links that the manager has passed to this process. Call it once, at the start: a second call finds
    /// nothing.
    ///
    /// The manager keeps its own copies until they are removed (`remove(named:)`); while they exist, a link does not
    /// end with this process.
    public static func take(from environment: ServiceEnvironment = .process) -> Contents {
        var contents = Contents()
        var pairs: [String: [Int32]] = [:]
        for descriptor in environment.descriptors {
            // Descriptors that are closed on exec were opened by this program, or already taken.
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

    /// The manager passes descriptors back in an arbitrary order.
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
