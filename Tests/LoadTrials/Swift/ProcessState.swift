import BLELinux
import CHeapUse
import Glibc

/// What this process has of the system's.
struct ProcessState: Equatable, CustomStringConvertible {
    let descriptors: Int
    let threads: Int

    static var now: ProcessState {
        // The folder itself is open while it is read.
        ProcessState(
            descriptors: SystemFiles.names(in: "/proc/self/fd").count - 1,
            threads: SystemFiles.names(in: "/proc/self/task").count)
    }

    var description: String { "\(descriptors) descriptors, \(threads) threads" }

    /// Bytes of the process that are in memory.
    static var resident: Int {
        heap_trim()
        let pages = SystemFiles.text("/proc/self/statm")?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        return (pages ?? 0) * sysconf(Int32(_SC_PAGESIZE))
    }

    /// Bytes that were allocated and not freed.
    static var heap: Int { Int(heap_in_use()) }

    /// Processor time of the calling thread so far, in nanoseconds.
    static var threadTime: Int {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
