public import BLECore
internal import BLELinux
internal import Glibc

/// A link that is up and belongs to nobody at the moment: its descriptor, and all that must be known to go on with it.
///
/// `Peripheral.detach()` makes it and `Central.adopt(_:holding:)` takes it, in this program or in another one: the one that this
/// program executes (`passAcrossExec()`), or the next one that the service manager starts (`DescriptorStore`). What the
/// peer sends meanwhile waits in the kernel, which keeps some 200 packets.
///
/// The last reference going away closes the descriptor, which ends the link.
public final class DetachedLink: Sendable {
    let state: LinkState
    private let descriptor: Lock<Int32?>

    init(state: LinkState, socket: consuming LinkSocket) {
        self.state = state
        self.descriptor = Lock(socket.release())
    }

    /// Puts a link together from what `bytes` gave and the descriptor.
    ///
    /// The descriptor belongs to the link from now on, also when the call throws.
    ///
    /// - Throws: `BLEError` with `.unusableState` for bytes that are damaged or of another version; `.invalidArgument` for what is
    ///   no open descriptor.
    public init(bytes: [UInt8], descriptor: Int32) throws(BLEError) {
        guard LinkSocket.isOpen(descriptor) else {
            throw BLEError(
                .invalidArgument, subject: "descriptor \(descriptor)", during: "take a link over",
                because: "the descriptor is not open")
        }
        let socket = LinkSocket(adopting: descriptor)
        do throws(MalformedPacket) {
            state = try LinkState(bytes: bytes)
        } catch {
            throw BLEError(
                .unusableState, subject: "descriptor \(descriptor)", during: "take a link over", because: "\(error)",
                hint: "The link is closed; connect again.")
        }
        self.descriptor = Lock(socket.release())
    }

    deinit {
        if let descriptor = descriptor.withLock({ $0 }) { MemoryFile.close(descriptor) }
    }

    /// The peer's address; `nil` for a link without a radio.
    public var peer: PeerID? { state.peer }

    /// What messages call the link.
    public var name: String { state.name }

    /// The largest ATT packet that both sides agreed on.
    public var mtu: Int { Int(state.client.queue.mtu) }

    /// Whether a request was sent whose answer had not come. Whoever adopts the link sends nothing before that answer has
    /// come, and drops it.
    public var hasUnansweredRequest: Bool { state.client.queue.unanswered != nil }

    /// The handles of the values that the peer was asked to send, in ascending order.
    public var subscribedHandles: [AttributeHandle] { state.subscriptions.filter(\.isWanted).map(\.valueHandle) }

    /// What must be known to go on with the link, in a form to hand over: versioned, with a checksum.
    public var bytes: [UInt8] { state.bytes }

    /// The descriptor, which stays the link's; `nil` once it was given away.
    public var fileDescriptor: Int32? { descriptor.withLock { $0 } }

    /// Gives the descriptor away: the caller owns it.
    ///
    /// - Parameter acrossExec: Whether it is to be there in a program that this one executes.
    /// - Returns: `nil` when it was given away before.
    public func release(acrossExec: Bool = false) -> Int32? {
        guard let number = descriptor.withLock({ $0.take() }) else { return nil }
        LinkSocket.setLivesAcrossExec(acrossExec, number)
        return number
    }
}

// MARK: - Across exec

extension DetachedLink {
    /// Lets the link live on in a program that this one executes, which makes a `DetachedLink(passedAcrossExec:)` of the text.
    ///
    /// The text names two descriptors: the link's, and a file in memory with `bytes`. Give it as an argument, or in the environment.
    /// Both stay open in this program, whoever else it starts, and end with it.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` when the link was given away before, `.system`.
    public func passAcrossExec() throws(BLEError) -> String {
        let file = try memoryFile()
        guard let number = release(acrossExec: true) else {
            MemoryFile.close(file)
            throw givenAwayError(during: "pass a link on")
        }
        LinkSocket.setLivesAcrossExec(true, file)
        return "\(number),\(file)"
    }

    /// Takes a link over from the program that executed this one.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` for a text that names no open descriptors, and `.unusableState`.
    public convenience init(passedAcrossExec text: String) throws(BLEError) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Int32($0) }
        guard parts.count == 2, let number = parts[0], let file = parts[1], number != file,
            LinkSocket.livesAcrossExec(number), LinkSocket.livesAcrossExec(file)
        else {
            throw BLEError(
                .invalidArgument, subject: text, during: "take a link over",
                because: "it does not name two descriptors that were passed to this program")
        }
        try self.init(bytes: try Self.bytes(of: file), descriptor: number)
    }

    /// Copies `bytes` to a file in memory; its descriptor belongs to the caller.
    func memoryFile() throws(BLEError) -> Int32 {
        do {
            return try MemoryFile.make("bareble-link", holding: bytes)
        } catch {
            throw BLEError(
                .system, subject: name, during: "pass a link on", because: "\(error.call) failed",
                errorNumber: error.errno)
        }
    }

    /// What such a file holds; nothing, which no link can be made of, where it cannot be read. Closes it.
    static func bytes(of file: Int32) throws(BLEError) -> [UInt8] {
        (try? MemoryFile.take(file, limit: LinkState.byteLimit)) ?? []
    }

    func givenAwayError(during operation: String) -> BLEError {
        BLEError(
            .invalidArgument, subject: name, during: operation, because: "the link was adopted or given away before")
    }
}
