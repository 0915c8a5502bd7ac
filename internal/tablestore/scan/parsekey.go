package scan

import (
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tsimport/internal/table"
)

// ParseKey reads a key, or its first columns, as a user types it: values with commas between them, quoted as in CSV where they have one;
// binary as 0x and hexadecimal digits.
func ParseKey(text string, key []table.KeyColumn) (values []table.Value, err error) {
	r := csv.NewReader(strings.NewReader(text))
	r.LazyQuotes = true
	fields, err := r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%q is not a list of values: %w", text, err)
	}
	if len(fields) == 0 || len(fields) > len(key) {
		return nil, fmt.Errorf("%q has %d values, and the key has %d columns", text, len(fields), len(key))
	}
	for i, f := range fields {
		v := table.Value{Type: key[i].Type, Bytes: []byte(f)}
		switch v.Type {
		case table.Integer:
			v.Bytes = nil
			if v.Int, err = strconv.ParseInt(f, 10, 64); err != nil {
				return nil, fmt.Errorf("%q: key column %s is an integer", f, key[i].Name)
			}
		case table.Binary:
			digits, found := strings.CutPrefix(f, "0x")
			if v.Bytes, err = hex.DecodeString(digits); err != nil || !found {
				return nil, fmt.Errorf("%q: key column %s is binary: want 0x and hexadecimal digits", f, key[i].Name)
			}
		}
		values = append(values, v)
	}
	return values, nil
}
