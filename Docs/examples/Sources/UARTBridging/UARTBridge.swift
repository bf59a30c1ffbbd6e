internal import BLEProfiles
public import BareBLE
public import ServiceLifecycle

/// Makes a serial port of a peripheral that has the Nordic UART Service: what is written to the terminal goes to the peer, and what
/// the peer sends can be read from the terminal.
///
/// Both directions have a flow control from end to end. Bytes for the peer stay in the terminal until the kernel has taken those
/// before them, and while there is no link; bytes from the peer wait in the session's bounded buffer while nobody reads the terminal.
/// What is lost all the same, because the link went or the buffer was full, is said with `report`.
public struct UARTBridge: Service, CustomStringConvertible {
    private let session: Session
    private let link: String
    private let report: @Sendable (String) -> Void

    /// A bridge to the peer of this session, whose terminal programs find at `link`.
    public init(_ session: Session, linkedAt link: String, report: @escaping @Sendable (String) -> Void) {
        self.session = session
        self.link = link
        self.report = report
    }

    /// What the log calls the service.
    public var description: String { "UART bridge" }

    /// Carries bytes until the daemon is told to stop; then the peer is told to be quiet, and link and terminal go away.
    ///
    /// - Throws: `BLEError` with what the session gave up with, or the peer refused; `TerminalError`.
    public func run() async throws {
        do {
            let terminal = try PseudoTerminal(linkedAt: link)
            defer { terminal.removeLink() }
            let values = await session.values(of: .nordicUARTTransmit)
            report("terminal \(terminal.path)")
            try await cancelWhenGracefulShutdown { try await carry(values, terminal) }
            await values.unsubscribe()
        } catch {
            await session.disconnect()
            throw error
        }
        await session.disconnect()
    }

    /// Both directions; the end of one is the end of the other.
    private func carry(_ values: SessionValues<[UInt8]>, _ terminal: PseudoTerminal) async throws {
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await carryToTerminal(values, terminal) }
                group.addTask { try await carryToPeer(terminal) }
                _ = try await group.next()
                group.cancelAll()
            }
        } catch {
            // Whatever fails because the task was cancelled is the end that was asked for.
            if !Task.isCancelled { throw error }
        }
    }

    private func carryToTerminal(_ values: SessionValues<[UInt8]>, _ terminal: PseudoTerminal) async throws {
        var changes = values.makeAsyncIterator()
        while let change = try await changes.next() {
            switch change {
            case .began:
                report("began")
            case .value(let bytes):
                if changes.droppedBefore > 0 { report("lost \(changes.droppedBefore) values: the terminal was full") }
                try await terminal.write(bytes)
            case .interrupted(let error):
                report("interrupted, what was on the way is lost: \(error)")
            }
        }
    }

    private func carryToPeer(_ terminal: PseudoTerminal) async throws {
        var waiting: [UInt8] = []
        while true {
            // Another link may have another MTU.
            let peer = try await session.ready()
            let length = await peer.maximumWriteLength(for: .withoutResponse)
            if waiting.isEmpty { waiting = try await terminal.read(upTo: length) }
            let piece = Array(waiting.prefix(length))
            do {
                // Returns when the kernel has taken the piece: only then the next one is read.
                try await peer.write(piece, to: .nordicUARTReceive, .withoutResponse)
                waiting.removeFirst(piece.count)
            } catch {
                // A lost link has not taken it: it goes over the next one.
                guard error.code == .disconnected else { throw error }
            }
        }
    }
}
