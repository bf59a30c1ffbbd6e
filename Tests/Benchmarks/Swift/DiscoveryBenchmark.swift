import BLECore
import BareBLE
import BareBLETestKit
import Glibc

/// Counts the requests that discovering each sample database takes, the MTU exchange left out; and those that a
/// connection to a known peer takes before the first request of the application (the level `reconnect`).
///
/// Prints a line `DATABASE ATTRIBUTES MTU LEVEL REQUESTS` each. The number of attributes that were found must be that
/// of the served attributes: a discovery that misses some is no discovery.
enum DiscoveryBenchmark {
    static func run() async {
        for (name, services) in SampleDatabases.all {
            for mtu: UInt16 in [23, 247, 517] {
                for level in [DiscoveryLevel.full, .subscribable] {
                    var server = AttributeServer(VirtualDevice(name: name, services: services))
                    let served = server.attributeCount
                    _ = server.received(ATTExchangeMTURequest(mtu: mtu).bytes)
                    let exchange = server.requestCount
                    let database = discover(level, mtu: mtu, at: &server)
                    if level == .full, database.attributeCount != served {
                        print("\(name): found \(database.attributeCount) of \(served) attributes")
                        exit(1)
                    }
                    print(name, served, mtu, level, server.requestCount - exchange)
                }
                let attributes = AttributeServer(VirtualDevice(name: name, services: services)).attributeCount
                print(name, attributes, mtu, "reconnect", await reconnect(name, services, mtu: Int(mtu)))
            }
        }
    }

    private static func discover(
        _ level: DiscoveryLevel, mtu: UInt16, at server: inout AttributeServer
    ) -> GATTDatabase {
        var discovery = GATTDiscovery(level: level, mtu: mtu, isStrict: true)
        var step = discovery.begin()
        while true {
            switch step {
            case .finished(let database):
                return database
            case .failed(let failure):
                print("discovery failed: \(failure)")
                exit(1)
            case .send(let request):
                guard let response = server.received(request).first else {
                    print("the server did not answer")
                    exit(1)
                }
                if let refusal = try? ATTErrorResponse(response) {
                    step = discovery.received(.error(refusal))
                } else {
                    step = discovery.received(.response(response))
                }
            }
        }
    }

    /// The cost of a connection with a cache until the database is validated.
    private static func reconnect(_ name: String, _ services: [VirtualService], mtu: Int) async -> Int {
        do {
            let hashed = VirtualDevice(name: name, services: services + [.genericAttribute(databaseHash: nil)])
            let (central, peripheral) = (Central(), VirtualPeripheral(hashed))
            let first = try await central.attach(
                descriptor: peripheral.connect(), ConnectOptions(mtu: mtu, observesServiceChanges: false))
            let database = try await first.discover(level: .full)
            let cache = try await first.cache()
            await first.disconnect()
            await peripheral.disconnect()
            let before = await peripheral.requestCount
            let second = try await central.attach(
                descriptor: peripheral.connect(), ConnectOptions(mtu: mtu, cache: cache))
            guard await second.database == database else {
                print("\(name): the cache was not used")
                exit(1)
            }
            let exchange = mtu > 23 ? 1 : 0
            let requests = await peripheral.requestCount - before - exchange
            await second.disconnect()
            return requests
        } catch {
            print("reconnecting failed: \(error)")
            exit(1)
        }
    }
}
