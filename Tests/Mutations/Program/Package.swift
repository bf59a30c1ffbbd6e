// swift-tools-version: 6.2
import PackageDescription

// blescan, and those tests of it that do not start it, for `run`, which puts faults into a copy of it.
let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let lifetimes = strict + [.enableExperimentalFeature("Lifetimes")]

let package = Package(
    name: "BareBLEProgram",
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .target(name: "CBluetooth"),
        .target(name: "BLECore", swiftSettings: lifetimes),
        .target(name: "BLELinux", dependencies: ["BLECore", "CBluetooth"], swiftSettings: strict),
        .target(
            name: "BareBLE",
            dependencies: ["BLECore", "BLELinux", .product(name: "Logging", package: "swift-log")],
            swiftSettings: strict
        ),
        .target(name: "BLEProfiles", dependencies: ["BLECore"], swiftSettings: lifetimes),
        .target(
            name: "BLECapture", dependencies: ["BareBLE", "BLECore", "BLELinux", "BLEProfiles"],
            swiftSettings: lifetimes),
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
            name: "BareBLETestKit", dependencies: ["BareBLE", "BLECapture", "BLECore", "BLELinux", "BLEProfiles"],
            swiftSettings: strict),
        .executableTarget(
            name: "blescan",
            dependencies: [
                "BareBLE", "BareBLECrypto", "BareBLETestKit", "BLECapture", "BLECore", "BLELinux", "BLEProfiles",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),
        .target(name: "TestSupport", dependencies: ["BLECore"], path: "Tests/TestSupport", swiftSettings: strict),
        .testTarget(
            name: "blescanTests",
            dependencies: ["blescan", "BareBLE", "BLECapture", "BLECore", "BLELinux", "BLEProfiles", "TestSupport"],
            sources: [
                "Options/CommandWordsTests.swift", "Options/DurationArgumentTests.swift",
                "Options/NearNamesTests.swift", "Output/ASCIITextTests.swift", "Output/FailureTests.swift",
                "Output/TraceTests.swift", "Running/BuiltProgram.swift", "Running/PseudoTerminal.swift",
                "Running/Referee.swift", "Scanning/AirCapture.swift", "Scanning/CSVLineTests.swift",
                "Scanning/ScanLinesTests.swift", "Screen/Air.swift", "Screen/ScanScreenControlTests.swift",
                "Serving/ServedRequestTests.swift",
            ],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)
