// swift-tools-version: 6.2
import PackageDescription

// The modules that keep bonds on the disk and give their keys to the kernel, and the tests of that, for `run`, which
// puts faults into copies of them. The test kit and cryptography are left out: building them would take most of the
// time.
let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
    name: "BareBLEDisk",
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2")
    ],
    targets: [
        .target(name: "CBluetooth"),
        .target(name: "BLECore", swiftSettings: strict + [.enableExperimentalFeature("Lifetimes")]),
        .target(name: "BLELinux", dependencies: ["BLECore", "CBluetooth"], swiftSettings: strict),
        .target(
            name: "BareBLE",
            dependencies: ["BLECore", "BLELinux", .product(name: "Logging", package: "swift-log")],
            swiftSettings: strict
        ),
        .target(name: "FaultySystem", path: "Tests/FaultySystem"),
        .target(name: "TestSupport", dependencies: ["BLECore"], path: "Tests/TestSupport", swiftSettings: strict),
        .testTarget(
            name: "BLELinuxTests",
            dependencies: ["BLECore", "BLELinux"],
            sources: ["ManagementSocketTests.swift"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BareBLETests",
            dependencies: ["BareBLE", "BLECore", "TestSupport"],
            sources: ["Security/BondStoreTests.swift"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "FaultTests",
            dependencies: ["BareBLE", "BLECore", "BLELinux", "FaultySystem", "TestSupport"],
            sources: ["DamagedFileTests.swift", "FaultPlan.swift", "KilledWriterTests.swift", "StoredThing.swift"],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)
