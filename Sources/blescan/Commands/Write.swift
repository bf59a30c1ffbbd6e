import ArgumentParser
import BLECore
import BareBLE

struct Write: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write one value.",
        usage: """
            blescan write <peer> <attribute> (--hex <bytes> | --text <text> |
            --u8|--u16|--u32|--u64|--i8|--i16|--i32|--i64|--f32|--f64 <number> |
            --file <path>) [<options>]
            """,
        discussion: """
            EXAMPLES
              sudo blescan write AA:BB:CC:DD:EE:FF fff1 --hex 05a0
              sudo blescan write AA:BB:CC:DD:EE:FF 0x0025 --u8 1 --without-response
              blescan write demo:uart nordic-uart-rx --text hello
            """)

    @OptionGroup var target: PeerOptions

    @Argument(
        help: "What to write: a UUID, a name, or a handle such as 0x0022.",
        completion: Completions.attribute,
        transform: AttributeArgument.init(argument:))
    var attribute: AttributeArgument

    @OptionGroup var value: ValueOptions

    @Flag(help: "Do not request a response; at most MTU - 3 bytes.")
    var withoutResponse = false

    @OptionGroup var color: ColorOptions

    @OptionGroup var options: OperationOptions

    var peer: PeerDesignation { target.peer }

    func run() async throws {
        let (bytes, command) = (try value.bytes(), self)
        let peer = try await Connection.find(target.peer, options.connection)
        let kind: Peripheral.WriteKind = withoutResponse ? .withoutResponse : .withResponse
        let (handle, uuid) = try await Connection.run(with: peer, options, changesPeer: true) { peripheral in
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
        Console.out(
            OperationOutput(
                peer: peer.description, form: options.json ? .json : .plain, look: color.look,
                columns: { Console.resultWidth }
            )
            .line(ofWriting: bytes, to: attribute, at: handle, uuid, kind))
    }
}
