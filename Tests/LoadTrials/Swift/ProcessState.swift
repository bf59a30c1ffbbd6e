import BLELinux
import CHeapUse
import Glibc

/// The system resources of this process.
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

    /// Bytes in memory that are the process's own: its heap, its stacks and what it has changed of its data; `nil`
    /// where the kernel does not report it.
    ///
    /// Code is left out, which comes in from its file when it is first run, in pieces of 64 KiB, and may go again at
    /// any time. The kernel counts these pages one by one; its quick sums in `statm` may be wrong by 32 pages for each
    /// processor.
    static var resident: Int? {
        heap_trim()
        let lines = (SystemFiles.text("/proc/self/smaps_rollup") ?? "").split(separator: "\n")
        let words = lines.first { $0.hasPrefix("Anonymous:") }?.split(separator: " ")
        return words?.dropFirst().first.flatMap { Int($0) }.map { $0 * 1024 }
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
