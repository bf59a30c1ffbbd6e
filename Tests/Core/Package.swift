// swift-tools-version: 6.2
import PackageDescription

// The core and its tests alone, with the settings of the package above: what runs sanitized needs no more, and building the
// rest that way would take the greater part of the time.
let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
    name: "BareBLECore",
    targets: [
        .target(name: "BLECore", swiftSettings: strict + [.enableExperimentalFeature("Lifetimes")]),
        // What is to be optimised is what is tested; the tests themselves would take longer to compile than to run.
        .testTarget(
            name: "BLECoreTests", dependencies: ["BLECore"], swiftSettings: strict + [.unsafeFlags(["-Onone"])]),
    ],
    swiftLanguageModes: [.v6]
)
