import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// The peripheral role: what centrals find and get, and what the delegate receives.
@Suite(.timeLimit(.minutes(10))) struct PeripheralManagerTests {
    private let service = CBUUID(string: "FFF0")
    private let fixed = CBUUID(string: "FFF1")
    private let value = CBUUID(string: "FFF2")

    /// A service with a fixed value, and one that the program returns, takes and sends.
    private func offer(
        _ bench: Bench
    ) async throws -> (CBPeripheralManager, CallbackRecorder, CBMutableService, CBMutableCharacteristic) {
        let recorder = CallbackRecorder(bench.time)
        let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
        try await recorder.wait(for: "state 5")
        let offered = CBMutableService(type: service, primary: true)
        let constant = CBMutableCharacteristic(
            type: fixed, properties: .read, value: Data([1, 2, 3]), permissions: .readable)
        constant.descriptors = [
            CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString), value: "Constant")
        ]
        let dynamic = CBMutableCharacteristic(
            type: value, properties: [.read, .write, .writeWithoutResponse, .notify], value: nil,
            permissions: [.readable, .writeable])
        offered.characteristics = [constant, dynamic]
        manager.add(offered)
        try await recorder.wait(for: "didAdd FFF0 nil")
        manager.startAdvertising([
            CBAdvertisementDataLocalNameKey: "Sample", CBAdvertisementDataServiceUUIDsKey: [service],
        ])
        #expect(!manager.isAdvertising)
        try await recorder.wait(for: "didStartAdvertising nil")
        #expect(manager.isAdvertising)
        recorder.clear()
        return (manager, recorder, offered, dynamic)
    }

    private func connect(_ bench: Bench) async throws -> VirtualCentral {
        let phone = await bench.radio.addCentral()
        let heard = try await phone.connect()
        #expect(heard.data.name?.text == "Sample" || heard.data.serviceUUIDs == [0xFFF0])
        _ = try await phone.exchangeMTU()
        return phone
    }

    @Test func aCentralReadsAFixedValueByItself() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            let phone = try await connect(bench)
            #expect(try await phone.read(0xFFF1) == [1, 2, 3])
            #expect(recorder.lines == [])
            _ = manager
        }
    }

    /// They are dropped at several moments of their lives, and their delegates are not.
    @Test func aThousandManagersThatWereDroppedLeaveNothing() async throws {
        try await Bench.run { bench in
            var dropped: [(recorder: CallbackRecorder, count: Int)] = []
            var services: [WeakReference] = []
            for number in 0..<1_000 {
                let recorder = CallbackRecorder(bench.time)
                let (reference, serviceReference) = (WeakReference(), WeakReference())
                do {
                    let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
                    reference.object = manager
                    if number % 2 == 0 { try await recorder.wait(for: "state 5") }
                    let offered = CBMutableService(type: CBUUID(string: "FFE0"), primary: true)
                    serviceReference.object = offered
                    offered.characteristics = [
                        CBMutableCharacteristic(
                            type: CBUUID(string: "FFE1"), properties: .read, value: Data([1]), permissions: .readable)
                    ]
                    manager.add(offered)
                    manager.startAdvertising(nil)
                    if number % 4 == 0 { try await recorder.wait(for: "didStartAdvertising nil") }
                    _ = manager
                }
                // A callback that is running keeps its manager until it returns.
                bench.queue.sync {}
                #expect(reference.object == nil)
                dropped.append((recorder, recorder.lines.count))
                services.append(serviceReference)
            }
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await bench.radio.advertisements().isEmpty)
            #expect(services.count { $0.object != nil } == 0)
            let (manager, recorder, _, _) = try await offer(bench)
            let phone = try await connect(bench)
            #expect(try await phone.read(0xFFF1) == [1, 2, 3])
            await #expect(throws: VirtualCentralError.self) { try await phone.read(0xFFE1) }
            for (recorder, count) in dropped { #expect(recorder.lines.count == count, "\(recorder.lines)") }
            #expect(recorder.lines == [])
            _ = manager
        }
    }

    @Test func theProgramRespondsToReads() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            let phone = try await connect(bench)
            let long = (0..<512).map { UInt8(truncatingIfNeeded: $0) }
            recorder.react { line in
                guard line.hasPrefix("didReceiveRead"), let request = recorder.requests.last else { return }
                request.value = Data(long.dropFirst(request.offset))
                manager.respond(to: request, withResult: .success)
            }
            let handle = try await phone.characteristic(0xFFF2).value
            #expect(try await phone.read(at: handle, from: 500) == Array(long.dropFirst(500)))
            #expect(recorder.lines == ["didReceiveRead FFF2 500"])
            #expect(try await phone.read(at: handle) == Array(long))
            recorder.react { _ in
                if let request = recorder.requests.last { manager.respond(to: request, withResult: ._other(0x80)) }
            }
            await #expect(throws: VirtualCentralError.self) { try await phone.read(at: handle) }
        }
    }

    @Test func aLongValueIsAskedForAtEachOffset() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            let long = (0..<512).map { UInt8(truncatingIfNeeded: $0) }
            // As many bytes as one response can have, and no more.
            recorder.react { line in
                guard line.hasPrefix("didReceiveRead"), let request = recorder.requests.last else { return }
                request.value = Data(long.dropFirst(request.offset).prefix(22))
                manager.respond(to: request, withResult: .success)
            }
            #expect(try await phone.read(0xFFF2) == long)
            #expect(recorder.lines == stride(from: 0, to: 512, by: 22).map { "didReceiveRead FFF2 \($0)" })
            recorder.clear()
            let handle = try await phone.characteristic(0xFFF2).value
            #expect(try await phone.read(at: handle, from: 500) == Array(long.dropFirst(500)))
            #expect(try await phone.read(at: handle, from: 100) == Array(long[100..<122]))
            #expect(recorder.lines == ["didReceiveRead FFF2 500", "didReceiveRead FFF2 100"])
        }
    }

    @Test func theDatabaseHashIsThatOfTheServices() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            let phone = try await connect(bench)
            let hash = try await phone.read(0x2B2A)
            #expect(hash.count == 16)
            let added = CBMutableService(type: CBUUID(string: "FFE0"), primary: true)
            manager.add(added)
            try await recorder.wait(for: "didAdd FFE0 nil")
            let other = try await phone.read(0x2B2A)
            #expect(other.count == 16 && other != hash)
            manager.remove(added)
            await bench.time.settle()
            #expect(try await phone.read(0x2B2A) == hash)
        }
    }

    @Test func aRequestThatIsDroppedIsRefused() async throws {
        try await Bench.run { bench in
            let delegate = SilentDelegate()
            let manager = CBPeripheralManager(delegate: delegate, queue: bench.queue)
            try await bench.time.clock.sleep(for: .seconds(1))
            let offered = CBMutableService(type: service, primary: true)
            offered.characteristics = [
                CBMutableCharacteristic(type: value, properties: .read, value: nil, permissions: .readable)
            ]
            manager.add(offered)
            manager.startAdvertising(nil)
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            let begin = bench.time.now
            await #expect(throws: VirtualCentralError.self) { try await phone.read(0xFFF2) }
            #expect(bench.time.now - begin < .seconds(5))
            #expect(await phone.isConnected)
        }
    }

    @Test func theProgramTakesWrites() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            let phone = try await connect(bench)
            recorder.react { line in
                guard line.hasPrefix("didReceiveWrite"), let request = recorder.requests.last else { return }
                manager.respond(to: request, withResult: request.value == Data([9]) ? .writeNotPermitted : .success)
            }
            try await phone.write([5, 6], to: 0xFFF2)
            await #expect(throws: VirtualCentralError.self) { try await phone.write([9], to: 0xFFF2) }
            // Nobody waits for a response to a command, and the next one is not delayed.
            recorder.react { _ in }
            let handle = try await phone.characteristic(0xFFF2).value
            for number in 0..<10 { await phone.command([UInt8(number)], at: handle) }
            try await recorder.wait(for: "didReceiveWrite [[9]]", count: 2)
            let commands = (0..<10).map { "didReceiveWrite [[\($0)]]" }
            #expect(recorder.lines == ["didReceiveWrite [[5, 6]]", "didReceiveWrite [[9]]"] + commands)
            #expect(bench.log.all.filter { $0.hasPrefix("API MISUSE") } == [])
        }
    }

    /// The program responds to the first or to the last one, and then once more, to the other one.
    @Test(arguments: [true, false], [.success, .writeNotPermitted] as [CBATTError.Code])
    func requestsThatCameTogetherHaveOneResponse(_ isFirst: Bool, _ result: CBATTError.Code) async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let offered = CBMutableService(type: service, primary: true)
            offered.characteristics = [fixed, value].map {
                CBMutableCharacteristic(type: $0, properties: .write, value: nil, permissions: .writeable)
            }
            manager.add(offered)
            manager.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising nil")
            recorder.react { line in
                guard line.hasPrefix("didReceiveWrite"),
                    let request = isFirst ? recorder.requests.first : recorder.requests.last
                else { return }
                manager.respond(to: request, withResult: result)
            }
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            for (uuid, byte) in [(0xFFF1, 1), (0xFFF2, 2)] as [(BluetoothUUID, UInt8)] {
                try await phone.prepare([byte], at: try await phone.characteristic(uuid).value, from: 0)
            }
            let code = await refusal { () async throws(VirtualCentralError) in try await phone.execute() }
            #expect(code == (result == .success ? nil : .writeNotPermitted))
            #expect(recorder.lines.filter { $0.hasPrefix("didReceive") } == ["didReceiveWrite [[1], [2]]"])
            #expect(recorder.requests.map(\.characteristic.uuid) == [fixed, value])
            #expect(bench.log.misuse == [])
            let other = try #require(isFirst ? recorder.requests.last : recorder.requests.first)
            #expect(String(format: "<%@>", other) == "<\(other)>")
            manager.respond(to: other, withResult: .success)
            #expect(bench.log.misuse.count == 1)
            #expect(bench.log.misuse.first?.hasSuffix("was responded to before, or too late") == true)
        }
    }

    @Test(arguments: [[.readable, .writeable], .readable, .writeable, []] as [CBAttributePermissions])
    func whatIsNotPermittedIsRefused(_ permissions: CBAttributePermissions) async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let offered = CBMutableService(type: service, primary: true)
            offered.characteristics = [
                CBMutableCharacteristic(type: fixed, properties: .read, value: Data([1]), permissions: permissions),
                CBMutableCharacteristic(
                    type: value, properties: [.read, .write, .writeWithoutResponse], value: nil,
                    permissions: permissions),
            ]
            manager.add(offered)
            manager.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising nil")
            recorder.clear()
            recorder.react { line in
                guard line.hasPrefix("didReceive"), let request = recorder.requests.last else { return }
                request.value = Data([2])
                manager.respond(to: request, withResult: .success)
            }
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            let canRead = permissions.contains(.readable)
            let canWrite = permissions.contains(.writeable)
            for uuid in [0xFFF1, 0xFFF2] as [BluetoothUUID] {
                let code = await refusal { () async throws(VirtualCentralError) in _ = try await phone.read(uuid) }
                #expect(code == (canRead ? nil : .readNotPermitted))
            }
            let code = await refusal { () async throws(VirtualCentralError) in
                try await phone.write([3], to: 0xFFF2)
            }
            #expect(code == (canWrite ? nil : .writeNotPermitted))
            await phone.command([4], at: try await phone.characteristic(0xFFF2).value)
            await bench.time.settle()
            let reads = canRead ? ["didReceiveRead FFF2 0"] : []
            #expect(recorder.lines == reads + (canWrite ? ["didReceiveWrite [[3]]", "didReceiveWrite [[4]]"] : []))
        }
    }

    @Test func subscribersGetTheValues() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, dynamic) = try await offer(bench)
            let phone = try await connect(bench)
            #expect(dynamic.subscribedCentrals == [])
            try await phone.subscribe(to: 0xFFF2)
            try await recorder.wait(for: "didSubscribeTo FFF2 512")
            let central = try #require(dynamic.subscribedCentrals?.first)
            #expect(manager.updateValue(Data([1]), for: dynamic, onSubscribedCentrals: nil))
            #expect(manager.updateValue(Data([2]), for: dynamic, onSubscribedCentrals: [central]))
            #expect(manager.updateValue(Data([3]), for: dynamic, onSubscribedCentrals: []))
            #expect(manager.updateValue(Data(count: 600), for: dynamic, onSubscribedCentrals: nil))
            #expect(try await phone.nextValue().bytes == [1])
            #expect(try await phone.nextValue().bytes == [2])
            #expect(try await phone.nextValue().bytes.count == 512)
            try await phone.unsubscribe(from: 0xFFF2)
            try await recorder.wait(for: "didUnsubscribeFrom FFF2")
            #expect(dynamic.subscribedCentrals == [])
            try await phone.subscribe(to: 0xFFF2)
            try await recorder.wait(for: "didSubscribeTo", count: 2)
            await phone.disconnect()
            try await recorder.wait(for: "didUnsubscribeFrom FFF2", count: 2)
        }
    }

    /// Ten centrals subscribe and unsubscribe 61 times each before anything else runs:
    /// more changes than the queue of a manager has room for.
    @Test(.row("P14")) func subscriptionsAreKnownAfterAFlood() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, dynamic) = try await offer(bench)
            var connected: [VirtualCentral] = []
            for _ in 0..<10 { connected.append(try await connect(bench)) }
            let phones = connected
            let configuration = try await phones[0].characteristic(0xFFF2).value + 1
            for isOn in [true, false] {
                await bench.central.makeCalls {
                    for phone in phones {
                        phone.assumeIsolated { phone in
                            for number in 0...60 {
                                let bits: UInt8 = (number % 2 == 0) == isOn ? 1 : 0
                                phone.command([bits, 0], at: configuration)
                            }
                        }
                    }
                }
                try await bench.time.clock.sleep(for: .seconds(1))
                #expect(dynamic.subscribedCentrals?.count == (isOn ? 10 : 0))
                // Each of them was reported once, in turn.
                let begun = recorder.count(of: "didSubscribeTo FFF2")
                #expect(begun == recorder.count(of: "didUnsubscribeFrom FFF2") + (isOn ? 10 : 0))
            }
            _ = manager
        }
    }

    /// The queue runs nothing while the central subscribes and unsubscribes.
    @Test(.row("P14")) func changesOfASubscriptionFillNoQueue() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, dynamic) = try await offer(bench)
            let phone = try await connect(bench)
            let configuration = try await phone.characteristic(0xFFF2).value + 1
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                for number in 0...2_000 { try await phone.write([number % 2 == 0 ? 1 : 0, 0], at: configuration) }
            }
            try await bench.time.clock.sleep(for: .seconds(1))
            #expect(dynamic.subscribedCentrals?.count == 1)
            let begun = recorder.count(of: "didSubscribeTo FFF2")
            #expect(begun == recorder.count(of: "didUnsubscribeFrom FFF2") + 1)
            #expect(recorder.lines.count < 300)
            _ = manager
        }
    }

    /// The central sends all of it at once, and waits for no response.
    @Test func aSubscriptionIsReportedAfterTheWritesBeforeIt() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            let phone = try await connect(bench)
            let handle = try await phone.characteristic(0xFFF2).value
            await phone.atOnce { phone in
                for number in 0..<10 as Range<UInt8> { phone.command([number], at: handle) }
                phone.command([1, 0], at: handle + 1)
                phone.command([10], at: handle)
                phone.command([0, 0], at: handle + 1)
            }
            try await recorder.wait(for: "didUnsubscribeFrom FFF2")
            let lines = recorder.lines.map { $0.hasPrefix("didSubscribeTo") ? "didSubscribeTo" : $0 }
            var expected: [String] = (0..<10).map { "didReceiveWrite [[\($0)]]" }
            expected += ["didSubscribeTo", "didReceiveWrite [[10]]", "didUnsubscribeFrom FFF2"]
            #expect(lines == expected)
            _ = manager
        }
    }

    /// The queue runs nothing, and has no room, while a central subscribes and then writes.
    @Test func aRequestIsReportedAfterTheSubscriptionThatCameBeforeIt() async throws {
        try await Bench.run { bench in
            let (manager, recorder, offered, _) = try await offer(bench)
            let (phone, other) = (try await connect(bench), try await connect(bench))
            let handle = try await phone.characteristic(0xFFF2).value
            let constant = try await other.characteristic(0xFFF1).value
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                // Each of them is reported, as it was added before.
                for _ in 0..<300 { manager.add(offered) }
                try await phone.write([1, 0], at: handle + 1)
                // ATT_WRITE_REQ
                await phone.send(raw: [0x12, UInt8(handle & 0xFF), UInt8(handle >> 8), 9])
                // It has arrived when another central has its values.
                for _ in 0..<10 { #expect(try await other.read(at: constant) == [1, 2, 3]) }
            }
            try await recorder.wait(for: "didReceiveWrite [[9]]")
            let lines = recorder.lines.filter { !$0.hasPrefix("didAdd") }
            #expect(lines.first?.hasPrefix("didSubscribeTo FFF2") == true, "\(lines)")
            #expect(lines.last == "didReceiveWrite [[9]]" && lines.count == 2, "\(lines)")
            manager.respond(to: try #require(recorder.requests.last), withResult: .success)
        }
    }

    /// The queue is blocked from before the subscription until after the removal, whose report comes last.
    @Test func aServiceThatWasRemovedHasNoSubscribers() async throws {
        try await Bench.run { bench in
            let (manager, recorder, offered, dynamic) = try await offer(bench)
            let phone = try await connect(bench)
            let constant = try await phone.characteristic(0xFFF1).value
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                try await phone.subscribe(to: 0xFFF2)
                // Time goes on as soon as one callback waits, that of the subscription.
                bench.time.loop.release()
                await bench.time.settle()
                bench.time.loop.hold()
                manager.remove(offered)
                var isServed = true
                for _ in 0..<10_000 where isServed { isServed = (try? await phone.read(at: constant)) != nil }
                #expect(!isServed, "the service is still there")
                #expect(dynamic.subscribedCentrals == [])
            }
            try await recorder.wait(for: "didSubscribeTo FFF2")
            await bench.time.settle()
            #expect(dynamic.subscribedCentrals == [])
            _ = manager
        }
    }

    /// A central that takes no values for a while.
    @Test(.row("P13")) func updatesWaitUntilThereIsRoomAndKeepTheirOrder() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, dynamic) = try await offer(bench)
            let phone = try await connect(bench)
            try await phone.subscribe(to: 0xFFF2)
            try await recorder.wait(for: "didSubscribeTo")
            let (next, last) = (Lock<UInt16>(0), 1_000 as UInt16)
            let send: @Sendable () -> Void = {
                while next.withLock({ $0 }) < last {
                    let number = next.withLock { $0 }
                    let bytes = Data([UInt8(number >> 8), UInt8(number & 0xFF)])
                    guard manager.updateValue(bytes, for: dynamic, onSubscribedCentrals: nil) else { return }
                    next.withLock { $0 += 1 }
                }
            }
            recorder.react { if $0 == "isReadyToUpdate" { send() } }
            await phone.pause()
            bench.queue.sync { send() }
            try await bench.time.clock.sleep(for: .seconds(1))
            await phone.resume()
            for number in 0..<last {
                #expect(try await phone.nextValue().bytes == [UInt8(number >> 8), UInt8(number & 0xFF)])
            }
            #expect(recorder.count(of: "isReadyToUpdate") > 0)
        }
    }

    /// The updates of a manager share their room, as those of iOS do. What is in it is sent to all others.
    @Test(.row("P12", "P13")) func aCentralThatTakesNothingHoldsUpNoValueOfOthers() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, dynamic) = try await offer(bench)
            let (slow, fast) = (try await connect(bench), try await connect(bench))
            try await slow.subscribe(to: 0xFFF2)
            try await recorder.wait(for: "didSubscribeTo")
            try await fast.subscribe(to: 0xFFF2)
            try await recorder.wait(for: "didSubscribeTo", count: 2)
            let reading = try #require(dynamic.subscribedCentrals?.last)
            await slow.pause()
            var sent = 0
            while sent < 100_000,
                manager.updateValue(Data([UInt8(sent & 0xFF)]), for: dynamic, onSubscribedCentrals: nil)
            {
                sent += 1
                await bench.time.settle()
            }
            #expect(sent < 100_000)
            for number in 0..<sent { #expect(try await fast.nextValue().bytes == [UInt8(number & 0xFF)]) }
            #expect(!manager.updateValue(Data([1]), for: dynamic, onSubscribedCentrals: [reading]))
            #expect(recorder.count(of: "isReadyToUpdate") == 0)
            // Its link ends after the supervision timeout, and so do the updates for it.
            await bench.radio.move(slow, to: .outOfRange)
            try await recorder.wait(for: "isReadyToUpdate")
            #expect(manager.updateValue(Data([2]), for: dynamic, onSubscribedCentrals: [reading]))
            #expect(try await fast.nextValue().bytes == [2])
            #expect(recorder.count(of: "isReadyToUpdate") == 1)
            try await recorder.wait(for: "didUnsubscribeFrom FFF2")
            #expect(recorder.count(of: "didUnsubscribeFrom") == 1)
        }
    }

    /// The part of a long update for a central that takes nothing waits. That for another one does not, so that the
    /// next update comes after it.
    @Test func noPartOfALongUpdateIsOvertaken() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, dynamic) = try await offer(bench)
            // Another manager has room of its own.
            let second = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let service = CBMutableService(type: CBUUID(string: "FFD0"), primary: true)
            let other = CBMutableCharacteristic(
                type: CBUUID(string: "FFD1"), properties: .notify, value: nil, permissions: .readable)
            service.characteristics = [other]
            second.add(service)
            try await recorder.wait(for: "didAdd FFD0 nil")
            let slow = await bench.radio.addCentral()
            try await slow.connect()
            try await slow.subscribe(to: 0xFFF2)
            try await slow.subscribe(to: 0xFFD1)
            let fast = try await connect(bench)
            try await fast.subscribe(to: 0xFFD1)
            try await recorder.wait(for: "didSubscribeTo", count: 3)
            #expect(other.subscribedCentrals?.map(\.maximumUpdateValueLength) == [20, 512])
            await slow.pause()
            var sent = 0
            while sent < 100_000, manager.updateValue(Data([1]), for: dynamic, onSubscribedCentrals: nil) {
                sent += 1
                await bench.time.settle()
            }
            #expect(sent < 100_000)
            let long = [UInt8](repeating: 7, count: 100)
            #expect(second.updateValue(Data(long), for: other, onSubscribedCentrals: nil))
            #expect(second.updateValue(Data([8]), for: other, onSubscribedCentrals: nil))
            #expect(try await fast.nextValue().bytes == long)
            #expect(try await fast.nextValue().bytes == [8])
            await slow.resume()
            for _ in 0..<sent { _ = try await slow.nextValue() }
            #expect(try await slow.nextValue().bytes == Array(long.prefix(20)))
            #expect(try await slow.nextValue().bytes == [8])
        }
    }

    @Test(
        arguments: [
            (.low, .milliseconds(15)...(.milliseconds(30))), (.medium, .milliseconds(90)...(.milliseconds(120))),
            (.high, .milliseconds(285)...(.milliseconds(300))),
        ] as [(CBPeripheralManagerConnectionLatency, ClosedRange<Duration>)])
    func aDesiredLatencyIsRequested(
        _ latency: CBPeripheralManagerConnectionLatency, _ interval: ClosedRange<Duration>
    ) async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, dynamic) = try await offer(bench)
            let phone = try await connect(bench)
            try await phone.subscribe(to: 0xFFF2)
            try await recorder.wait(for: "didSubscribeTo FFF2")
            let central = try #require(dynamic.subscribedCentrals?.first)
            let requested = try ConnectionParameters(interval: interval, supervisionTimeout: .seconds(6))
            #expect(await bench.radio.connectionParameters(of: phone) != requested)
            manager.setDesiredConnectionLatency(latency, for: central)
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await bench.radio.connectionParameters(of: phone) == requested)
            await phone.disconnect()
            try await recorder.wait(for: "didUnsubscribeFrom FFF2")
            #expect(await bench.radio.connectionParameters(of: phone) == nil)
            // The program may have missed the end of the link.
            manager.setDesiredConnectionLatency(latency, for: central)
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(bench.log.all.count { $0.hasPrefix("the latency was not changed") } == 1)
        }
    }

    @Test func servicesComeAndGo() async throws {
        try await Bench.run { bench in
            let (manager, recorder, offered, dynamic) = try await offer(bench)
            // What was added cannot change.
            offered.characteristics = []
            dynamic.properties = .read
            #expect(offered.characteristics?.count == 2)
            #expect(dynamic.properties.contains(.notify))
            #expect(bench.log.all.count { $0.hasPrefix("API MISUSE") } == 2)
            manager.add(offered)
            try await recorder.wait(for: "didAdd FFF0 CB 1")
            manager.remove(offered)
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            await #expect(throws: VirtualCentralError.self) { try await phone.read(0xFFF1) }
            offered.characteristics = offered.characteristics?.filter { $0.uuid == fixed }
            recorder.clear()
            manager.add(offered)
            try await recorder.wait(for: "didAdd FFF0 nil")
            _ = try await phone.discover()
            #expect(try await phone.read(0xFFF1) == [1, 2, 3])
            manager.removeAllServices()
            await bench.time.settle()
            await #expect(throws: VirtualCentralError.self) { try await phone.read(0xFFF1) }
        }
    }

    @Test(arguments: 0..<3) func aServiceThatCannotBeIsRefused(_ number: Int) async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let offered = CBMutableService(type: service, primary: true)
            let characteristic = CBMutableCharacteristic(
                type: value, properties: number == 0 ? [.read, .write] : .read, value: number == 0 ? Data([1]) : nil,
                permissions: .readable)
            if number == 1 {
                characteristic.descriptors = [
                    CBMutableDescriptor(type: CBUUID(string: "2902"), value: Data([0, 0]))
                ]
            }
            if number == 2 {
                offered.includedServices = [CBMutableService(type: CBUUID(string: "FFE0"), primary: true)]
            }
            offered.characteristics = [characteristic]
            manager.add(offered)
            try await recorder.wait(for: "didAdd FFF0 CB 1")
            #expect(recorder.errors.first?.localizedDescription.hasPrefix("Could not add the service: ") == true)
        }
    }

    @Test func advertisingStopsAndEndsWithThePower() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            #expect(await bench.radio.advertisements().count == 1)
            manager.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising CB 9")
            #expect(manager.isAdvertising)
            manager.stopAdvertising()
            #expect(!manager.isAdvertising)
            await bench.time.settle()
            #expect(await bench.radio.advertisements().isEmpty)
            manager.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising nil")
            await bench.radio.powerOff()
            try await recorder.wait(for: "state 4")
            #expect(!manager.isAdvertising)
            manager.startAdvertising(nil)
            #expect(
                bench.log.all.contains { $0.hasSuffix("can only accept this command while in the powered on state") })
            await bench.radio.powerOn()
            try await recorder.wait(for: "state 5")
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await bench.radio.advertisements().isEmpty)
        }
    }

    /// The host finds the calls at once, so that the first start ends after the second one has begun.
    @Test func eachStartOfAdvertisingIsReportedOnce() async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            recorder.clear()
            await bench.central.makeCalls {
                manager.startAdvertising(nil)
                manager.stopAdvertising()
                manager.startAdvertising(nil)
            }
            try await recorder.wait(for: "didStartAdvertising", count: 2)
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.count(of: "didStartAdvertising CB 5") == 1)
            #expect(recorder.count(of: "didStartAdvertising nil") == 1)
            #expect(recorder.lines.count == 2)
            #expect(manager.isAdvertising)
            #expect(await bench.radio.advertisements().count == 1)
        }
    }

    /// The queue runs nothing while advertising begins and ends.
    @Test func aStartThatIsStoppedBeforeItsReportIsReportedAsCancelled() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            manager.stopAdvertising()
            await bench.time.settle()
            #expect(await bench.radio.advertisements().isEmpty)
            bench.queue.suspend()
            do {
                defer { bench.queue.resume() }
                manager.startAdvertising(nil)
                while await bench.radio.advertisements().isEmpty, !Task.isCancelled { await Task.yield() }
                await bench.settleBesideOneReport()
                manager.stopAdvertising()
            }
            try await recorder.wait(for: "didStartAdvertising CB 5")
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.lines == ["didStartAdvertising CB 5"])
            #expect(!manager.isAdvertising)
            #expect(await bench.radio.advertisements().isEmpty)
        }
    }

    /// The queue of the first manager runs nothing while the adapter goes and returns, so its program does not know.
    @Test func advertisingThatBeginsBeforeALossIsReportedEndsWithTheReport() async throws {
        try await Bench.run { bench in
            await bench.radio.announceChanges()
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            recorder.clear()
            try await bench.loseAdapterUnreported {
                manager.startAdvertising(nil)
            }
            try await recorder.wait(for: "didStartAdvertising")
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.lines == ["state 4", "state 5", "didStartAdvertising CB 5"])
            #expect(!manager.isAdvertising)
            #expect(await bench.radio.advertisements().isEmpty)
        }
    }

    @Test func aServiceThatIsAddedBeforeALossIsReportedIsWithdrawnWithTheReport() async throws {
        try await Bench.run { bench in
            await bench.radio.announceChanges()
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            recorder.clear()
            let added = CBMutableService(type: service, primary: true)
            try await bench.loseAdapterUnreported(byUnplugging: true) { manager.add(added) }
            try await recorder.wait(for: "didAdd FFF0 nil")
            #expect(recorder.lines == ["state 2", "state 5", "didAdd FFF0 nil"])
            // As after each state in which services are withdrawn.
            manager.add(added)
            try await recorder.wait(for: "didAdd FFF0", count: 2)
            #expect(recorder.lines.last == "didAdd FFF0 nil")
        }
    }

    @Test func servicesWithoutRoomAreNotAdvertised() async throws {
        try await Bench.run { bench in
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let long = (1...3).map { CBUUID(string: "0000000\($0)-1212-EFDE-1523-785FEABCD123") }
            manager.startAdvertising([
                CBAdvertisementDataLocalNameKey: "Sample", CBAdvertisementDataServiceUUIDsKey: long,
            ])
            try await recorder.wait(for: "didStartAdvertising nil")
            let heard = try #require(await bench.radio.advertisements().first)
            let first = try #require(BluetoothUUID(long[0].uuidString))
            #expect(heard.data.serviceUUIDs == [first])
            #expect((heard.data.name ?? heard.scanResponse?.name)?.text == "Sample")
            #expect(bench.log.all.count { $0.hasPrefix("there is no room to advertise the services") } == 1)
        }
    }

    @Test func aManagerThatIsDroppedWithdrawsItsServices() async throws {
        try await Bench.run { bench in
            do { _ = try await offer(bench) }
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(await bench.radio.advertisements().isEmpty)
        }
    }

    @Test func channelsArePublishedAndWithdrawn() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            manager.publishL2CAPChannel(withEncryption: false)
            try await recorder.wait(for: "didPublish nil 128")
            manager.unpublishL2CAPChannel(129)
            try await recorder.wait(for: "didUnpublish CB 1 129")
            manager.unpublishL2CAPChannel(128)
            try await recorder.wait(for: "didUnpublish nil 128")
        }
    }

    /// A program publishes its channels again where it adds its services again.
    @Test(arguments: [true, false]) func channelsEndWithTheServicesOfALostAdapter(isUnplugged: Bool) async throws {
        try await Bench.run { bench in
            await bench.radio.announceChanges()
            let (manager, recorder, _, _) = try await offer(bench)
            manager.publishL2CAPChannel(withEncryption: false)
            try await recorder.wait(for: "didPublish nil 128")
            if isUnplugged { await bench.radio.unplug() } else { await bench.radio.powerOff() }
            try await recorder.wait(for: isUnplugged ? "state 2" : "state 4")
            if isUnplugged { await bench.radio.plugIn(isUp: true) } else { await bench.radio.powerOn() }
            try await recorder.wait(for: "state 5")
            recorder.clear()
            manager.publishL2CAPChannel(withEncryption: false)
            try await recorder.wait(for: "didPublish")
            #expect(recorder.lines == ["didPublish nil \(isUnplugged ? 128 : 129)"])
        }
    }

    @Test func aChannelThatIsPublishedBeforeALossIsReportedEndsWithTheReport() async throws {
        try await Bench.run { bench in
            await bench.radio.announceChanges()
            let recorder = CallbackRecorder(bench.time)
            let manager = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            recorder.clear()
            try await bench.loseAdapterUnreported(byUnplugging: true) {
                manager.publishL2CAPChannel(withEncryption: false)
            }
            try await recorder.wait(for: "didPublish")
            try await bench.time.clock.sleep(for: .seconds(5))
            #expect(recorder.lines.count == 3)
            #expect(recorder.count(of: "didPublish nil") == 0, "its PSM is not open any more")
            manager.publishL2CAPChannel(withEncryption: false)
            try await recorder.wait(for: "didPublish", count: 2)
            #expect(recorder.lines.last == "didPublish nil 128")
        }
    }

    @Test func aCentralOpensAPublishedChannel() async throws {
        try await Bench.run { bench in
            let (manager, recorder, _, _) = try await offer(bench)
            manager.publishL2CAPChannel(withEncryption: false)
            try await recorder.wait(for: "didPublish nil 128")
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            let far = try await phone.openChannel(psm: 128)
            try await recorder.wait(for: "didOpen 128 nil")
            let channel = try #require(recorder.channels.first)
            channel.inputStream.open()
            await far.send([7])
            await bench.time.settle()
            #expect(channel.inputStream.hasBytesAvailable)
            await phone.disconnect()
            #expect(await far.nextPacket() == nil)
        }
    }
}

/// A delegate that implements what it has to, and nothing else.
private final class SilentDelegate: NSObject, CBPeripheralManagerDelegate {
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {}

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {}
}

extension VirtualCentral {
    /// Does something on the loop, so that nothing is read meanwhile.
    fileprivate func atOnce(_ body: @Sendable (isolated VirtualCentral) -> Void) { body(self) }
}
