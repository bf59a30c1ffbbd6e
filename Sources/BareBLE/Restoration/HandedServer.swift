internal import BLECore
internal import BLELinux
internal import Logging

// What the run before has left to the service manager for the peripheral role: the sockets on which links are accepted,
// and the links of centrals.
//
// Invariants
// - Only the event loop's thread uses it.
// - A descriptor belongs to this object until it is taken. What is never taken is closed with it.
// - The manager's copy of a link is removed once the link is taken: it would keep the link up after its end here. Until
//   then the copy is there for the next run.

/// The listening sockets and links of centrals that the run before has handed over.
// Unchecked: only the loop's thread touches its state.
final class HandedServer: @unchecked Sendable {
    /// A listening socket.
    private struct Listener {
        let name: String
        let descriptor: Int32
        let address: ListeningAddress
    }

    /// A link of a central. The descriptor is that of the one who takes it.
    struct Link {
        let name: String
        let descriptor: Int32
        let state: ServedLinkState
    }

    private let store: DescriptorStore?
    private let loop: EventLoop
    private let logger: Logger
    private var listeners: [Listener] = []
    private var links: [Link] = []
    /// What could not be used, by name.
    private(set) var damaged: [String: BLEError] = [:]

    /// Takes what the manager has passed to this process.
    init(from environment: ServiceEnvironment, on loop: EventLoop, logger: Logger) {
        store = ServiceNotifier(environment).map { DescriptorStore($0) }
        self.loop = loop
        self.logger = logger
        let prefixes = [DescriptorStore.listenerPrefix, DescriptorStore.centralPrefix]
        for (name, numbers) in DescriptorStore.descriptors(of: prefixes, from: environment) {
            do throws(BLEError) {
                if name.hasPrefix(DescriptorStore.listenerPrefix) {
                    listeners.append(try Self.listener(of: numbers, named: name))
                } else {
                    links.append(try Self.link(of: numbers, named: name))
                }
            } catch {
                damaged[name] = error
            }
        }
    }

    deinit {
        for listener in listeners { MemoryFile.close(listener.descriptor) }
        for link in links { MemoryFile.close(link.descriptor) }
    }

    /// The names of the peers of the links.
    var linkNames: [String] { links.map(\.state.link.name) }

    private static func listener(of numbers: [Int32], named name: String) throws(BLEError) -> Listener {
        do throws(SystemCallError) {
            guard let number = numbers.first, numbers.count == 1 else {
                throw SystemCallError(call: "getsockname", errno: 0)
            }
            return Listener(name: name, descriptor: number, address: try ListeningAddress(of: number))
        } catch {
            for number in numbers { MemoryFile.close(number) }
            throw BLEError(
                .unusableState, subject: name, during: "take a socket from the service manager",
                because: "it is not one socket that accepts links",
                hint: "It is closed; links are accepted on a new one.", errorNumber: error.errno)
        }
    }

    private static func link(of numbers: [Int32], named name: String) throws(BLEError) -> Link {
        let operation = "take a link from the service manager"
        let (socket, file) = try DescriptorStore.pair(numbers, named: name, during: operation)
        do {
            let bytes = try MemoryFile.take(file, limit: ServedLinkState.byteLimit)
            return Link(name: name, descriptor: socket, state: try ServedLinkState(bytes: bytes))
        } catch {
            MemoryFile.close(socket)
            throw BLEError(
                .unusableState, subject: name, during: operation, because: "\(error)",
                hint: "The link is closed; the central connects again by itself.")
        }
    }

    // MARK: Taking

    /// Returns the descriptor of the socket that listens at an address, which is the caller's from now on; `nil` if
    /// there is none.
    func takeListener(at address: ListeningAddress) -> Int32? {
        guard let index = listeners.firstIndex(where: { $0.address == address }) else { return nil }
        let listener = listeners.remove(at: index)
        removeCopy(named: listener.name)
        return listener.descriptor
    }

    /// Returns the links over a radio, or the others; their descriptors are the caller's from now on.
    func takeLinks(overRadio: Bool) -> [Link] {
        let taken = links.filter { ($0.state.link.peer != nil) == overRadio }
        links.removeAll { ($0.state.link.peer != nil) == overRadio }
        for link in taken { removeCopy(named: link.name) }
        return taken
    }

    /// Closes what was not taken, and has the manager do so.
    func drop() {
        for listener in listeners {
            MemoryFile.close(listener.descriptor)
            removeCopy(named: listener.name)
        }
        for link in links {
            MemoryFile.close(link.descriptor)
            removeCopy(named: link.name)
        }
        (listeners, links) = ([], [])
    }

    /// Has the manager close its copies of what could not be used.
    func removeDamaged() {
        for name in damaged.keys.sorted() { removeCopy(named: name) }
    }

    private func removeCopy(named name: String) {
        guard let store else { return }
        Task(executorPreference: loop) { [logger] in
            do throws(BLEError) {
                try await store.removeSoon(named: name)
            } catch {
                logger.warning(
                    "the service manager keeps a copy", metadata: ["name": "\(name)", "reason": "\(error)"])
            }
        }
    }
}

// MARK: - Handing over

extension HandedServer {
    /// Something to hand over. Its descriptors are closed when the manager has them, and when it does not take them.
    struct Item {
        let name: String
        /// The name of the central, or of the socket.
        let subject: String
        let descriptors: [Int32]
    }

    /// A socket on which links are accepted; `nil` for that of a simulated radio, which is closed.
    static func item(ofListener descriptor: Int32) -> Item? {
        let text: String
        switch try? ListeningAddress(of: descriptor) {
        case .attributeChannel(let own)?: text = "\(own)"
        case .unix(let path)?: text = path
        case nil:
            MemoryFile.close(descriptor)
            return nil
        }
        return Item(
            name: DescriptorStore.name(DescriptorStore.listenerPrefix, text), subject: text, descriptors: [descriptor])
    }

    /// The link of a central. The number distinguishes links of the same name.
    static func item(
        of link: DetachedLink, _ server: GATTServer.Remains, _ outline: ServerOutline, number: UInt64
    ) throws(BLEError) -> Item {
        let state = ServedLinkState(link: link.state, server: server, outline: outline)
        let file: Int32
        do {
            file = try MemoryFile.make("bareble-central", holding: state.bytes)
        } catch {
            throw BLEError(
                .system, subject: link.name, during: "hand a link over", because: "\(error.call) failed",
                hint: "Allow more descriptors (`ulimit -n`); the central connects again by itself.",
                errorNumber: error.errno)
        }
        guard let socket = link.release() else {
            MemoryFile.close(file)
            throw link.givenAwayError(during: "hand a link over")
        }
        return Item(
            name: DescriptorStore.name(DescriptorStore.centralPrefix, "\(number).\(link.name)"), subject: link.name,
            descriptors: [socket, file])
    }

    /// Stores items with the manager, and waits until it has them. Those that it does not take are closed, logged and
    /// returned by their subjects; so are all others if it does not confirm that it has them.
    static func put(_ items: [Item], in store: DescriptorStore, logger: Logger) async -> [String: BLEError] {
        var sent: [String] = []
        var lost: [String: BLEError] = [:]
        for item in items {
            defer { for descriptor in item.descriptors { MemoryFile.close(descriptor) } }
            do throws(BLEError) {
                try await store.put(item.descriptors, named: item.name)
                sent.append(item.subject)
            } catch {
                logger.notice("not handed over", metadata: ["name": "\(item.name)", "reason": "\(error)"])
                lost[item.subject] = error
            }
        }
        guard !sent.isEmpty else { return lost }
        do throws(BLEError) {
            try await store.notifier.barrier()
        } catch {
            logger.notice("the service manager does not respond", metadata: ["reason": "\(error)"])
            for subject in sent { lost[subject] = error }
        }
        return lost
    }
}
