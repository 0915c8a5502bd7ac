package page

import (
	"io"

	"tsimport/advise"
)

// Write writes the page.
func Write(w io.Writer, r *advise.Report) error { return nil }
