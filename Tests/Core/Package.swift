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
// The sources under test are optimised and sanitized. The tests themselves would take longer to compile than to run, so they
// are neither, and are compiled file by file.
let sanitized = lifetimes + [.unsafeFlags(["-sanitize=address"])]
let tests = strict + [.unsafeFlags(["-Onone", "-no-whole-module-optimization"])]
let runtime: [LinkerSetting] = [.unsafeFlags(["-sanitize=address"])]

let package = Package(
    name: "BareBLECore",
    targets: [
        .target(name: "BLECore", swiftSettings: sanitized),
        .target(name: "BLEProfiles", dependencies: ["BLECore"], swiftSettings: sanitized),
        .target(
            name: "BLECapture", dependencies: ["BLECore", "BLEProfiles"], exclude: ["Recording", "BLECapture.docc"],
            swiftSettings: sanitized),
        .target(name: "TestSupport", dependencies: ["BLECore"], path: "Tests/TestSupport", swiftSettings: tests),
        .testTarget(
            name: "BLECoreTests", dependencies: ["BLECore", "BLEProfiles", "TestSupport"], swiftSettings: tests,
            linkerSettings: runtime),
        .testTarget(
            name: "BLEProfilesTests", dependencies: ["BLECore", "BLEProfiles", "TestSupport"], swiftSettings: tests,
            linkerSettings: runtime),
        .testTarget(
            name: "BLECaptureTests", dependencies: ["BLECapture", "BLECore", "TestSupport"], swiftSettings: tests,
            linkerSettings: runtime),
    ],
    swiftLanguageModes: [.v6]
)
