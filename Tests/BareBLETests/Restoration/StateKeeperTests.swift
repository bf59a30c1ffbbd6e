import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// The contents of the disk, and a disk that fails.
@Suite(.timeLimit(.minutes(10))) struct KeptStateTests {
    private static let path = "/var/lib/hub/hub.state"

    private let limit = Duration.seconds(20)

    @Test(.row("O25")) func aDamagedStateIsReportedOnce() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, peer) = try await bench.add(RestorationBench.sensor)
            try Data([1, 2, 3]).write(to: URL(filePath: bench.store.path))
            try await bench.run { central, restoration in
                #expect(restoration.damage?.code == .unusableState)
                #expect(restoration.damage?.hint != nil)
                #expect(restoration.movedTo == bench.store.pathOfDamaged)
                #expect(restoration.peers.isEmpty)
                _ = try await central.session(with: peer)
            }
            #expect(try Data(contentsOf: URL(filePath: bench.store.pathOfDamaged)) == Data([1, 2, 3]))
            try await bench.run { _, restoration in
                #expect(restoration.damage == nil && restoration.movedTo == nil)
                #expect(restoration.sessions.count == 1)
            }
        }
    }

    @Test(.row("O08", "O28")) func theErrorOfASecondDaemonNamesTheProcessThatHasTheState() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let first = bench.fresh()
            _ = try await first.restore(from: bench.environment)
            let second = bench.fresh()
            for (number, reason) in [(nil, "this process has it"), (7, "process 7 has it")] as [(Int?, String)] {
                if let number {
                    try Data("\(number)\n".utf8).write(to: URL(filePath: bench.store.lockPath), options: [])
                }
                do throws(BLEError) {
                    _ = try await second.restore(from: bench.environment)
                    Issue.record("both have it")
                } catch {
                    #expect(error.code == .busy)
                    #expect(error.reason == reason)
                }
            }
            await first.suspend()
            _ = try await second.restore(from: bench.environment)
            await second.suspend()
        }
    }

    @Test func aPeerThatHasASessionAlreadyFailsAlone() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, first) = try await bench.add(RestorationBench.sensor)
            let (_, second) = try await bench.add(RestorationBench.sensor)
            try await bench.run { central, _ in
                for peer in [first, second] { _ = try await central.session(with: peer) }
            }
            let central = bench.fresh()
            let own = try await central.session(with: first)
            let restoration = try await central.restore(from: bench.environment)
            #expect(restoration.peer(first)?.failure?.code == .busy)
            #expect(restoration.sessions.map(\.id) == [second])
            await own.disconnect()
            await central.suspend()
        }
    }

    /// The directory goes away and comes back under a daemon that runs.
    @Test(.row("O24")) func aDiskThatFailsIsReportedAndTriedAgain() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, peer) = try await bench.add(RestorationBench.sensor)
            let central = bench.fresh()
            _ = try await central.restore(from: bench.environment)
            try bench.folder.remove()
            let session = try await central.session(with: peer)
            _ = try await session.ready(within: limit)
            let status = try #require(await central.stateStatus)
            #expect(status.failure?.code == .system)
            #expect(status.failure?.hint != nil)
            #expect(status.isPending && status.writes == 0 && status.failures > 0)
            await #expect(throws: error(.system)) { try await central.saveState() }
            try bench.folder.make()
            try await time.clock.sleep(for: .seconds(3600))
            #expect(await central.stateStatus?.failure == nil)
            #expect(await central.stateStatus?.isPending == false)
            #expect(try bench.stored().peers.map(\.peer) == [peer])
            await central.suspend()
        }
    }

    @Test(.row("O24")) func aDiskThatHangsKeepsNoStartWaiting() async throws {
        await VirtualTime.run { time in
            let central = Central(Configuration(), radio: VirtualRadio(time: time))
            let disk = HangingDisk()
            let start = time.task {
                try await central.stored(Self.path) {
                    disk.respond()
                    return 1
                }
            }
            while !disk.isAsked, !Task.isCancelled { await Task.yield() }
            // Else time would stand as long as the disk works.
            time.loop.release()
            await #expect(throws: error(.timedOut)) { _ = try await start.value }
            time.loop.hold()
            #expect(time.now == .zero + .seconds(5))
            disk.open()
        }
    }

    // MARK: The writer alone

    private let peers = (1...6 as ClosedRange<UInt64>).map {
        PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0000 + $0), type: .random)
    }

    /// A disk that returns what the test sets, and keeps what was written.
    private final class Disk: Sendable {
        let written = Lock<[Int]>([])
        let failures = Lock<[BLEError.Code]>([])

        func write(_ state: RestorationState) -> Result<Void, BLEError> {
            let failure = failures.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            if let failure { return .failure(BLEError(failure, during: "save", because: "of the test", hint: "Wait.")) }
            written.withLock { $0.append(state.peers.count) }
            return .success(())
        }
    }

    private func keeper(_ disk: Disk, _ time: VirtualTime) -> StateKeeper {
        StateKeeper(holding: RestorationState(), in: Self.path, on: time.loop, logger: Configuration().logger) {
            disk.write($0)
        }
    }

    @Test func changesAreGathered() async throws {
        try await VirtualTime.run { time in
            let disk = Disk()
            let keeper = keeper(disk, time)
            await change(keeper, adding: peers)
            try await keeper.flush()
            #expect(disk.written.withLock(\.self) == [6], "one write for all that came at once")
            await change(keeper, adding: peers)
            try await keeper.flush()
            #expect(disk.written.withLock(\.self) == [6], "nothing has changed")
            for peer in peers {
                await keeper.forget(peer)
                try await keeper.flush()
            }
            #expect(disk.written.withLock(\.self) == [6, 5, 4, 3, 2, 1, 0])
            #expect(await keeper.status.writes == 7)
            #expect(await keeper.status.failures == 0)
        }
    }

    /// A program may begin a session for each address that a device changes to, and release it.
    @Test func aFullStateForgetsThePeerThatWasAddedFirstAndIsNotInUse() async throws {
        try await VirtualTime.run { time in
            let disk = Disk()
            let keeper = keeper(disk, time)
            let peers = (0...UInt64(RestorationState.limit)).map {
                PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0000 + $0), type: .random)
            }
            let newcomer = try #require(peers.last)
            await change(keeper, adding: Array(peers.dropLast()))
            await keeper.makeRoom(for: peers[5], sparing: [])
            await keeper.makeRoom(for: newcomer, sparing: Set(peers))
            #expect(await keeper.status.forgottenPeers == 0, "it is there, or all others are in use")
            await keeper.makeRoom(for: newcomer, sparing: [peers[0]])
            await keeper.add(RestorationState.Peer(newcomer))
            try await keeper.flush()
            #expect(disk.written.withLock(\.self).last == RestorationState.limit)
            #expect(await keeper.status.forgottenPeers == 1)
            await keeper.makeRoom(for: peers[0], sparing: [])
            #expect(await keeper.status.forgottenPeers == 1, "it is there")
            await keeper.makeRoom(for: peers[1], sparing: [])
            #expect(await keeper.status.forgottenPeers == 2, "it was forgotten")
        }
    }

    /// A caller that waits longer than the central's end must not take that for success.
    @Test(.row("O24")) func aFlushToADiskThatHangsFailsWhenTheCentralEnds() async {
        await VirtualTime.run { time in
            let disk = HangingDisk()
            let keeper = StateKeeper(
                holding: RestorationState(), in: Self.path, on: time.loop, logger: Configuration().logger
            ) { _ in
                disk.respond()
                return .success(())
            }
            let patient = time.task {
                await change(keeper, adding: peers)
                try await keeper.flush(until: .zero + .seconds(60))
            }
            while !disk.isAsked, !Task.isCancelled { await Task.yield() }
            await keeper.close()
            // Else time would stand as long as the disk works.
            time.loop.release()
            let error = await #expect(throws: BLEError.self) { try await patient.value }
            #expect(error?.code == .timedOut && error?.subject == Self.path)
            time.loop.hold()
            disk.open()
        }
    }

    private func change(_ keeper: isolated StateKeeper, adding peers: [PeerID]) {
        for peer in peers { keeper.add(RestorationState.Peer(peer)) }
    }

    /// Both at once: else the disk may have failed before anybody waits for it.
    private func add(_ peer: PeerID, _ keeper: isolated StateKeeper) async throws {
        keeper.add(RestorationState.Peer(peer))
        try await keeper.flush()
    }

    @Test(.row("O24")) func aFullDiskIsTriedAgainLessAndLess() async throws {
        try await VirtualTime.run { time in
            let disk = Disk()
            disk.failures.withLock { $0 = Array(repeating: .diskFull, count: 4) }
            let keeper = keeper(disk, time)
            await #expect(throws: error(.diskFull)) { try await add(peers[0], keeper) }
            // 10, 20 and 40 s.
            for (pause, failures) in [(9, 1), (2, 2), (18, 2), (2, 3), (38, 3), (2, 4)] {
                try await time.clock.sleep(for: .seconds(pause))
                #expect(await keeper.status.failures == failures)
            }
            #expect(await keeper.status.failure?.hint == "Wait.")
            // A change does not wait for the pause.
            await keeper.add(RestorationState.Peer(peers[1]))
            try await keeper.flush()
            #expect(disk.written.withLock(\.self) == [2])
            #expect(await keeper.status.failure == nil)
            #expect(time.loop.timerCount == 0)
        }
    }

    @Test func afterTheEndNothingIsWritten() async throws {
        try await VirtualTime.run { time in
            let disk = Disk()
            disk.failures.withLock { $0 = [.diskFull] }
            var keeper: StateKeeper? = keeper(disk, time)
            await #expect(throws: error(.diskFull)) { try await add(peers[0], #require(keeper)) }
            await keeper?.freeze()
            await keeper?.forget(peers[0])
            try await keeper?.flush()
            #expect(disk.written.withLock(\.self) == [1])
            await keeper?.close()
            await keeper?.forget(peers[0])
            try await keeper?.flush()
            keeper = nil
            await time.settle()
            #expect(disk.written.withLock(\.self) == [1])
            #expect(time.loop.timerCount == 0)
        }
    }

    /// The write in progress completes, and no other process gets the store before.
    @Test(.row("O24")) func aDiskThatHangsIsNotWaitedForForever() async throws {
        await VirtualTime.run { time in
            let disk = HangingDisk()
            let isFree = Lock(false)
            let keeper = StateKeeper(
                holding: RestorationState(), in: Self.path, on: time.loop, logger: Configuration().logger
            ) { _ in
                disk.respond()
                return .success(())
            } letGo: {
                isFree.withLock { $0 = true }
            }
            await keeper.add(RestorationState.Peer(peers[0]))
            while !disk.isAsked, !Task.isCancelled { await Task.yield() }
            // Else time would stand as long as the disk works.
            time.loop.release()
            let error = await #expect(throws: BLEError.self) { try await keeper.flush(until: time.now + .seconds(5)) }
            #expect(error?.code == .timedOut && error?.subject == Self.path)
            time.loop.hold()
            #expect(time.now == .zero + .seconds(5))
            await keeper.close()
            #expect(!isFree.withLock { $0 })
            disk.open()
            while !isFree.withLock({ $0 }), !Task.isCancelled { await Task.yield() }
            #expect(await keeper.status.writes == 1)
        }
    }

    @Test func aKeeperThatIsDroppedLeavesNoTimer() async throws {
        await VirtualTime.run { time in
            let disk = Disk()
            disk.failures.withLock { $0 = [.diskFull] }
            var keeper: StateKeeper? = keeper(disk, time)
            await #expect(throws: error(.diskFull)) { try await add(peers[0], #require(keeper)) }
            #expect(time.loop.timerCount == 1)
            keeper = nil
            await time.settle()
            #expect(time.loop.timerCount == 0)
        }
    }
}
