import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc

/// Bytes that the allocator gives for what the library keeps, each measured over so many that the rest does not count,
/// and compared with the limits that are published (promise P5).
enum MemoryTrial: Trial {
    static let name = "memory"
    static let what = "memory of links and of the scan table is within the published limits"

    static func run(_ scale: Scale) async throws -> [Figure] {
        // What is made once for all is there before anything is measured.
        try await warmUp()
        var measured: [(MemoryLimit, Int)] = []
        let idle = try await idleLinks()
        measured.append((.idleLink, idle))
        measured.append((.knownLink, try await knownLinks()))
        let full = try await fullLink()
        measured.append((.fullLink, full))
        measured.append((.scanEntry, table(payload: 31) / DeviceTable.capacity))
        // Many short payloads, as many as there are devices of the longest that all of them may have, and few long
        // ones.
        let scan = [31, 128, 1_650].map(table).max() ?? 0
        measured.append((.fullTable, scan))
        measured.append((.worstCase, scan + 8 * full))
        for (limit, bytes) in measured {
            try require(bytes <= limit.bytes, "\(limit.rawValue): \(bytes) bytes, the limit is \(limit.bytes)")
        }
        return measured.map { limit, bytes in
            Figure(limit.rawValue, "\(bytes) bytes, limit \(limit.bytes)")
        }
    }

    private static func growth(_ work: () async throws -> Void) async rethrows -> Int {
        let before = ProcessState.heap
        try await work()
        return ProcessState.heap - before
    }

    private static func warmUp() async throws {
        let central = Central()
        let peer = ServedPeer()
        let device = try await central.attach(descriptor: peer.connect(), name: "warm-up")
        try await device.discover()
        _ = try await device.subscribe(to: 0xFFF1)
        await device.disconnect()
        await peer.disconnect()
    }

    /// Links on which nothing was asked yet; their far ends are descriptors and nothing else.
    private static func idleLinks() async throws -> Int {
        let count = 64
        let central = Central()
        var (devices, ends) = ([Peripheral](), [Int32]())
        devices.reserveCapacity(count)
        ends.reserveCapacity(count)
        let options = ConnectOptions(mtu: 23, observesServiceChanges: false)
        let bytes = try await growth {
            for _ in 0..<count {
                let (ours, theirs) = try LinkSocket.pair()
                ends.append(theirs)
                devices.append(try await central.attach(descriptor: ours, name: "idle", options))
            }
        }
        for device in devices { await device.disconnect() }
        for end in ends { _ = LinkSocket(adopting: end) }
        return bytes / count
    }

    /// Links with the services of a heart rate belt known, and a subscription; what the peers need was there before.
    private static func knownLinks() async throws -> Int {
        let count = 64
        let central = Central()
        var peers: [(ServedPeer, Int32)] = []
        for _ in 0..<count {
            let peer = ServedPeer(.heartRate)
            peers.append((peer, try await peer.connect()))
        }
        var links: [(Peripheral, ValueSequence)] = []
        links.reserveCapacity(count)
        let bytes = try await growth {
            for (_, end) in peers {
                let device = try await central.attach(descriptor: end, name: "known")
                try await device.discover()
                links.append((device, try await device.subscribe(to: 0x2A37)))
            }
        }
        for (device, _) in links { await device.disconnect() }
        for (peer, _) in peers { await peer.disconnect() }
        return bytes / count
    }

    /// One link with everything at its limit: attributes, unconsumed values, waiting calls.
    private static func fullLink() async throws -> Int {
        let central = Central()
        let identifiers = (0..<UInt64(2_046)).map { BluetoothUUID(high: 0xB1E5_0000_7D1C_4F0A + $0 << 32, low: $0) }
        let services =
            [
                VirtualService(
                    0xFFF0,
                    [VirtualCharacteristic(0xFFF1, .notify)]
                        + identifiers.map { VirtualCharacteristic($0, [.read, .write]) })
            ]
        let peer = ServedPeer(VirtualDevice(name: "Full", services: services))
        let end = try await peer.connect()
        let value = [UInt8](repeating: 0xA5, count: 244)
        var link: (Peripheral, ValueSequence)?
        var calls: [Task<Void, Never>] = []
        let bytes = try await growth {
            let device = try await central.attach(descriptor: end, name: "full")
            let database = try await device.discover()
            try require(database.attributeCount > 4_090, "\(database.attributeCount) attributes")
            let values = try await device.subscribe(to: .handle(3))
            for _ in 0..<300 { await peer.send([0x1B, 3, 0] + value) }
            await peer.stopResponding()
            for _ in 0..<64 {
                calls.append(
                    Task { _ = try? await device.write([UInt8](repeating: 1, count: 512), to: .handle(6)) })
            }
            while await device.outstanding < 64 { await Task.yield() }
            while await device.statistics.notifications < 300 { await Task.yield() }
            link = (device, values)
        }
        try require((link?.1.droppedInTotal ?? 0) >= 300 - 256, "the buffer was not full")
        await link?.0.disconnect()
        for call in calls { await call.value }
        await peer.disconnect()
        return bytes
    }

    /// The table with as many devices as it keeps, each with an advertisement and a scan response of that length.
    private static func table(payload: Int) -> Int {
        let before = ProcessState.heap
        var table = DeviceTable()
        let time = BootInstant(nanoseconds: 1)
        for number in 0..<(DeviceTable.capacity * 5 / 4) {
            var report = AdvertisingReport(
                address: ReportSource.peer(number).address, addressType: .random, rssi: -60,
                data: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: payload))
            _ = table.record(report, at: time)
            report.properties.insert(.scanResponse)
            report.data = [UInt8](repeating: 1, count: payload)
            _ = table.record(report, at: time)
        }
        let bytes = ProcessState.heap - before
        // The table lives until here.
        return table.count > 0 ? bytes : 0
    }
}

/// The memory limits of the library, as Docs publishes them.
enum MemoryLimit: String, CaseIterable {
    case idleLink = "idle link"
    case knownLink = "link with known services and a subscription"
    case fullLink = "link with everything at its bound"
    case scanEntry = "device in the scan table"
    case fullTable = "scan table with everything at its bound"
    case worstCase = "eight such links and the table"

    /// The limit in bytes.
    var bytes: Int { kibibytes * 1024 }

    /// The limit as the page has it.
    var kibibytes: Int {
        switch self {
        case .idleLink: 8
        case .knownLink: 16
        case .fullLink: 1_024
        case .scanEntry: 1
        case .fullTable: 4_096
        case .worstCase: 12_288
        }
    }
}
