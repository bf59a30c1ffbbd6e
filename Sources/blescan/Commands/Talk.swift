import ArgumentParser
import BLECore
import BareBLE
import Glibc

struct Talk: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Perform several operations on one link.",
        usage: "blescan talk <peer> [<operation> ...] [--file <file>] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan talk AA:BB:CC:DD:EE:FF
              blescan talk demo:uart 'notify nordic-uart-tx' \\
                  'write nordic-uart-rx --text hi' 'wait 1 --for 2s'
              blescan talk demo:battery 'read 2a19' 'read 2a00' --json
              blescan talk demo:uart < operations.txt

            Each argument, or each line of the file or of standard input, is an
            operation:

              read ATTRIBUTE ...                read values
              write ATTRIBUTE BYTES             also --text, --u8 … as in write,
                                                and --without-response
              notify ATTRIBUTE ... [--indications]
                                                print values as they come
              stop [ATTRIBUTE ...]              unsubscribe
              wait [N] [--for TIME]             wait for N values (1), or a time
              explore                           list the attributes, without values
              help                              explain the operations
              quit                              disconnect

            Words with blanks stand in quotes; lines that begin with # are comments.
            A wait counts the values that have come since the last one. The first
            operation that fails ends the command with its status; on a terminal, where
            a prompt asks for the operations, it goes on. At the prompt Tab completes
            operations and the attributes that they can be performed on, and the arrows
            bring earlier lines; values are printed above it. ^C drops the line, or
            cancels the operation under way; at an empty prompt it ends the command.
            """)

    @OptionGroup var target: PeerOptions

    @Argument(help: "The operations, each in quotes; without any, standard input.")
    var operation: [String] = []

    @Option(
        help: ArgumentHelp("Read the operations from this file; - is standard input.", valueName: "file"),
        completion: .file())
    var file: String?

    @OptionGroup var times: TimeOptions

    @OptionGroup var color: ColorOptions

    @OptionGroup var options: OperationOptions

    var peer: PeerDesignation { target.peer }

    func validate() throws {
        if file != nil, !operation.isEmpty { throw ValidationError("Give operations or --file, not both.") }
    }

    func run() async throws {
        let command = self
        // A mistake in a later operation is found before the first one is performed.
        let operations = try operations()
        let peer = try await Connection.find(target.peer, options.connection)
        try await Connection.run(with: peer, options, changesPeer: true) { peripheral in
            let database = try await peripheral.discover(timeout: command.options.timeout?.duration)
            Console.progress.end()
            let output = LineOutput()
            let session = TalkSession(
                ValueReader(
                    peripheral: peripheral, peer: peer, timeout: command.options.valueTimeout,
                    isPaired: command.options.pair, findsTypes: false),
                OperationOutput(
                    peer: peer.description, form: command.options.json ? .json : .plain, look: command.color.look,
                    namesOperations: true, columns: { Console.resultWidth }),
                to: output)
            let result = await Result.of {
                try await withTaskCancellationHandler {
                    try await command.perform(operations, session, peripheral, of: peer, database)
                } onCancel: {
                    output.giveUp()
                }
            }
            await session.end()
            try result.get()
        }
    }

    /// Returns the operations of the arguments or of the file; `nil` for those of standard input.
    private func operations() throws -> [TalkOperation]? {
        if let file, file != "-" { return try OperationFile(file).operations() }
        guard !operation.isEmpty else { return nil }
        do {
            return try operation.compactMap { line throws(Failure) in try TalkOperation(line) }
        } catch let failure as Failure {
            // One operation whose words the shell has taken apart.
            let joined = operation.joined(separator: " ")
            guard operation.count > 1, !operation.contains(where: { $0.contains(where: \.isWhitespace) }),
                (try? TalkOperation(joined)) != nil
            else { throw failure }
            throw Failure(
                message: failure.message,
                hint: "Put each operation in quotes: `blescan talk … \(TalkWords.quoted(joined))`.", status: .usage)
        }
    }

    /// Performs the operations until the link ends.
    private func perform(
        _ operations: [TalkOperation]?, _ session: TalkSession, _ peripheral: Peripheral, of peer: PeerArgument,
        _ database: GATTDatabase
    ) async throws {
        let command = self
        try await withThrowingTaskGroup(of: DisconnectReason??.self) { group in
            group.addTask {
                guard let operations else {
                    try await command.converse(session, with: peer, database)
                    return .none
                }
                for operation in operations where try await !session.perform(operation) { break }
                return .none
            }
            // Between operations nothing else would notice it.
            group.addTask { .some(await peripheral.disconnected()) }
            let first = try await group.next() ?? .none
            group.cancelAll()
            guard case .some(let reason) = first else { return }
            try Task.checkCancellation()
            // The error of the operation that it has ended has more detail.
            do {
                _ = try await group.next()
            } catch let error as BLEError where error.code == .disconnected {
                throw error
            } catch let error as FailureAfterOthers where error.last.code == .disconnected {
                throw error
            } catch {}
            throw BLEError(
                .disconnected, subject: peer.description, during: "keep the link",
                because: reason.map { "\($0)" } ?? "it has ended", hint: "Connect again.", origin: reason?.origin)
        }
    }

    /// Performs the operations of standard input.
    private func converse(_ session: TalkSession, with peer: PeerArgument, _ database: GATTDatabase) async throws {
        let isInteractive = isatty(STDIN_FILENO) == 1
        if isInteractive { Console.note("connected to \(peer); `help` explains the operations, `quit` ends") }
        let mark = "\(peer)> ".printable
        let prompt = Prompt.begin(PromptLine(mark) { TalkOperation.completions(after: $0, in: database) })
        defer { prompt?.end() }
        let input = LineInput()
        var number = 0
        while true {
            let line: InputLine?
            if let prompt {
                line = await prompt.next()
            } else {
                if isInteractive { _ = Console.write(Array(mark.utf8), to: STDERR_FILENO) }
                line = await input.next()
                if isInteractive, line == nil { _ = Console.write([0x0A], to: STDERR_FILENO) }
            }
            guard let line else { break }
            number += 1
            do {
                // The user who types a line needs no number to find it.
                let parsed = try isInteractive ? Self.parsed(line) : Self.parsed(line, at: "line \(number)")
                guard let operation = parsed else { continue }
                guard let prompt else {
                    guard try await session.perform(operation) else { return }
                    continue
                }
                guard try await prompt.performing({ try await session.perform(operation) }) else { return }
            } catch {
                let isInterrupted = prompt?.isInterrupted == true && Failure.isInterruption(error)
                guard isInteractive, !Task.isCancelled, isInterrupted || Failure.isOfOneOperation(error) else {
                    throw error
                }
                if isInterrupted {
                    Console.report(Failure(message: "interrupted", status: .interrupted))
                } else {
                    Console.report((error as? BLEError)?.named(as: peer) ?? error)
                }
            }
        }
        try Task.checkCancellation()
    }

    /// Parses a line of standard input; `nil` for an empty one and a comment.
    private static func parsed(_ line: InputLine) throws(Failure) -> TalkOperation? {
        guard let operation = try TalkOperation(line) else { return nil }
        guard operation.readsStandardInput else { return operation }
        throw Failure(
            message: "standard input has the operations, and cannot be the value of one",
            hint: "Name a file, or give the operations as arguments.", status: .usage)
    }

    /// Does the same for a line that nobody types, whose place is named by a failure.
    private static func parsed(_ line: InputLine, at place: String) throws(Failure) -> TalkOperation? {
        do throws(Failure) {
            return try parsed(line)
        } catch {
            throw error.at(place)
        }
    }
}

extension Failure {
    /// Returns the same failure, with the place of the line that it concerns.
    fileprivate func at(_ place: String) -> Failure {
        Failure(message: "\(place): \(message)", hint: hint, status: status)
    }
}

/// The lines of a file of operations.
private struct OperationFile {
    private let path: String
    private let lines: [InputLine]

    /// Returns the operations.
    ///
    /// - Throws: `Failure` for an invalid line, with its number.
    func operations() throws(Failure) -> [TalkOperation] {
        var operations: [TalkOperation] = []
        for (index, line) in lines.enumerated() {
            do throws(Failure) {
                if let operation = try TalkOperation(line) { operations.append(operation) }
            } catch {
                throw error.at("\(path), line \(index + 1)")
            }
        }
        return operations
    }

    init(_ path: String) throws {
        var input = try InputLines(path: path, advice: "Check the path.")
        var lines: [InputLine] = []
        while let line = input.next() { lines.append(line) }
        if let failure = input.failure { throw failure }
        self.path = path
        self.lines = lines
    }
}
