internal import Glibc

/// The small text files in which the kernel tells about itself.
enum SystemFiles {
    /// The file's text without the newline at its end; `nil` when it cannot be read. Longer ones are cut at 64 KiB.
    static func text(_ path: String) -> String? {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return nil }
        let file = OwnedDescriptor(number)
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4096)
        while bytes.count < 65536 {
            let count = unsafe read(file.number, &part, part.count)
            guard count > 0 else {
                if count < 0 { return nil }
                break
            }
            bytes += part.prefix(count)
        }
        if bytes.last == 0x0A { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The names in a directory, without `.` and `..`, sorted; empty when it cannot be read.
    static func names(in directory: String) -> [String] {
        guard let stream = unsafe opendir(directory) else { return [] }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
                unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
