// swift-tools-version: 5.9
import PackageDescription

// A package as its user writes it, for iOS and Linux: on Apple's systems the module is the system's. In a package of
// your own, name a version of BareBLE instead of the folder.
let package = Package(
    name: "belt-reader",
    dependencies: [.package(name: "BareBLE", path: "../../..")],
    targets: [
        .executableTarget(
            name: "belt-reader",
            dependencies: [
                .product(name: "CoreBluetooth", package: "BareBLE", condition: .when(platforms: [.linux]))
            ]
        )
    ]
)
