import ArgumentParser
import BLECapture
import BLECore
import BLELinux
import FoundationEssentials
import Glibc

/// Times in the output.
enum Timestamp {
    /// The wall clock in RFC 3339 with milliseconds, in UTC.
    static func now() -> String {
        text(.now)
    }

    /// Returns the same for a time since 1970-01-01 00:00 UTC; outside the years 1 to 9999, the nearest of these.
    static func text(sinceEpoch time: Duration) -> String {
        let seconds = time.components.seconds
        guard (0..<253_402_300_800).contains(seconds) else {
            return text(Date(timeIntervalSince1970: min(max(time / .seconds(1), -62_135_596_800), 253_402_300_799)))
        }
        // A capture has a million of them. Foundation computes the date once for each day.
        let day = seconds / 86_400
        let date = days.withLock { days in
            if days.number != day {
                days = (day, String(text(Date(timeIntervalSince1970: Double(day * 86_400))).prefix(11)))
            }
            return days.date
        }
        return date + PrintedPacket.timeOfDay(time) + "Z"
    }

    /// Returns a time for users: in their time zone, with its difference from UTC, or with `--utc` as in objects.
    static func local(sinceEpoch time: Duration) -> String {
        let offset = offset(at: time.components.seconds)
        guard offset != 0 else { return text(sinceEpoch: time) }
        return text(sinceEpoch: time + .seconds(offset)).dropLast() + spelled(offset)
    }

    /// Returns the difference of a time zone from UTC, such as `+01:00`.
    private static func spelled(_ offset: Int) -> String {
        let minutes = abs(offset) / 60
        let (hour, minute) = (minutes / 60, minutes % 60)
        return (offset < 0 ? "-" : "+") + (hour < 10 ? "0" : "") + "\(hour)" + (minute < 10 ? ":0" : ":") + "\(minute)"
    }

    /// A day in the time zone of the user, or with `--utc` in UTC: within it, a time of day is enough.
    struct Day: Hashable {
        /// The difference from UTC, in seconds.
        let offset: Int
        private let number: Int64

        init(of time: Duration) {
            // The years 1 to 9999.
            let seconds = min(max(time.components.seconds, -62_135_596_800), 253_402_300_799)
            offset = Timestamp.offset(at: seconds)
            number = Int64(((Double(seconds) + Double(offset)) / 86_400).rounded(.down))
        }

        /// Text such as `2026-11-26, UTC+01:00`.
        var text: String {
            let date = Timestamp.text(sinceEpoch: .seconds(number * 86_400)).prefix(10)
            return date + ", UTC" + (offset == 0 ? "" : Timestamp.spelled(offset))
        }
    }

    /// Returns the seconds by which the time zone of the user is ahead of UTC; 0 with `--utc`.
    private static func offset(at seconds: Int64) -> Int {
        if isUTCWanted { return 0 }
        var moment = time_t(clamping: seconds)
        var fields = unsafe tm()
        guard (0..<253_402_300_800).contains(seconds), unsafe localtime_r(&moment, &fields) != nil else { return 0 }
        return unsafe fields.tm_gmtoff
    }

    /// Returns the present time for users.
    static func localNow() -> String { local(sinceEpoch: sinceEpoch()) }

    /// Returns the present time since 1970-01-01 00:00 UTC.
    static func sinceEpoch() -> Duration {
        var time = timespec()
        guard unsafe clock_gettime(CLOCK_REALTIME, &time) == 0 else { return .zero }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Whether `--utc` is given.
    private static let isUTCWanted = isUTCWanted(by: Blescan.commandLine)

    /// Returns the same for any command line.
    static func isUTCWanted(by arguments: ArraySlice<String>) -> Bool {
        ValueOptions.withoutTexts(arguments).prefix { $0 != "--" }.contains("--utc")
    }

    /// The day of the last time, as its number and as the beginning of the text.
    private static let days = Lock<(number: Int64, date: String)>((-1, ""))

    private static func text(_ date: Date) -> String {
        date.formatted(
            .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
    }
}

/// `--utc`, for every command with times for users; `Timestamp` looks for it.
struct TimeOptions: ParsableArguments {
    @Flag(help: "Print times in UTC, not in the time zone of this machine or of TZ.")
    var utc = false
}
