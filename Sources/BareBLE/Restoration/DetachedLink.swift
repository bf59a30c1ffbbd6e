public import BLECore
internal import BLELinux
internal import Glibc

/// A link that is up and has no owner at the moment: its descriptor, and the state needed to resume it.
///
/// `Peripheral.detach()` creates it and `Central.adopt(_:holding:)` takes it, in this program or in another one: the
/// one that this program executes (`passAcrossExec()`), or the next one that the service manager starts
/// (`DescriptorStore`). Meanwhile the kernel queues what the peer sends, until the socket's buffer is full.
///
/// The end of the last reference closes the descriptor, which ends the link.
public final class DetachedLink: Sendable {
    let state: LinkState
    private let descriptor: Lock<Int32?>

    init(state: LinkState, socket: consuming LinkSocket) {
        self.state = state
        self.descriptor = Lock(socket.release())
    }

    /// Creates a link from its `bytes` and its descriptor.
    ///
    /// The descriptor belongs to the link from now on, even if the call throws.
    ///
    /// - Throws: `BLEError` with `.unusableState` for bytes that are damaged or of another version; `.invalidArgument`
    ///   if the descriptor is not open.
    public init(bytes: [UInt8], descriptor: Int32) throws(BLEError) {
        guard LinkSocket.isOpen(descriptor) else {
            throw BLEError(
                .invalidArgument, subject: "descriptor \(descriptor)", during: "take over a link",
                because: "the descriptor is not open",
                hint: "Pass the descriptor on before it is closed, and create one link from it.")
        }
        let socket = LinkSocket(adopting: descriptor)
        do throws(MalformedPacket) {
            state = try LinkState(bytes: bytes)
        } catch {
            throw BLEError(
                .unusableState, subject: "descriptor \(descriptor)", during: "take over a link", because: "\(error)",
                hint: "The link is closed; connect again.")
        }
        self.descriptor = Lock(socket.release())
    }

    deinit {
        if let descriptor = descriptor.withLock({ $0 }) { MemoryFile.close(descriptor) }
    }

    /// The peer's address; `nil` for a link without a radio.
    public var peer: PeerID? { state.peer }

    /// The link's name in messages.
    public var name: String { state.name }

    /// The agreed ATT MTU, in bytes.
    public var mtu: Int { Int(state.client.queue.mtu) }

    /// A Boolean value that indicates whether the response to a sent request had not come. The next owner sends
    /// nothing before that response, and discards it.
    public var hasPendingRequest: Bool { state.client.queue.unanswered != nil }

    /// The former name of `hasPendingRequest`.
    @available(*, deprecated, renamed: "hasPendingRequest")
    public var hasUnansweredRequest: Bool { hasPendingRequest }

    /// The handles of the values that the peer was asked to send, in ascending order.
    public var subscribedHandles: [AttributeHandle] { state.subscriptions.filter(\.isWanted).map(\.valueHandle) }

    /// The state needed to resume the link, in a versioned form with a checksum.
    public var bytes: [UInt8] { state.bytes }

    /// The descriptor, which stays the link's; `nil` after it was released.
    public var fileDescriptor: Int32? { descriptor.withLock { $0 } }

    /// Releases the descriptor: the caller owns it.
    ///
    /// - Parameter acrossExec: Whether the descriptor stays open in a program that this one executes.
    /// - Returns: The descriptor; `nil` if it was released before.
    public func release(acrossExec: Bool = false) -> Int32? {
        guard let number = descriptor.withLock({ $0.take() }) else { return nil }
        LinkSocket.setLivesAcrossExec(acrossExec, number)
        return number
    }
}

// MARK: - Across exec

extension DetachedLink {
    /// Passes the link to a program that this one executes, which creates a `DetachedLink(passedAcrossExec:)` from the
    /// text.
    ///
    /// The text names two descriptors: the link's, and a file in memory with `bytes`. Pass it as an argument or in the
    /// environment. Both descriptors stay open in this program and in every program that it starts.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` if the link was released before, `.system`.
    public func passAcrossExec() throws(BLEError) -> String {
        let file = try memoryFile()
        guard let number = release(acrossExec: true) else {
            MemoryFile.close(file)
            throw givenAwayError(during: "pass a link on")
        }
        LinkSocket.setLivesAcrossExec(true, file)
        return "\(number),\(file)"
    }

    /// Creates a link from the text of the program that executed this one.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` for a text that names no open descriptors, and `.unusableState`.
    public convenience init(passedAcrossExec text: String) throws(BLEError) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Int32($0) }
        guard parts.count == 2, let number = parts[0], let file = parts[1], number != file,
            LinkSocket.livesAcrossExec(number), LinkSocket.livesAcrossExec(file)
        else {
            throw BLEError(
                .invalidArgument, subject: text, during: "take over a link",
                because: "it does not name two descriptors that were passed to this program",
                hint: "Pass the result of `passAcrossExec()` unchanged, and create one link from it.")
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
                hint: "The link is still up. Close descriptors or allow more (`ulimit -n`), and try again.",
                errorNumber: error.errno)
        }
    }

    /// Returns the contents of such a file and closes it; empty, which no link can be created from, if it cannot be
    /// read.
    static func bytes(of file: Int32) throws(BLEError) -> [UInt8] {
        (try? MemoryFile.take(file, limit: LinkState.byteLimit)) ?? []
    }

    func givenAwayError(during operation: String) -> BLEError {
        BLEError(
            .invalidArgument, subject: name, during: operation, because: "the link was adopted or released before",
            hint: "Use the peripheral that adopted it, or connect again.")
    }
}
