import Glibc

/// The progress of reading a file, in per cent if its size is known.
struct FileProgress {
    private let name: String
    private var size: Int?
    private var count = 0

    /// Begins for the open file `descriptor`.
    init(_ descriptor: Int32, named path: String) {
        // The directory would leave no room on the line for the progress.
        name = path.split(separator: "/").last.map(String.init) ?? path
        var status = stat()
        let isPlain = unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        size = isPlain && status.st_size > 0 ? Int(status.st_size) : nil
        // While a user types, the line would be in the way.
        if isatty(descriptor) == 0 { Console.progress.begin("reading \(name)") }
    }

    /// Adds this number of bytes; of a compressed file the size of the contents is not known.
    mutating func advance(by more: Int, isCompressed: Bool = false) {
        if isCompressed { size = nil }
        count += more
        Console.progress.update(text)
    }

    /// The whole file has been read.
    func end() {
        Console.progress.end()
    }

    var text: String {
        guard let size else { return "\(name): \(count / 1_000_000) MB" }
        // A file may grow while it is read.
        return "\(name): \(min(100, Int(Double(count) * 100 / Double(size)))) %"
    }
}
