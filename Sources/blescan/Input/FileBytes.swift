/// Small files as bytes.
enum FileBytes {
    /// Returns the bytes of the file, or of the pipe, at `path`.
    ///
    /// - Throws: `Failure` if it cannot be read or has more than `limit` bytes.
    static func read(_ path: String, atMost limit: Int) throws(Failure) -> [UInt8] {
        var file = try InputFile(path, advice: "Check the path.")
        let name = InputFile.name(of: path)
        var bytes: [UInt8] = []
        while true {
            let chunk: [UInt8]
            do throws(Failure) {
                chunk = try file.next()
            } catch {
                // A part of a value, or of keys, is none.
                throw Failure(message: error.message, hint: "Check the path.", status: .usage)
            }
            if chunk.isEmpty { return bytes }
            bytes += chunk
            guard bytes.count <= limit else {
                throw Failure(
                    message: "\(name) has more than \(limit) bytes", hint: "Give a smaller file.", status: .usage)
            }
        }
    }
}
