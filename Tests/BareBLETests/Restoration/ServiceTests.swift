import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Testing

@Suite(.timeLimit(.minutes(10))) struct ServiceNotifierTests {
    @Test func aDaemonReportsHowItIs() async throws {
        let manager = try VirtualServiceManager()
        let notifier = try #require(ServiceNotifier(manager.environment(watchdog: .seconds(30))))
        #expect(notifier.watchdogInterval == .seconds(30))
        try notifier.ready(status: "two\nREADY=0 links")
        try notifier.watchdog()
        try notifier.status("one link")
        try notifier.stopping()
        try await notifier.barrier()
        #expect(
            await manager.assignments == [
                "READY=1", "STATUS=two READY=0 links", "WATCHDOG=1", "STATUS=one link", "STOPPING=1", "BARRIER=1",
            ])
    }

    @Test func aPathServesAsWell() async throws {
        let path = "/tmp/bareble-\(getpid())-notify"
        defer { unsafe unlink(path) }
        let manager = try VirtualServiceManager(path: path)
        try ServiceNotifier(manager.environment())?.ready()
        await manager.wait { $0 == ["READY=1"] }
    }

    @Test func withoutAManagerThereIsNoNotifier() throws {
        for socket in ["", "@", "/", "run/notify", "vsock:2:9"] {
            let environment = ServiceEnvironment(variables: ["NOTIFY_SOCKET": socket], processID: 1)
            #expect(ServiceNotifier(environment) == nil, "\(socket)")
        }
        #expect(ServiceNotifier(ServiceEnvironment(variables: [:], processID: 1)) == nil)
        let gone = ServiceEnvironment(variables: ["NOTIFY_SOCKET": "@bareble-nobody"], processID: 1)
        let notifier = try #require(ServiceNotifier(gone))
        #expect(throws: error(.system)) { try notifier.ready() }
        let long = ServiceEnvironment(
            variables: ["NOTIFY_SOCKET": "/" + String(repeating: "x", count: 200)], processID: 1)
        #expect(throws: error(.system)) { try ServiceNotifier(long)?.ready() }
    }

    @Test func aManagerThatHangsIsNotWaitedForLonger() async throws {
        let manager = try VirtualServiceManager()
        await manager.ignoreBarriers()
        let notifier = try #require(ServiceNotifier(manager.environment()))
        await #expect(throws: error(.timedOut)) {
            try await notifier.barrier(timeout: .milliseconds(50))
        }
    }

    /// A kernel may let no more than ten messages wait for a process. The barrier can wait for room as well.
    @Test func aBarrierWaitsForRoom() async throws {
        let address = "@bareble-\(getpid())-full"
        let descriptor = try #require(ServiceSocket(address)).listen()
        defer { MemoryFile.close(descriptor) }
        let notifier = try #require(
            ServiceNotifier(ServiceEnvironment(variables: ["NOTIFY_SOCKET": address], processID: 1)))
        var sent = 0
        #expect(throws: error(.busy)) {
            while true {
                try notifier.watchdog()
                sent += 1
            }
        }
        await #expect(throws: error(.timedOut)) {
            try await notifier.barrier(timeout: .milliseconds(50))
        }
        let barrier = Task { try await notifier.barrier(timeout: .seconds(60)) }
        var received: [String] = []
        while received.last != "BARRIER=1", !Task.isCancelled {
            guard let (text, descriptors) = ServiceSocket.receive(at: descriptor) else {
                await Task.yield()
                continue
            }
            received.append(text)
            for number in descriptors { MemoryFile.close(number) }
        }
        try await barrier.value
        #expect(received == Array(repeating: "WATCHDOG=1", count: sent) + ["BARRIER=1"])
    }

    @Test func variablesAreForOneProcess() {
        func environment(_ variables: [String: String]) -> ServiceEnvironment {
            ServiceEnvironment(variables: variables, processID: 42)
        }
        let passed = environment(["LISTEN_PID": "42", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "a:b"]).descriptors
        #expect(passed.map(\.number) == [3, 4, 5])
        #expect(passed.map(\.name) == ["a", "b", "unknown"])
        #expect(environment(["LISTEN_PID": "41", "LISTEN_FDS": "3"]).descriptors.isEmpty)
        #expect(environment(["LISTEN_FDS": "3"]).descriptors.isEmpty)
        for count in ["", "-1", "0", "x", "99999999999"] {
            #expect(environment(["LISTEN_PID": "42", "LISTEN_FDS": count]).descriptors.isEmpty)
        }
        #expect(environment(["LISTEN_PID": "42", "LISTEN_FDS": "2147483647"]).descriptors.count == 4_096)
        #expect(environment(["WATCHDOG_USEC": "2000000"]).watchdogInterval == .seconds(2))
        #expect(environment(["WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"]).watchdogInterval == nil)
        #expect(environment(["WATCHDOG_USEC": "0"]).watchdogInterval == nil)
    }
}

@Suite(.timeLimit(.minutes(10))) struct DescriptorStoreTests {
    private let central = Central()

    @Test func aLinkIsKeptByTheManager() async throws {
        let manager = try VirtualServiceManager()
        let store = DescriptorStore(try #require(ServiceNotifier(manager.environment())))
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19)
        let link = try await device.detach()
        let name = try await store.put(link)
        _ = values
        #expect(name == "bareble.\(device.name)")
        #expect(link.fileDescriptor == nil)
        #expect(await manager.storedNames == [name, name])
        #expect(await peripheral.isConnected)
        try await peripheral.notify(0x2A19, [9])
        await #expect(throws: error(.invalidArgument)) { try await store.put(link) }

        let contents = try await passed(manager)
        #expect(contents.damaged.isEmpty)
        let again = try await central.adopt(try #require(contents.links.first))
        var beats = try await #require(await again.restoredSubscriptions.first).adopt().makeAsyncIterator()
        #expect(try await beats.next()?.bytes == [9])
        #expect(try await again.read(0x2A19) == [9])
    }

    @Test func aNameIsStoredOnce() async throws {
        let manager = try VirtualServiceManager()
        let notifier = try #require(ServiceNotifier(manager.environment()))
        let store = DescriptorStore(notifier)
        let (first, second) = (VirtualPeripheral(.battery), VirtualPeripheral(.battery))
        try await store.put(try await central.attach(to: first).detach())
        let name = try await store.put(try await central.attach(to: second).detach())
        #expect(await manager.storedNames.count == 2)
        while await first.isConnected, !Task.isCancelled { await Task.yield() }
        try store.remove(named: name)
        try await notifier.barrier()
        #expect(await manager.storedNames == [])
        while await second.isConnected, !Task.isCancelled { await Task.yield() }
    }

    @Test func namesAreWhatTheManagerTakes() async throws {
        let odd = try await central.attach(
            descriptor: try await VirtualPeripheral(.battery).connect(),
            name: "a:b c/ü\n" + String(repeating: "x", count: 300))
        let name = DescriptorStore.name(of: try await odd.detach())
        #expect(name.hasPrefix("bareble.a-b-c/--xxx"))
        #expect(name.utf8.count <= 255)
    }

    /// Half a link, two halves of the same kind, and rubbish in the file.
    @Test func whatIsDamagedIsClosedAndReported() async throws {
        let manager = try VirtualServiceManager()
        let notifier = try #require(ServiceNotifier(manager.environment()))
        let socket = try #require(ServiceSocket(manager.address))
        let (one, two) = try LinkSocket.pair()
        let file = try MemoryFile.make("test", holding: [1, 2, 3])
        try socket.send("FDSTORE=1\nFDNAME=bareble.half", descriptors: [one])
        try socket.send("FDSTORE=1\nFDNAME=bareble.rubbish", descriptors: [two, file])
        try socket.send("FDSTORE=1\nFDNAME=other", descriptors: [file])
        try await notifier.barrier()
        for number in [one, two, file] { MemoryFile.close(number) }
        let contents = try await passed(manager)
        #expect(contents.links.isEmpty)
        #expect(Set(contents.damaged.keys) == ["bareble.half", "bareble.rubbish"])
        #expect(contents.damaged.values.allSatisfy { $0.code == .unusableState })
        #expect(contents.others.map(\.name) == ["other"])
        for other in contents.others { MemoryFile.close(other.number) }
    }

    /// What a local peripheral has handed over is for `LocalPeripheral.restore(from:)`, and untouched until then.
    @Test func whatALocalPeripheralHasHandedOverIsNotTheApplications() async throws {
        let manager = try VirtualServiceManager()
        let notifier = try #require(ServiceNotifier(manager.environment()))
        let socket = try #require(ServiceSocket(manager.address))
        let (one, two) = try LinkSocket.pair()
        let names = ["bareble-listener.00-11-22-33-44-55", "bareble-central.1.phone", "bareble-mine"]
        for (name, number) in zip(names, [one, two, one]) {
            try socket.send("FDSTORE=1\nFDNAME=\(name)", descriptors: [number])
        }
        try await notifier.barrier()
        for number in [one, two] { MemoryFile.close(number) }
        let environment = ServiceEnvironment(descriptors: await manager.takeStored())
        #expect(environment.descriptors.count == 3)
        let contents = DescriptorStore.take(from: environment)
        #expect(contents.others.map(\.name) == ["bareble-mine"] && contents.links.isEmpty && contents.damaged.isEmpty)
        for descriptor in environment.descriptors {
            #expect(LinkSocket.livesAcrossExec(descriptor.number))
            MemoryFile.close(descriptor.number)
        }
    }

    /// The environment of the daemon's next run: a manager passes descriptors from 3 on; in this test their numbers
    /// are arbitrary.
    private func passed(_ manager: VirtualServiceManager) async throws -> DescriptorStore.Contents {
        DescriptorStore.take(from: ServiceEnvironment(descriptors: await manager.takeStored()))
    }
}
