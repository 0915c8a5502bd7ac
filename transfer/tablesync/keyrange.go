package tablesync

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"tsimport/internal/table"
)

// parseRange reads a range of keys: FROM..TO, the first inclusive and the last exclusive, either of which may be empty; or a key or the
// beginning of one, which means all keys that begin with it. Values of several columns stand between commas. A text in double quotes is
// one of JSON; a binary value is hexadecimal, after 0x.
func parseRange(text string, key []table.KeyColumn) (from, to []table.Value, err error) {
	if text == "" {
		return nil, nil, nil
	}
	left, right, bounded := cutOutside(text, "..")
	if from, err = parseKey(left, key); err != nil {
		return nil, nil, usagef("--range %s: %v", text, err)
	}
	if !bounded {
		if len(from) == 0 {
			return nil, nil, usagef("--range %s: want FROM..TO, or a key", text)
		}
		return from, after(from), nil
	}
	if to, err = parseKey(right, key); err != nil {
		return nil, nil, usagef("--range %s: %v", text, err)
	}
	switch {
	case len(from) == 0 && len(to) == 0:
		return nil, nil, usagef("--range %s: it has no bound; leave it out to compare the whole table", text)
	case len(from) > 0 && len(to) > 0 && string(orderingKey(from)) >= string(orderingKey(to)):
		return nil, nil, usagef("--range %s: no key is in it: it ends before it begins", text)
	}
	return from, to, nil
}

func orderingKey(values []table.Value) (key []byte) {
	for _, v := range values {
		key = table.AppendKey(key, v)
	}
	return key
}

// after is the least key that is greater than all that begin with the values; nil if there is none.
func after(values []table.Value) []table.Value {
	values = append([]table.Value(nil), values...)
	for len(values) > 0 {
		last := &values[len(values)-1]
		if last.Type != table.Integer {
			last.Bytes = append(append([]byte(nil), last.Bytes...), 0)
			return values
		}
		if last.Int < math.MaxInt64 {
			last.Int++
			return values
		}
		values = values[:len(values)-1]
	}
	return nil
}

// cutOutside cuts a text at the first separator that does not stand in double quotes.
func cutOutside(text, separator string) (before, rest string, found bool) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case !quoted && strings.HasPrefix(text[i:], separator):
			return text[:i], text[i+len(separator):], true
		}
	}
	return text, "", false
}

// parseKey reads the values of the first columns of a key.
func parseKey(text string, key []table.KeyColumn) (values []table.Value, err error) {
	for more := text != ""; more; {
		var part string
		part, text, more = cutOutside(text, ",")
		if len(values) == len(key) {
			return nil, usagef("the key has %d columns", len(key))
		}
		k := key[len(values)]
		v := table.Value{Type: k.Type}
		switch {
		case k.Type == table.Integer:
			if v.Int, err = strconv.ParseInt(part, 10, 64); err != nil {
				return nil, usagef("%q is not an integer, which key column %s is", part, k.Name)
			}
		case k.Type == table.Binary:
			digits, ok := strings.CutPrefix(part, "0x")
			if v.Bytes, err = hex.DecodeString(digits); err != nil || !ok {
				return nil, usagef("%q is not binary, which key column %s is: want 0x and hexadecimal digits", part, k.Name)
			}
		case strings.HasPrefix(part, `"`):
			var s string
			if err := json.Unmarshal([]byte(part), &s); err != nil {
				return nil, usagef("%s is not a text in quotes", part)
			}
			v.Bytes = []byte(s)
		default:
			v.Bytes = []byte(part)
		}
		if len(v.Bytes) >= table.MaxKeyBytes {
			return nil, usagef("the value for key column %s has %d bytes, want fewer than %d", k.Name, len(v.Bytes), table.MaxKeyBytes)
		}
		values = append(values, v)
	}
	return values, nil
}
