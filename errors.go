package tsimport

import (
	"errors"
	"fmt"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
)

// Errors to test for with errors.Is. The returned error wraps one of them and adds the details.
var (
	// ErrClosed means that Close has been called.
	ErrClosed = errors.New("the loader is closed")
	// ErrTableMissing means that a table does not exist and is not to be created.
	ErrTableMissing = errors.New("the table does not exist")
	// ErrPermission means that the access key is wrong or lacks a permission that the load needs.
	ErrPermission = errors.New("permission denied")
	// ErrInterrupted means that a context ended before the load did. The error wraps the context's cause.
	ErrInterrupted = errors.New("the load was interrupted")
)

// UsageError reports an invalid request. Nothing was written. Its message names the field.
type UsageError struct {
	Message string
	cause   error
}

func (e *UsageError) Error() string { return e.Message }
func (e *UsageError) Unwrap() error { return e.cause }

// RejectedError reports that rows without a Done were rejected.
type RejectedError struct {
	Rows  int64
	First Outcome // outcome of the first such row
}

func (e *RejectedError) Error() string {
	column := ""
	if e.First.Column != "" {
		column = " column " + e.First.Column + ":"
	}
	return fmt.Sprintf("%d rows were rejected; the first is row %d: %s:%s %s", e.Rows, e.First.Number,
		e.First.Code, column, e.First.Message)
}

// failure is an error that also matches its kind, one of the errors above.
type failure struct{ kind, cause error }

func (f *failure) Error() string   { return f.cause.Error() }
func (f *failure) Unwrap() []error { return []error{f.kind, f.cause} }

// public converts an error of a load into one that the package documents.
func public(err error) error {
	var usage *plan.UsageError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &usage):
		shown := &UsageError{Message: options.InFields(err.Error()), cause: err}
		if usage.NoTable {
			return &failure{ErrTableMissing, shown}
		}
		return shown
	case errors.As(err, new(*pipeline.Interrupted)):
		return &failure{ErrInterrupted, err}
	case client.IsNoTable(err):
		return &failure{ErrTableMissing, err}
	case client.Denied(err):
		return &failure{ErrPermission, err}
	}
	return err
}

func usagef(format string, a ...any) error {
	return &UsageError{Message: options.InFields(fmt.Sprintf(format, a...))}
}
