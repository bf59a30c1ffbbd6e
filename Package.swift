// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
    name: "BareBLE",
    products: [
        .library(name: "BareBLE", targets: ["BareBLE", "BLECore"]),
        .library(name: "BLEProfiles", targets: ["BLEProfiles"]),
        .library(name: "BLECapture", targets: ["BLECapture"]),
        .library(name: "BareBLECrypto", targets: ["BareBLECrypto"]),
        .library(name: "BareBLEFoundation", targets: ["BareBLEFoundation"]),
        .library(name: "BareBLETestKit", targets: ["BareBLETestKit"]),
        .library(name: "CoreBluetooth", targets: ["CoreBluetooth"]),
        .library(name: "CoreBluetoothTestKit", targets: ["CoreBluetoothTestKit"]),
        .executable(name: "blescan", targets: ["blescan"]),
        .executable(name: "bareble-recover", targets: ["bareble-recover"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"),
    ],
    targets: [
        .target(name: "CBluetooth"),
        .target(
            name: "BLECore",
            swiftSettings: strict + [.enableExperimentalFeature("Lifetimes")]
        ),
        .target(
            name: "BLELinux",
            dependencies: ["BLECore", "CBluetooth"],
            swiftSettings: strict
        ),
        .target(
            name: "BareBLE",
            dependencies: ["BLECore", "BLELinux", .product(name: "Logging", package: "swift-log")],
            swiftSettings: strict
        ),
        .target(
            name: "BLEProfiles",
            dependencies: ["BLECore"],
            swiftSettings: strict + [.enableExperimentalFeature("Lifetimes")]
        ),
        .target(
            name: "BLECapture",
            dependencies: ["BareBLE", "BLECore", "BLELinux", "BLEProfiles"],
            swiftSettings: strict + [.enableExperimentalFeature("Lifetimes")]
        ),
        .target(
            name: "BareBLECrypto",
            dependencies: [
                "BLECore",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "BareBLEFoundation",
            dependencies: ["BareBLE", "BLECore"],
            swiftSettings: strict
        ),
        .target(
            name: "BareBLETestKit",
            dependencies: ["BareBLE", "BLECapture", "BLECore", "BLELinux", "BLEProfiles"],
            swiftSettings: strict
        ),
        .target(name: "CoreBluetoothHeaders"),
        .target(
            name: "CoreBluetooth",
            dependencies: [
                "BareBLE", "BareBLECrypto", "BLECore", "BLELinux", "CoreBluetoothHeaders",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CoreBluetoothTestKit",
            dependencies: [
                "BareBLE", "BareBLETestKit", "CoreBluetooth", .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "blescan",
            dependencies: [
                "BareBLE", "BareBLECrypto", "BareBLETestKit", "BLECapture", "BLECore", "BLELinux", "BLEProfiles",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(name: "bareble-recover", dependencies: ["BLECore", "BLELinux"], swiftSettings: strict),
        .executableTarget(
            name: "sample-daemon",
            dependencies: ["BareBLE"],
            path: "Tests/SampleDaemon",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "link-trials",
            dependencies: ["BareBLE", "BareBLECrypto", "BLEProfiles"],
            path: "Tests/LinkTrials",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "pairing-trials",
            dependencies: ["BareBLE", "BareBLECrypto", .product(name: "Logging", package: "swift-log")],
            path: "Tests/PairingTrials",
            swiftSettings: strict
        ),
        .target(
            name: "CHeapUse",
            path: "Tests/LoadTrials/C"
        ),
        .executableTarget(
            name: "load-trials",
            dependencies: [
                "BareBLE", "BareBLETestKit", "BLECore", "BLELinux", "CHeapUse",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/LoadTrials/Swift",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "benchmarks",
            dependencies: ["BareBLE", "BareBLETestKit", "BLECore"],
            path: "Tests/Benchmarks/Swift",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "facade-benchmark",
            dependencies: ["BareBLE", "BareBLETestKit", "BLECore", "CoreBluetooth"],
            path: "Tests/Benchmarks/Facade",
            swiftSettings: strict
        ),
        .target(name: "FaultySystem", path: "Tests/FaultySystem"),
        .executableTarget(
            name: "simulation",
            dependencies: ["BareBLE", "BareBLETestKit", "BLECore", "BLELinux", "FaultySystem"],
            path: "Tests/Simulation",
            swiftSettings: strict
        ),
        .target(name: "TestSupport", dependencies: ["BLECore"], path: "Tests/TestSupport", swiftSettings: strict),
        .testTarget(
            name: "BLECoreTests",
            dependencies: ["BLECore", "BLEProfiles", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BLEProfilesTests",
            dependencies: ["BLECore", "BLEProfiles", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BLECaptureTests",
            dependencies: ["BareBLE", "BareBLETestKit", "BLECapture", "BLECore", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BLELinuxTests",
            dependencies: ["BLECore", "BLELinux", "CBluetooth", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BareBLETests",
            dependencies: [
                "BareBLE", "BareBLECrypto", "BareBLETestKit", "BLECapture", "BLECore", "BLELinux", "BLEProfiles",
                "TestSupport", .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BareBLECryptoTests",
            dependencies: ["BareBLECrypto", "BLECore", "BLEProfiles"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BareBLEFoundationTests",
            dependencies: ["BareBLEFoundation", "BareBLE", "BareBLETestKit", "BLECore"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BareBLETestKitTests",
            dependencies: [
                "BareBLE", "BareBLETestKit", "BLECore", "BLELinux", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        // Programs in the manner of iOS, with the settings that such programs have.
        .target(
            name: "ClientInSwift5",
            dependencies: ["CoreBluetooth"],
            path: "Tests/CoreBluetoothClients/Swift5",
            swiftSettings: [.swiftLanguageMode(.v5)]
        ),
        .target(
            name: "ClientInSwift6",
            dependencies: ["CoreBluetooth"],
            path: "Tests/CoreBluetoothClients/Swift6"
        ),
        .executableTarget(
            name: "corebluetooth-scanner",
            dependencies: ["CoreBluetooth"],
            path: "Tests/CoreBluetoothClients/Scanner"
        ),
        .executableTarget(
            name: "corebluetooth-dispatch-scanner",
            dependencies: ["CoreBluetooth"],
            path: "Tests/CoreBluetoothClients/DispatchScanner"
        ),
        .executableTarget(
            name: "corebluetooth-walk",
            dependencies: ["ClientInSwift5", "CoreBluetooth"],
            path: "Tests/CoreBluetoothClients/Walk",
            swiftSettings: [.swiftLanguageMode(.v5)]
        ),
        .executableTarget(
            name: "corebluetooth-dispatch-walk",
            dependencies: ["ClientInSwift5", "CoreBluetoothTestKit"],
            path: "Tests/CoreBluetoothClients/DispatchWalk",
            swiftSettings: [.swiftLanguageMode(.v5)]
        ),
        .testTarget(
            name: "CoreBluetoothTests",
            dependencies: [
                "CoreBluetooth", "CoreBluetoothTestKit", "ClientInSwift5", "ClientInSwift6", "BareBLE",
                "BareBLETestKit", "BLECore", "BLELinux", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "FaultTests",
            dependencies: [
                "BareBLE", "BareBLETestKit", "BLECore", "BLELinux", "FaultySystem", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["simulation", "BareBLE", "BareBLETestKit", "BLECore"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "blescanTests",
            dependencies: [
                "blescan", "BareBLE", "BareBLETestKit", "BLECapture", "BLECore", "BLELinux", "BLEProfiles",
                "CBluetooth", "TestSupport", .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)
