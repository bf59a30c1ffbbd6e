// swift-tools-version: 6.2
import PackageDescription

// The modules that read foreign bytes and their tests, with the settings of the package above. What runs sanitized
// needs no more, and building the rest that way would take most of the time. The recorder is left out: it needs the
// host.
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
    name: "BareBLECore",
    targets: [
        .target(name: "BLECore", swiftSettings: lifetimes),
        .target(name: "BLEProfiles", dependencies: ["BLECore"], swiftSettings: lifetimes),
        .target(
            name: "BLECapture", dependencies: ["BLECore", "BLEProfiles"], exclude: ["Recording", "BLECapture.docc"],
            swiftSettings: lifetimes),
        .target(name: "TestSupport", dependencies: ["BLECore"], path: "Tests/TestSupport", swiftSettings: strict),
        .testTarget(
            name: "BLECoreTests", dependencies: ["BLECore", "BLEProfiles", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "BLEProfilesTests", dependencies: ["BLECore", "BLEProfiles", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "BLECaptureTests", dependencies: ["BLECapture", "BLECore", "TestSupport"], exclude: ["Recording"],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
