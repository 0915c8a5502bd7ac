package scan

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
)

// ParseKey parses a key, or its first columns, as a user types it: values separated by commas. A string may be JSON,
// and must be if it contains a comma or begins with a quote. A binary value is 0x and hexadecimal digits.
func ParseKey(text string, key []table.KeyColumn) ([]table.Value, error) {
	if text == "" {
		return nil, errors.New(`want a key; an empty string is ""`)
	}
	values, rest, err := cutKey(text, "", key)
	if err == nil && rest != "" {
		err = fmt.Errorf("unexpected %q after the key", rest)
	}
	return values, err
}

// ParseRange parses a range of keys: FROM..TO, where TO is exclusive and either may be missing, or the first columns of
// the keys in the range. All are as in ParseKey; a string with two dots must be quoted. nil means no bound.
func ParseRange(text string, key []table.KeyColumn) (from, to []table.Value, err error) {
	if text == "" {
		return nil, nil, nil
	}
	left, rest := []table.Value(nil), text
	if !strings.HasPrefix(text, dots) {
		if left, rest, err = cutKey(text, dots, key); err != nil {
			return nil, nil, err
		}
	}
	right, bounded := strings.CutPrefix(rest, dots)
	switch {
	case !bounded && rest != "":
		return nil, nil, fmt.Errorf("unexpected %q after the key", rest)
	case !bounded:
		to, err = After(left)
		return left, to, err
	case right == "" && left == nil:
		return nil, nil, errors.New("the range has no bound; leave it out for the whole table")
	case right == "":
		return left, nil, nil
	}
	if to, err = ParseKey(right, key); err != nil {
		return nil, nil, err
	}
	if left != nil && CompareBounds(left, to) >= 0 {
		return nil, nil, errors.New("the range is empty: its end is not after its start")
	}
	return left, to, nil
}

const dots = ".."

// CompareBounds compares bounds: values of the first key columns. A bound sorts before all keys that begin with it.
func CompareBounds(a, b []table.Value) int {
	return bytes.Compare(table.OrderingKey(a), table.OrderingKey(b))
}

// KeyText is the inverse of ParseKey; it returns "" for no values.
func KeyText(values []table.Value) string {
	texts := make([]string, len(values))
	for i, v := range values {
		switch v.Type {
		case table.Integer:
			texts[i] = strconv.FormatInt(v.Int, 10)
		case table.Binary:
			texts[i] = "0x" + hex.EncodeToString(v.Bytes)
		default:
			quoted, _ := json.Marshal(string(v.Bytes)) // marshaling a string never fails
			texts[i] = string(quoted)
		}
	}
	return strings.Join(texts, ",")
}

// After returns the smallest bound above all keys that begin with the values, or nil if there is none.
func After(values []table.Value) ([]table.Value, error) {
	values = append([]table.Value(nil), values...)
	for len(values) > 0 {
		last := &values[len(values)-1]
		if last.Type != table.Integer {
			if len(last.Bytes) >= table.MaxKeyBytes {
				return nil, fmt.Errorf("a key value of %d bytes has no successor; give FROM..TO", len(last.Bytes))
			}
			last.Bytes = append(append([]byte(nil), last.Bytes...), 0)
			return values, nil
		}
		if last.Int < math.MaxInt64 {
			last.Int++
			return values, nil
		}
		values = values[:len(values)-1]
	}
	return nil, nil
}

// cutKey parses values of a key's first columns, up to the end of the text or the first separator outside quotes.
func cutKey(text, separator string, key []table.KeyColumn) (values []table.Value, rest string, err error) {
	for {
		if len(values) == len(key) {
			return nil, "", fmt.Errorf("the key has %d columns, but %q follows their values", len(key), text)
		}
		k := key[len(values)]
		var v table.Value
		if v, text, err = cutValue(text, separator, k); err != nil {
			return nil, "", err
		}
		values = append(values, v)
		var more bool
		if text, more = strings.CutPrefix(text, ","); !more {
			return values, text, nil
		}
	}
}

func cutValue(text, separator string, k table.KeyColumn) (v table.Value, rest string, err error) {
	v.Type = k.Type
	if k.Type == table.String && strings.HasPrefix(text, `"`) {
		v.Bytes, rest, err = cutQuoted(text)
	} else {
		end := len(text)
		if i := strings.IndexByte(text, ','); i >= 0 {
			end = i
		}
		if i := strings.Index(text, separator); separator != "" && i >= 0 {
			end = min(end, i)
		}
		value := text[:end]
		rest = text[end:]
		switch k.Type {
		case table.Integer:
			if v.Int, err = strconv.ParseInt(value, 10, 64); err != nil {
				err = fmt.Errorf("%q is not an integer, the type of key column %s", value, k.Name)
			}
		case table.Binary:
			digits, ok := strings.CutPrefix(value, "0x")
			if v.Bytes, err = hex.DecodeString(digits); err != nil || !ok {
				err = fmt.Errorf("%q is not binary, the type of key column %s; want 0x and hexadecimal digits", value, k.Name)
			}
		default:
			v.Bytes = []byte(value)
		}
	}
	switch {
	case err != nil:
	case k.Type == table.String && !utf8.Valid(v.Bytes):
		err = fmt.Errorf("%q is not UTF-8, as a value of key column %s must be", v.Bytes, k.Name)
	case len(v.Bytes) > table.MaxKeyBytes:
		err = fmt.Errorf("the value for key column %s has %d bytes, want at most %d", k.Name, len(v.Bytes), table.MaxKeyBytes)
	}
	return v, rest, err
}

// cutQuoted cuts off a JSON string. It refuses single surrogates and invalid UTF-8, which encoding/json would replace.
func cutQuoted(text string) (value []byte, rest string, err error) {
	end := 1
	for end < len(text) && text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(text) {
		return nil, "", fmt.Errorf("%s: the closing quote is missing", text)
	}
	quoted := text[:end+1]
	var s string
	if err := json.Unmarshal([]byte(quoted), &s); err != nil || !utf8.ValidString(quoted) {
		return nil, "", fmt.Errorf("%s is not a JSON string", quoted)
	}
	if strings.ContainsRune(s, utf8.RuneError) && !strings.ContainsRune(quoted, utf8.RuneError) &&
		!strings.Contains(strings.ToLower(quoted), `\ufffd`) {
		return nil, "", fmt.Errorf("%s has half a surrogate pair", quoted)
	}
	return []byte(s), text[end+1:], nil
}
