// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let bareble = Target.Dependency.product(name: "BareBLE", package: "BareBLE")
let crypto = Target.Dependency.product(name: "BareBLECrypto", package: "BareBLE")
let profiles = Target.Dependency.product(name: "BLEProfiles", package: "BareBLE")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")

// Daemons to copy. In a package of your own, replace `../..` by the path of your checkout.
let package = Package(
    name: "bareble-examples",
    dependencies: [
        .package(name: "BareBLE", path: "../.."),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .target(name: "SystemService", dependencies: [bareble, crypto, logging, lifecycle], swiftSettings: strict),
        .target(name: "AdvertisementLogging", dependencies: [bareble, lifecycle], swiftSettings: strict),
        .target(name: "HeartRateLogging", dependencies: [bareble, profiles, lifecycle], swiftSettings: strict),
        .target(name: "UARTBridging", dependencies: [bareble, profiles, lifecycle], swiftSettings: strict),
        .target(name: "LockReading", dependencies: [bareble], swiftSettings: strict),
        .target(name: "HeartRateSensing", dependencies: [bareble, profiles, lifecycle], swiftSettings: strict),
        .target(name: "UARTServing", dependencies: ["UARTBridging", bareble, lifecycle], swiftSettings: strict),
        .target(name: "Provisioning", dependencies: [bareble, lifecycle], swiftSettings: strict),
        .target(name: "WeightLogging", dependencies: [bareble, profiles, lifecycle], swiftSettings: strict),
        .executableTarget(
            name: "advertisement-logger",
            dependencies: ["AdvertisementLogging", "SystemService", bareble],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "heart-rate-logger",
            dependencies: ["HeartRateLogging", "SystemService"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "uart-bridge",
            dependencies: ["SystemService", "UARTBridging"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "lock-reader",
            dependencies: ["LockReading", bareble, crypto],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "weight-logger",
            dependencies: ["SystemService", "WeightLogging", bareble],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "heart-rate-sensor",
            dependencies: ["HeartRateSensing", "SystemService", bareble],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "uart-peripheral",
            dependencies: ["SystemService", "UARTServing", bareble],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "wifi-provisioning",
            dependencies: ["Provisioning", "SystemService", bareble],
            swiftSettings: strict
        ),
        .testTarget(
            name: "ExampleTests",
            dependencies: [
                "AdvertisementLogging", "HeartRateLogging", "HeartRateSensing", "LockReading", "Provisioning",
                "SystemService", "UARTBridging",
                "UARTServing", "WeightLogging", bareble, logging, lifecycle, profiles,
                .product(name: "BareBLETestKit", package: "BareBLE"),
            ],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)
