import BLECore
import BareBLE

/// A value that was read.
struct ReadValue: Sendable {
    let handle: AttributeHandle
    /// The type of the attribute; `nil` if the peer does not report it.
    var uuid: BluetoothUUID?
    let value: [UInt8]
    /// Whether its service was named, and not the value itself.
    var isOfService = false
}

/// Reads the values that a command line names, for `read`, `watch` and `talk`.
struct ValueReader: Sendable {
    let peripheral: Peripheral
    let peer: PeerArgument
    /// The longest time for one request.
    let timeout: Duration
    /// Whether the peer was paired for this command.
    let isPaired: Bool
    /// Whether the type of a handle is requested where it is not known: without its type a value has no meaning.
    let findsTypes: Bool

    /// Reads what an argument names, and returns each value or its failure. The end of the link is the last one.
    ///
    /// A UUID of an unknown type, which no characteristic of the peer has, may be that of a service.
    func results(of argument: ReadArgument) async -> [Result<ReadValue, BLEError>] {
        do throws(BLEError) {
            let found = await results(of: try await attributes(of: argument), isService: !argument.isAttribute)
            guard case .failure(let error)? = found.last, error.code == .attributeNotFound,
                let service = argument.possibleService, let readable = try await self.readable(of: service)
            else { return found }
            return await results(of: readable, isService: true)
        } catch {
            return [.failure(error)]
        }
    }

    private func results(
        of attributes: [AttributeArgument], isService: Bool
    ) async -> [Result<ReadValue, BLEError>] {
        var results: [Result<ReadValue, BLEError>] = []
        for attribute in attributes {
            do throws(BLEError) {
                var reading = try await read(attribute)
                reading.isOfService = isService
                results.append(.success(reading))
            } catch {
                results.append(.failure(error))
                if error.code == .disconnected || error.code == .cancelled { break }
            }
        }
        return results
    }

    /// Returns the attributes that an argument names, after a discovery if it is a service.
    ///
    /// - Throws: `BLEError`; with `.attributeNotFound` for a service that the peer does not have, or of which nothing
    ///   can be read.
    func attributes(of argument: ReadArgument) async throws(BLEError) -> [AttributeArgument] {
        switch argument {
        case .attribute(let attribute):
            return [attribute]
        case .service(let service):
            if let readable = try await self.readable(of: service) { return readable }
            throw BLEError(
                .attributeNotFound, subject: peripheral.name, during: "read \(service)",
                because: "the peer has no service \(service)",
                hint: "List what the peer has with `blescan explore`."
            ).advised(peer, isBonded: isPaired)
        }
    }

    /// Returns the readable characteristics of a service; `nil` if the peer does not have it.
    ///
    /// - Throws: `BLEError`; with `.attributeNotFound` if nothing of the service can be read.
    private func readable(of service: BluetoothUUID) async throws(BLEError) -> [AttributeArgument]? {
        do throws(BLEError) {
            let database = try await peripheral.discover(services: [service], level: .structure, timeout: timeout)
            guard !database.services.isEmpty else { return nil }
            let readable = database.services.flatMap { database.characteristics(of: $0) }
                .filter { $0.properties.contains(.read) }
            guard !readable.isEmpty else {
                throw BLEError(
                    .attributeNotFound, subject: peripheral.name, during: "read \(service)",
                    because: "nothing of this service is readable",
                    hint: "`blescan notify` prints a value that the peer sends.")
            }
            return readable.map { AttributeArgument($0) }
        } catch {
            throw error.advised(peer, isBonded: isPaired)
        }
    }

    /// Reads a value.
    ///
    /// - Throws: `BLEError`, with what helps.
    func read(_ attribute: AttributeArgument) async throws(BLEError) -> ReadValue {
        do throws(BLEError) {
            let (handle, uuid, value) = try await peripheral.readAttribute(attribute.reference, timeout: timeout)
            var reading = ReadValue(handle: handle, uuid: uuid, value: value)
            if uuid == nil, findsTypes {
                // A peer that does not report it is no failure.
                reading.uuid = try? await peripheral.attributeType(at: handle, timeout: timeout)
            }
            return reading
        } catch {
            throw await attribute.advised(error, peripheral).advised(peer, isBonded: isPaired)
        }
    }
}
