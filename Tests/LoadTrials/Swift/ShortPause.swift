import Glibc

/// A pause of a millisecond for other threads.
enum ShortPause {
    static func take() {
        usleep(1_000)
    }
}
