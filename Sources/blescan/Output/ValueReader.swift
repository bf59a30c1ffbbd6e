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

/// A value that is to be read.
struct RequestedValue: Sendable {
    let attribute: AttributeArgument
    /// Whether its service was named, and not the value itself.
    var isOfService = false
    /// The result of the read that has found out what was named. A second read may return another value.
    fileprivate var firstResult: Result<ReadValue, BLEError>?

    /// The failure of that read, until `ValueReader` returns it as the result.
    var firstFailure: BLEError? {
        guard case .failure(let error)? = firstResult else { return nil }
        return error
    }
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
    func results(of argument: ReadArgument) async -> [Result<ReadValue, BLEError>] {
        var results: [Result<ReadValue, BLEError>] = []
        do throws(BLEError) {
            for var value in try await values(of: argument) {
                let result = await self.result(of: &value)
                results.append(result)
                if case .failure(let error) = result, error.code == .disconnected || error.code == .cancelled { break }
            }
        } catch {
            results.append(.failure(error))
        }
        return results
    }

    /// Returns the values that an argument names, after a discovery if it is a service.
    ///
    /// A UUID of an unknown type, which no characteristic of the peer has, may be that of a service.
    ///
    /// - Throws: `BLEError`; with `.attributeNotFound` for a named service that the peer does not have, or for any of
    ///   which nothing can be read.
    func values(of argument: ReadArgument) async throws(BLEError) -> [RequestedValue] {
        switch argument {
        case .attribute(let attribute):
            var value = RequestedValue(attribute: attribute)
            guard let service = argument.possibleService else { return [value] }
            let result = await self.result(of: &value)
            if case .failure(let error) = result, error.code == .attributeNotFound,
                let readable = try await self.readable(of: service)
            {
                return readable
            }
            value.firstResult = result
            return [value]
        case .service(let service):
            if let readable = try await self.readable(of: service) { return readable }
            throw BLEError(
                .attributeNotFound, subject: peripheral.name, during: "read \(service)",
                because: "the peer has no service \(service)",
                hint: "List what the peer has with `blescan explore`."
            ).advised(peer, isBonded: isPaired)
        }
    }

    /// Reads a value. The first call returns what has been read to find it.
    func result(of value: inout RequestedValue) async -> Result<ReadValue, BLEError> {
        if let result = value.firstResult {
            value.firstResult = nil
            return result
        }
        do throws(BLEError) {
            var reading = try await read(value.attribute)
            reading.isOfService = value.isOfService
            return .success(reading)
        } catch {
            return .failure(error)
        }
    }

    /// Returns the readable characteristics of a service; `nil` if the peer does not have it.
    ///
    /// - Throws: `BLEError`; with `.attributeNotFound` if nothing of the service can be read.
    private func readable(of service: BluetoothUUID) async throws(BLEError) -> [RequestedValue]? {
        do throws(BLEError) {
            let database = try await peripheral.discover(services: [service], level: .structure, timeout: timeout)
            guard !database.services.isEmpty else { return nil }
            let characteristics = database.services.flatMap { database.characteristics(of: $0) }
            let readable = characteristics.filter { $0.properties.contains(.read) }
            guard !readable.isEmpty else {
                throw BLEError(
                    .attributeNotFound, subject: peripheral.name, during: "read \(service)",
                    because: "nothing of this service is readable",
                    hint: characteristics.contains { $0.properties.canSubscribe }
                        ? AttributeArgument.sent : AttributeArgument.readable)
            }
            return readable.map { RequestedValue(attribute: AttributeArgument($0), isOfService: true) }
        } catch {
            throw error.advised(peer, isBonded: isPaired)
        }
    }

    /// Reads a value.
    ///
    /// - Throws: `BLEError`, with what helps.
    private func read(_ attribute: AttributeArgument) async throws(BLEError) -> ReadValue {
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
