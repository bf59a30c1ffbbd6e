import Glibc

/// A millisecond for whoever else is at work.
enum ShortPause {
    static func take() {
        usleep(1_000)
    }
}
