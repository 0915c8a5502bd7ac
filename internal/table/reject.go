package table

import "fmt"

// Codes of rows that never reach the service; a row refused by the service has the service's code.
const (
	CodeRagged         = "RaggedRecord"
	CodeQuote          = "BadQuote"
	CodeEscape         = "AmbiguousEscape"
	CodeUTF8           = "InvalidUTF8"
	CodeType           = "WrongType"
	CodeRange          = "OutOfRange"
	CodeNotCanonical   = "NotCanonical"
	CodeNullKey        = "NullKey"
	CodeKeyTooLong     = "KeyTooLong"
	CodeValueTooLong   = "ValueTooLong"
	CodeTooManyColumns = "TooManyColumns"
	CodeRowTooLarge    = "RowTooLarge"
	CodeRecordTooLong  = "RecordTooLong"
	CodeNoCells        = "NoCells"
	CodeColumnName     = "BadColumnName" // of a cell of a record that describes itself
	CodeSameCell       = "DuplicateCell" // likewise
	CodeNoValue        = "NoValue"       // in a column that --when compares
	CodeSeam           = "SeamOfFiles"   // not a row's record: files were joined here
	CodeFolder         = "FolderDiffers" // a value from the record's folder is not the record's own
	CodeNoAnswer       = "NoAnswer"      // the service was sent the row, and has never answered
)

// Location is a record's place in the input.
type Location struct {
	Source string // file name as given
	Record int64  // 1-based, the header not counted
	Line   int64  // 1-based line where the record begins
	Offset int64  // byte offset in the (decompressed) input
	Key    string // of the record or the one before, readable; empty where places are not keys
}

// Reason says why a row was refused.
type Reason struct {
	Column  string // table column, empty when the whole record is meant
	Code    string
	Message string
	Value   string // start of the offending text
	// MaybeApplied says that the row may be in the table all the same.
	MaybeApplied bool
}

// Error makes a Reason an error for code that stops at the first one.
func (r *Reason) Error() string {
	if r.Column == "" {
		return fmt.Sprintf("%s: %s", r.Code, r.Message)
	}
	return fmt.Sprintf("%s: column %s: %s", r.Code, r.Column, r.Message)
}

// MaxShownBytes limits the offending text in a Reason.
const MaxShownBytes = 120

// Show returns the start of a value for a message, cut at MaxShownBytes.
func Show(text []byte) string {
	if len(text) > MaxShownBytes {
		return string(text[:MaxShownBytes]) + "…"
	}
	return string(text)
}

// Reject is a row that will not be written: its place, the reason, and its original record.
type Reject struct {
	Location Location
	Reason   Reason
	Raw      []byte // the record in the input, with its line end
}
