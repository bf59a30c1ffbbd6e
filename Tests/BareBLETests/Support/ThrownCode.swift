import BareBLE

/// The code of the error that `body` throws; `nil` when it throws none.
func code(_ body: () throws(BLEError) -> Void) -> BLEError.Code? {
    do throws(BLEError) {
        try body()
        return nil
    } catch {
        return error.code
    }
}
