import BLECore
import BareBLE
import BareBLETestKit

// What the centrals do, and what the application does meanwhile.

extension ServingWorld {
    /// What a central does at a moment.
    enum Act: String, CaseIterable {
        case discover, read, readByUUID, readType, write, subscribe, unsubscribe, configure
        case commandFlood, prepareOnly, prepareAndExecute, secondRequest, mtu, emptyPacket, randomPacket, oversized
        case strayResponse, strayConfirmation, neverConfirms, pauses, encrypts, decrypts
        case vanishes, forgetsItsLink, disconnects, changesItsAddress, staysSilent
    }

    private static let highestHandle = 48

    /// Uses the server as one central until the time is over.
    func use(_ index: Int) async {
        var numbers = Numbers(seed: seed, .serving, index + 1)
        let central = centrals[index]
        let acts = Act.allCases.filter { _ in numbers.chance(60) } + [.read, .subscribe]
        let haste = numbers.pick([100, 500, 3_000])
        while !isOver, failure == nil {
            activities[index] = "connect"
            if await !central.isConnected {
                connects(await central.peer)
                do throws(VirtualCentralError) {
                    try await central.connect(within: .seconds(5))
                } catch {
                    await sleep(.milliseconds(numbers.pick(1...3_000)))
                    continue
                }
            }
            let act = numbers.pick(acts)
            note("c", "\(index) \(act.rawValue)")
            eventCounts.add("central.\(act.rawValue)")
            activities[index] = act.rawValue
            await perform(act, central, &numbers)
            await sleep(.milliseconds(numbers.pick(1...haste)))
        }
    }

    private func perform(_ act: Act, _ central: VirtualCentral, _ numbers: inout Numbers) async {
        let handle = AttributeHandle(numbers.pick(1...Self.highestHandle))
        let value = harmless(numbers.bytes(0...60))
        let limit = Duration.seconds(31)
        switch act {
        case .discover: _ = try? await central.discover()
        case .read: _ = try? await central.read(at: handle)
        case .readByUUID: _ = try? await central.read(BluetoothUUID(UInt16(0xFFF1 + numbers.pick(0...6))))
        case .readType:
            let type = numbers.pick([[0x03, 0x28], [0x01, 0x29], [0xF5, 0xFF], [0xF6, 0xFF], [0x02, 0x29]])
            _ = try? await central.request([0x08, 1, 0, 0xFF, 0xFF] + type.map { UInt8($0) }, within: limit)
        case .write: try? await central.write(value, at: handle)
        case .subscribe:
            try? await central.subscribe(
                to: BluetoothUUID(UInt16(numbers.pick([0xFFF1, 0xFFF2, 0xFFF5]))), isIndicated: numbers.chance(40))
        case .unsubscribe: try? await central.unsubscribe(from: BluetoothUUID(UInt16(numbers.pick([0xFFF1, 0xFFF2]))))
        case .configure:
            try? await central.configure(UInt16(numbers.pick([0, 1, 2, 3, 4, 0xFFFF])), of: 0xFFF2)
        case .commandFlood:
            for _ in 0..<numbers.pick(50...400) { await central.command(value, at: handle) }
        case .prepareOnly:
            for _ in 0..<numbers.pick(1...80) {
                guard (try? await central.prepare(Array(value.prefix(18)), at: handle, from: 0)) != nil else { break }
            }
        case .prepareAndExecute:
            try? await central.prepare(Array(value.prefix(18)), at: handle, from: UInt16(numbers.pick([0, 0, 1, 600])))
            try? await central.execute(isWriting: numbers.chance(80))
        case .secondRequest:
            await central.send(raw: [0x0A] + bytes(handle))
            await central.send(raw: [0x0A] + bytes(handle))
        case .mtu:
            for mtu in numbers.some(of: [0, 22, 23, 100, 517, 0xFFFF]) {
                _ = try? await central.exchangeMTU(UInt16(mtu))
            }
        case .emptyPacket: await central.send(raw: [])
        case .randomPacket: await central.send(raw: harmless(numbers.bytes(1...30)))
        case .oversized:
            let count = numbers.pick([24, 65, 186, 518, 600])
            await central.send(raw: [0x52] + bytes(handle) + [UInt8](repeating: 1, count: count - 3))
        case .strayResponse: await central.send(raw: [numbers.pick([0x01, 0x0B, 0x11, 0x13])] + value)
        case .strayConfirmation: for _ in 0..<numbers.pick(1...50) { await central.send(raw: [0x1E]) }
        case .neverConfirms: await central.confirmIndications(numbers.chance(30))
        case .pauses:
            await central.pause()
            await sleep(.milliseconds(numbers.pick([10, 5_000, 40_000])))
            await central.resume()
        case .encrypts:
            await radio.encrypt(central, VirtualLinkSecurity(isAuthenticated: numbers.chance(50)))
            encryptionChanged(of: await central.peer, true)
        case .decrypts:
            await radio.encrypt(central, .none)
            encryptionChanged(of: await central.peer, false)
        case .vanishes:
            await radio.move(central, to: .outOfRange)
            await sleep(.milliseconds(numbers.pick([100, 3_000, 8_000])))
            await radio.move(central, to: .near)
        case .forgetsItsLink: await radio.reset(central)
        case .disconnects: await central.disconnect()
        case .changesItsAddress:
            await central.disconnect()
            let address = BluetoothAddress(rawValue: 0x4000_0000_0000 | numbers.next() & 0x3FFF_FFFF_FFFF)
            await radio.changeAddress(of: central, to: PeerID(address: address, type: .random))
        case .staysSilent: await sleep(.seconds(numbers.pick(1...40)))
        }
    }

    /// Bytes that no protected value contains.
    private func harmless(_ bytes: [UInt8]) -> [UInt8] {
        bytes.map { $0 == ServedLinkWatch.secret ? 0 : $0 }
    }

    private func bytes(_ handle: AttributeHandle) -> [UInt8] {
        [UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8)]
    }

    /// Updates values, changes services, disconnects centrals, and has trouble with its adapter.
    func runApplication() async {
        var numbers = Numbers(seed: seed, .serving, 100)
        let isTroubled = numbers.chance(30)
        let pause = numbers.pick([50, 400, 3_000])
        while !isOver, failure == nil {
            let step = numbers.pick(0...99)
            activities[100] = "step \(step)"
            switch step {
            case 0..<55: await update(&numbers)
            case 55..<65: try? await local.set(harmless(numbers.bytes(0...40)), of: 0xFFF1)
            case 65..<75: await changeServices()
            case 75..<80:
                if let id = await local.centrals.last?.id { await local.disconnect(id) }
            case 80..<84 where isTroubled:
                await radio.powerOff(adapter)
                await sleep(.milliseconds(numbers.pick(1...5_000)))
                await radio.powerOn(adapter)
            case 84..<87 where isTroubled: await radio.reset(adapter)
            case 87..<90: await radio.limitLinks(to: numbers.pick([2, 16]), adapter)
            default: break
            }
            await sleep(.milliseconds(numbers.pick(1...pause)))
        }
        await radio.limitLinks(to: 16, adapter)
    }

    private func update(_ numbers: inout Numbers) async {
        let uuid = numbers.pick([0xFFF1, 0xFFF1, 0xFFF2, 0xFFF5])
        let characteristic = CharacteristicReference.uuid(BluetoothUUID(UInt16(uuid)))
        let value = uuid == 0xFFF5 ? Array(Self.protectedValue.prefix(20)) : harmless(numbers.bytes(0...24))
        do throws(BLEError) {
            if numbers.chance(20) {
                eventCounts.add("update.\(try await local.tryUpdate(value, of: characteristic) ? "tried" : "refused")")
                return
            }
            let whenFull: LocalPeripheral.WhenFull = numbers.pick([.wait, .replace, .fail])
            let timeout: Duration? = numbers.pick([nil, .seconds(1), .seconds(35)])
            let result = try await local.update(value, of: characteristic, whenFull: whenFull, timeout: timeout)
            for outcome in result.outcomes.values { count(outcome) }
        } catch {
            eventCounts.add("update.\(error.code)")
        }
    }

    private func count(_ outcome: LocalPeripheral.UpdateOutcome) {
        switch outcome {
        case .tooLong: eventCounts.add("update.tooLong")
        default: eventCounts.add("update.\(outcome)")
        }
    }

    private func changeServices() async {
        do throws(BLEError) {
            if let service = optional {
                try await local.withdraw(service)
                optional = nil
            } else {
                optional = try await local.publish(
                    LocalService(0xFFE0, [LocalCharacteristic(0xFFE1, [.read, .notify], value: .stored([1]))]))
            }
            eventCounts.add("serving.servicesChanged")
        } catch {
            fail("the services were not changed: \(error)")
        }
    }
}
