package table

import "fmt"

// Codes for rows that tsimport rejects. A row that the service refuses has the service's code.
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
	CodeColumnName     = "BadColumnName" // a cell of a self-describing record
	CodeSameCell       = "DuplicateCell" // two cells of a self-describing record
	CodeNoValue        = "NoValue"       // no value in a column that --when compares
	CodeSeam           = "SeamOfFiles"   // not a row, but the place where files were joined
	CodeFolder         = "FolderDiffers" // the record's folder and its own column have different values
	CodeNoAnswer       = "NoAnswer"      // the row was sent, but the service never responded
)

// Location is a record's place in the input.
type Location struct {
	Source string // file name as given
	Record int64  // 1-based, not counting the header
	Line   int64  // 1-based line where the record begins
	Offset int64  // byte offset in the (decompressed) input
	Key    string // readable key of the record or of the one before it; empty for sources without keys
}

// Reason says why a row was refused.
type Reason struct {
	Column  string // table column; empty if the whole record is meant
	Code    string
	Message string
	Value   string // beginning of the offending text
	// MaybeApplied means that the row may nevertheless be in the table.
	MaybeApplied bool
}

// Error makes a *Reason an error, for code that stops at the first refused row.
func (r *Reason) Error() string {
	if r.Column == "" {
		return fmt.Sprintf("%s: %s", r.Code, r.Message)
	}
	return fmt.Sprintf("%s: column %s: %s", r.Code, r.Column, r.Message)
}

// MaxShownBytes limits the bytes of Reason.Value.
const MaxShownBytes = 120

// Show returns the beginning of a value for a message. A value longer than MaxShownBytes is cut and gets an ellipsis.
func Show(text []byte) string {
	if len(text) > MaxShownBytes {
		return string(text[:MaxShownBytes]) + "…"
	}
	return string(text)
}

// Reject is a row that will not be written: its location, the reason, and its original record.
type Reject struct {
	Location Location
	Reason   Reason
	Raw      []byte // the record in the input, with its line end
}
