import BareBLE
import BareBLETestKit
import TestSupport
import Testing

@Suite struct LinkEndTests {
    private let central = Central()

    @Test(.row("C03")) func everyWaitingCallFailsOnce() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        await peripheral.stopResponding()
        let failures = await withTaskGroup(of: BLEError?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    do throws(BLEError) {
                        _ = try await device.read(.handle(3))
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            while await peripheral.receivedCount < 2, !Task.isCancelled { await Task.yield() }
            await peripheral.disconnect()
            return await group.reduce(into: [BLEError?]()) { $0.append($1) }
        }
        #expect(failures.count == 20)
        #expect(failures.allSatisfy { $0?.code == .disconnected })
        await #expect(throws: error(.disconnected)) { try await device.read(0x2A19) }
    }

    @Test(.row("T08")) func cancellationReleasesTheCallerAndKeepsTheLink() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        await peripheral.stopResponding()
        let task = Task { try await device.read(.handle(3)) }
        while await peripheral.receivedCount < 2, !Task.isCancelled { await Task.yield() }
        task.cancel()
        await #expect(throws: error(.cancelled)) { try await task.value }
        #expect(await device.isConnected)
        // The late response belongs to the cancelled call, and must not become the next one's.
        let next = Task { try await device.read(.handle(5)) }
        await peripheral.resumeResponding()
        await peripheral.send(raw: [0x0B, 0xEE])
        #expect(try await next.value != [0xEE])
    }

    @Test func deadlineReleasesTheCallerAndKeepsTheLink() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        await peripheral.stopResponding()
        await #expect(throws: error(.timedOut)) {
            try await device.read(.handle(3), timeout: .milliseconds(30))
        }
        #expect(await device.isConnected)
    }

    @Test func disconnectIsReported() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        async let reason = device.disconnected()
        await device.disconnect()
        #expect(await reason == .requested)
        #expect(await device.disconnectReason == .requested)
    }

    /// Cancelled before it begins, a call must neither be sent nor hang.
    @Test(.timeLimit(.minutes(10))) func aCancelledTaskSendsNothing() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let count = await peripheral.receivedCount
        let task = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try await device.read(.handle(3))
        }
        await #expect(throws: error(.cancelled)) { try await task.value }
        #expect(await peripheral.receivedCount == count)
    }

    @Test func thePeerIsNotOfferedMoreThanWasAskedFor() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral, ConnectOptions(mtu: 50))
        await peripheral.send(raw: [0x02, 0xF7, 0x00])
        _ = try await device.read(.handle(3))
        let sent = await peripheral.transcript.steps.map(\.event)
        #expect(sent.contains(.sent([0x03, 50, 0])))
        #expect(await device.mtu == 50)
    }

    @Test(.row("L04")) func reasonsOfTheEnd() {
        #expect(DisconnectReason(errno: 103, status: nil) == .adapterLost)
        #expect(DisconnectReason(errno: 110, status: .connectionTimeout) == .supervisionTimeout)
        #expect(DisconnectReason(errno: 104, status: .remoteUserTerminated) == .byPeer(.remoteUserTerminated))
        // The kernel has the same number for most of these.
        let statuses: [HCIStatus] = [
            .connectionTimeout, .remoteUserTerminated, .localHostTerminated, .linkResponseTimeout, .micFailure,
            .connectionFailedToBeEstablished,
        ]
        #expect(statuses.map(\.rawValue) == [0x08, 0x13, 0x16, 0x22, 0x3D, 0x3E])
        let reasons = statuses.map { DisconnectReason(errno: 38, status: $0) }
        #expect(Set(reasons).count == 6)
        #expect(reasons.map(\.hciStatus) == statuses)
        #expect(reasons[4].description.contains("mic failure"))
        // Another program has ended the link; `.requested` is for this one.
        let foreign = DisconnectReason(errno: 103, status: .localHostTerminated)
        #expect(foreign == .other(.localHostTerminated, errorNumber: 103))
    }

    @Test func aConnectToAMissingSocketFails() async throws {
        let failure = await #expect(throws: BLEError.self) {
            _ = try await central.connect(toSocket: "/nonexistent/att.sock")
        }
        #expect(failure?.code == .connectFailed)
        #expect(failure?.errorNumber == 2)
    }

    @Test func aSilentPeerEndsTheConnect() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let descriptor = try await peripheral.connect()
        await peripheral.stopResponding()
        await #expect(throws: error(.timedOut)) {
            _ = try await central.attach(descriptor: descriptor, ConnectOptions(timeout: .milliseconds(30)))
        }
    }

    @Test func serveRunsADaemonOnOneThread() async throws {
        let value = try Central.serve { central in
            try await central.attach(to: VirtualPeripheral(.battery)).read(0x2A19)
        }
        #expect(value == [64])
    }
}
