import BLECore
import BareBLETestKit
import Glibc

/// Counts the requests that discovering each sample database takes, the MTU exchange left out.
///
/// Prints a line `DATABASE ATTRIBUTES MTU LEVEL REQUESTS` each. The number of attributes that were found must be that of the
/// served table: a discovery that misses some is no discovery.
enum DiscoveryBenchmark {
    static func run() {
        for (name, services) in SampleDatabases.all {
            for mtu: UInt16 in [23, 247, 517] {
                for level in [DiscoveryLevel.full, .subscribable] {
                    var server = AttributeServer(VirtualDevice(name: name, services: services))
                    let served = server.table.attributes.count
                    _ = server.received(ATTExchangeMTURequest(mtu: mtu).bytes)
                    let exchange = server.requestCount
                    let database = discover(level, mtu: mtu, at: &server)
                    if level == .full, database.attributeCount != served {
                        print("\(name): found \(database.attributeCount) of \(served) attributes")
                        exit(1)
                    }
                    print(name, served, mtu, level, server.requestCount - exchange)
                }
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
                guard let answer = server.received(request).first else {
                    print("the server did not answer")
                    exit(1)
                }
                if let refusal = try? ATTErrorResponse(answer) {
                    step = discovery.received(.error(refusal))
                } else {
                    step = discovery.received(.response(answer))
                }
            }
        }
    }
}
