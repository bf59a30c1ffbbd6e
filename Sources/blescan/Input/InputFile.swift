import Glibc

/// A file that the user names, or standard input, opened for reading.
struct InputFile: ~Copyable {
    let descriptor: Int32

    /// Returns the name of the file at `path` in messages.
    static func name(of path: String) -> String { path == "-" ? "standard input" : path }

    /// Opens the file at `path`; `-` is standard input.
    ///
    /// - Throws: `Failure` if it cannot be opened, or is a directory; the message ends with `advice`.
    init(_ path: String, advice: String) throws(Failure) {
        guard path != "-" else {
            descriptor = STDIN_FILENO
            return
        }
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure(cannot: "open", path, for: .reading, errno: errno, advice: advice)
        }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            throw Failure(message: "\(path) is a folder", hint: "Name a file in it.", status: .usage)
        }
    }

    deinit {
        if descriptor > STDIN_FILENO { close(descriptor) }
    }
}
