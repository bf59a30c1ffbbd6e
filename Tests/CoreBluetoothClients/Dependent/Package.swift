// swift-tools-version: 5.9
import PackageDescription

// A package as its user writes it, for iOS and Linux: on Apple's systems the module is the system's. In a package of
// your own, name a version of BareBLE instead of the folder.
let coreBluetooth = Target.Dependency.product(
    name: "CoreBluetooth", package: "BareBLE", condition: .when(platforms: [.linux]))
let testKit = Target.Dependency.product(
    name: "CoreBluetoothTestKit", package: "BareBLE", condition: .when(platforms: [.linux]))

let package = Package(
    name: "belt-reader",
    dependencies: [.package(name: "BareBLE", path: "../../..")],
    targets: [
        .target(name: "App", dependencies: [coreBluetooth]),
        .executableTarget(name: "belt-reader", dependencies: ["App", coreBluetooth]),
        .executableTarget(name: "app-virtual", dependencies: ["App", testKit]),
    ]
)
