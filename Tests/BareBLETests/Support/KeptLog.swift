import BLELinux
import Logging

/// Keeps what is logged from a level on: each line's message and one of its details.
final class KeptLog: Sendable {
    private struct Handler: LogHandler {
        let log: KeptLog
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let detail = event.metadata?[log.detail].map { "\($0)" } ?? ""
            log.lines.withLock { $0.append("\(event.message): \(detail)") }
        }
    }

    private let level: Logger.Level
    private let detail: String
    private let lines = Lock<[String]>([])

    init(from level: Logger.Level = .warning, detail: String) {
        self.level = level
        self.detail = detail
    }

    var all: [String] { lines.withLock { $0 } }

    var logger: Logger {
        Logger(label: "test") { _ in Handler(log: self, logLevel: level) }
    }
}
