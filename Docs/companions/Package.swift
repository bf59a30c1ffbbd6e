// swift-tools-version: 6.2
import PackageDescription

// Modules that code written for iOS imports next to CoreBluetooth. Never a dependency of BareBLE: once they are part of
// a build, `canImport(os)` is true for each package in it.
let package = Package(
    name: "corebluetooth-companions",
    products: [
        .library(name: "os", targets: ["os"]),
        .library(name: "OSLog", targets: ["OSLog"]),
        .library(name: "Combine", targets: ["Combine"]),
    ],
    dependencies: [
        .package(name: "BareBLE", path: "../.."),
        .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    ],
    targets: [
        // `import os.log` needs a map of modules with this name.
        .target(name: "OSHeaders"),
        .target(name: "os", dependencies: ["OSHeaders"]),
        .target(name: "OSLog", dependencies: ["os"]),
        .target(
            name: "Combine",
            dependencies: [
                .product(name: "CoreBluetooth", package: "BareBLE"), "OpenCombine",
                .product(name: "OpenCombineDispatch", package: "OpenCombine"),
                .product(name: "OpenCombineFoundation", package: "OpenCombine"),
            ]
        ),
        .testTarget(
            name: "CompanionTests",
            dependencies: ["os", "OSLog", "Combine", .product(name: "CoreBluetooth", package: "BareBLE")]
        ),
    ],
    swiftLanguageModes: [.v5]
)
