import ArgumentParser
import BLECore
import BareBLE

struct Notify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print values as the peer sends them.",
        usage: "blescan notify <peer> <attribute> [--count <n>] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan notify AA:BB:CC:DD:EE:FF 2a37
              sudo blescan notify AA:BB:CC:DD:EE:FF 0x0012 --count 3 --json
              blescan notify demo:heart-rate heart-rate-measurement --for 5s
            """)

    @Argument(help: "The peer: AA:BB:CC:DD:EE:FF[/random|/public], unix:PATH or demo:NAME.")
    var peer: PeerArgument

    @Argument(
        help: "What to subscribe to: a UUID, a name, or a handle such as 0x0022.",
        transform: AttributeArgument.init(argument:))
    var attribute: AttributeArgument

    @Option(help: ArgumentHelp("End after so many values.", valueName: "n"))
    var count: Int?

    @Option(name: .customLong("for"), help: ArgumentHelp("End after this time: 10s, 500ms, 2m.", valueName: "time"))
    var duration: DurationArgument?

    @Flag(help: "Ask for indications where the characteristic has both.")
    var indications = false

    @OptionGroup var options: ConnectionOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count takes a number from 1.") }
    }

    func run() async throws {
        let command = self
        let (received, isInterrupted) = try await Connection.run(with: peer, options) { peripheral in
            let database = try await peripheral.discover(timeout: command.options.timeout?.duration)
            if case .handle(let handle) = command.attribute.reference {
                try command.expectValue(at: handle, in: database)
            }
            let values = try await peripheral.subscribe(
                to: command.attribute.reference,
                SubscribeOptions(
                    preferred: command.indications ? .indications : .notifications, capacity: 65_536,
                    timeout: command.options.valueTimeout))
            let uuid = await peripheral.database?.characteristic(valueHandle: values.handle)?.uuid
            let received = try await command.print(values, uuid: uuid)
            // After ^C the task is cancelled, but the peer is told to stop all the same.
            try await Task { try await values.unsubscribe() }.value
            Console.note("unsubscribed")
            return (received, Task.isCancelled)
        }
        if let count, received < count {
            if isInterrupted { throw CancellationError() }
            throw Failure(
                message:
                    "only \(received) of \(count.counted("value")) came. Allow more time with --for, or ask for fewer.",
                status: .timedOut)
        }
    }

    /// A descriptor's handle would mean its characteristic to the library, which is not what it says here.
    private func expectValue(at handle: AttributeHandle, in database: GATTDatabase) throws(Failure) {
        guard let characteristic = database.characteristic(containing: handle), characteristic.valueHandle != handle
        else {
            return
        }
        let descriptor = database.descriptors(of: characteristic).first { $0.handle == handle }
        let kind = handle == characteristic.declarationHandle ? "declaration" : "descriptor"
        let name = descriptor.flatMap { AssignedNumbers.descriptorName($0.uuid) } ?? kind
        let owner = [AssignedNumbers.characteristicName(characteristic.uuid), characteristic.uuid.description]
        let value = CharacteristicReference.handle(characteristic.valueHandle)
        throw Failure(
            message: "\(attribute.text) is the \(name) of \(owner.compactMap(\.self).joined(separator: " ")), "
                + "whose value is at \(value). Subscribe to that.",
            status: .notFound)
    }

    private func print(_ values: ValueSequence, uuid: BluetoothUUID?) async throws -> Int {
        let limit = count ?? .max
        let deadline = duration.map { duration in
            Task {
                try await Task.sleep(for: duration.duration)
                try await values.unsubscribe()
            }
        }
        defer { deadline?.cancel() }
        var received = 0
        for try await value in values {
            print(value, uuid: uuid)
            received += 1
            if received == limit { break }
        }
        return received
    }

    private func print(_ value: ReceivedValue, uuid: BluetoothUUID?) {
        let time = Timestamp.now()
        let meaning = ValueDescription.of(value.bytes, uuid: uuid)
        guard options.json else {
            if value.droppedBefore > 0 { Console.note("\(value.droppedBefore.counted("value")) dropped here") }
            return Console.out(
                [time, Hex.encode(value.bytes), meaning?.line].compactMap(\.self).joined(separator: "  "))
        }
        Console.out(
            JSONLine.object([
                "v": 1, "t": .string(time), "peer": .string(peer.description), "handle": .integer(Int(value.handle)),
                "uuid": uuid.map { .string($0.description) },
                "kind": value.isIndication ? "indication" : "notification", "hex": .string(Hex.encode(value.bytes)),
                "value": meaning?.json,
                "dropped": value.droppedBefore > 0 ? .integer(value.droppedBefore) : nil,
            ]).text)
    }
}
