internal import ArgumentParser
internal import BLECore
internal import BareBLE
internal import Glibc

struct Write: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write one value.",
        usage: """
            blescan write <peer> <attribute> (--hex <bytes> | --text <text> |
            --u8|--u16|--u32|--i8|--i16|--i32 <number> | --file <path>) [<options>]
            """,
        discussion: """
            EXAMPLES
              sudo blescan write AA:BB:CC:DD:EE:FF fff1 --hex 05a0
              sudo blescan write AA:BB:CC:DD:EE:FF 0x0025 --text hello --without-response
              blescan write demo:uart 6e400002-b5a3-f393-e0a9-e50e24dcca9e --u8 7
            """)

    @Argument(
        help: "The peer: AA:BB:CC:DD:EE:FF[/random|/public], unix:PATH or demo:NAME.",
        transform: PeerArgument.init(argument:))
    var peer: PeerArgument

    @Argument(
        help: "What to write: a UUID, a name, or a handle such as 0x0022.",
        transform: AttributeArgument.init(argument:))
    var attribute: AttributeArgument

    @OptionGroup var value: ValueOptions

    @Flag(help: "Do not request a response; at most MTU - 3 bytes.")
    var withoutResponse = false

    @OptionGroup var options: ConnectionOptions

    func run() async throws {
        let (bytes, command) = (try value.bytes(), self)
        let kind: WriteKind = withoutResponse ? .withoutResponse : .withResponse
        let (handle, uuid) = try await Connection.run(with: peer, options) { peripheral in
            if case .uuid = command.attribute.reference {
                try await peripheral.discover(level: .structure, timeout: command.options.timeout?.duration)
            }
            do throws(BLEError) {
                try await peripheral.write(
                    bytes, to: command.attribute.reference, kind, timeout: command.options.valueTimeout)
            } catch {
                throw await command.attribute.advised(error, peripheral)
            }
            let database = await peripheral.database
            let handle = command.attribute.reference.valueHandle(in: database)
            return (handle, handle.flatMap { database?.type(at: $0) })
        }
        if options.json {
            Console.out(
                JSONLine.object([
                    "v": 1, "peer": .string(peer.description), "attribute": .string(attribute.text),
                    "handle": handle.map { .integer(Int($0)) }, "uuid": uuid.map { .string($0.description) },
                    "name": uuid.flatMap(AssignedNumbers.name).map { .string($0) }, "written": .integer(bytes.count),
                    "hex": .string(Hex.encode(bytes)), "confirmed": .bool(!withoutResponse),
                ]).text)
        } else {
            let count = bytes.count.counted("byte")
            var target = attribute.text
            if case .uuid = attribute.reference, let handle { target += " (\(CharacteristicReference.handle(handle)))" }
            Console.out(
                withoutResponse ? "sent \(count) to \(target), no response expected" : "wrote \(count) to \(target)")
        }
    }
}

/// The forms of a value; exactly one of them must be given.
struct ValueOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The bytes: 05a0, 05:a0 or 05 a0.", valueName: "bytes"))
    var hex: String?
    @Option(parsing: .unconditional, help: ArgumentHelp("UTF-8 text.", valueName: "text"))
    var text: String?
    @Option(
        name: .customLong("u8"), parsing: .unconditional,
        help: ArgumentHelp("A number in one byte.", valueName: "number"),
        transform: NumberArgument.parse)
    var unsigned8: UInt8?
    @Option(
        name: .customLong("u16"), parsing: .unconditional,
        help: ArgumentHelp("A number in two bytes, low byte first.", valueName: "number"),
        transform: NumberArgument.parse)
    var unsigned16: UInt16?
    @Option(
        name: .customLong("u32"), parsing: .unconditional,
        help: ArgumentHelp("A number in four bytes, low byte first.", valueName: "number"),
        transform: NumberArgument.parse)
    var unsigned32: UInt32?
    @Option(
        name: .customLong("i8"), parsing: .unconditional,
        help: ArgumentHelp("A signed number in one byte.", valueName: "number"),
        transform: NumberArgument.parse)
    var signed8: Int8?
    @Option(
        name: .customLong("i16"), parsing: .unconditional,
        help: ArgumentHelp("A signed number in two bytes, low byte first.", valueName: "number"),
        transform: NumberArgument.parse)
    var signed16: Int16?
    @Option(
        name: .customLong("i32"), parsing: .unconditional,
        help: ArgumentHelp("A signed number in four bytes, low byte first.", valueName: "number"),
        transform: NumberArgument.parse)
    var signed32: Int32?
    @Option(help: ArgumentHelp("A file whose bytes are the value; - is standard input.", valueName: "path"))
    var file: String?

    func validate() throws {
        let given: [Bool] = [
            hex != nil, text != nil, unsigned8 != nil, unsigned16 != nil, unsigned32 != nil, signed8 != nil,
            signed16 != nil, signed32 != nil, file != nil,
        ]
        guard given.filter(\.self).count == 1 else {
            throw ValidationError(
                "Give the value in exactly one form: --hex, --text, --u8, --u16, --u32, --i8, --i16, --i32 or --file.")
        }
        if let hex { _ = try Self.decode(hex) }
        guard file == nil else { return }
        guard try bytes().count <= 512 else { throw ValidationError("An attribute's value has at most 512 bytes.") }
    }

    func bytes() throws -> [UInt8] {
        if let hex { return try Self.decode(hex) }
        if let text { return Array(text.utf8) }
        if let file { return try FileBytes.read(file, atMost: 512) }
        if let number = unsigned8 { return Self.littleEndian(number) }
        if let number = unsigned16 { return Self.littleEndian(number) }
        if let number = unsigned32 { return Self.littleEndian(number) }
        if let number = signed8 { return Self.littleEndian(number) }
        if let number = signed16 { return Self.littleEndian(number) }
        return Self.littleEndian(signed32 ?? 0)
    }

    private static func decode(_ hex: String) throws -> [UInt8] {
        do throws(Hex.ParsingError) {
            return try Hex.decode(hex.dropped(prefix: "0x") ?? hex)
        } catch {
            switch error {
            case .invalidCharacter(let offset):
                throw ValidationError(
                    "--hex: \(hex.sign(atByte: offset + (hex.hasPrefix("0x") ? 2 : 0))) is not a hex digit.")
            case .oddNumberOfDigits:
                throw ValidationError("--hex has an odd number of digits; each byte takes two.")
            }
        }
    }

    private static func littleEndian<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        (0..<Number.bitWidth / 8).map { UInt8(truncatingIfNeeded: number >> Number($0 * 8)) }
    }
}

/// Small files as bytes.
enum FileBytes {
    /// Returns the bytes of the file, or of the pipe, at `path`.
    ///
    /// - Throws: `Failure` if it cannot be read or has more than `limit` bytes.
    static func read(_ path: String, atMost limit: Int) throws(Failure) -> [UInt8] {
        let file = try InputFile(path, advice: "Check the path.")
        let name = InputFile.name(of: path)
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(file.descriptor, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure(cannot: "read", name, for: .reading, errno: errno) }
            if count == 0 { return bytes }
            bytes += chunk.prefix(count)
            guard bytes.count <= limit else {
                throw Failure(
                    message: "\(name) has more than \(limit) bytes", hint: "Give a smaller file.", status: .usage)
            }
        }
    }
}
