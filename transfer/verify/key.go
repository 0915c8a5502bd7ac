package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// Key is a primary key with its columns in order. In JSON it is an object; a binary value is {"base64": "…"}.
type Key []KeyPart

type KeyPart struct {
	Name  string
	Value table.Value
}

// MarshalJSON keeps the columns in order.
func (k Key) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, p := range k {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(p.Name)
		if err != nil {
			return nil, err
		}
		v := client.SDKValue(p.Value)
		if p.Value.Type == table.Binary {
			v = map[string][]byte{"base64": p.Value.Bytes}
		}
		value, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

func (k Key) String() string {
	parts := make([]string, len(k))
	for i, p := range k {
		switch p.Value.Type {
		case table.Integer:
			parts[i] = fmt.Sprintf("%s=%d", p.Name, p.Value.Int)
		case table.Binary:
			parts[i] = fmt.Sprintf("%s=0x%x", p.Name, p.Value.Bytes)
		default:
			parts[i] = fmt.Sprintf("%s=%q", p.Name, p.Value.Bytes)
		}
	}
	return strings.Join(parts, " ")
}

// decodeKey decodes the values of an ordering key, which may end after any column.
func decodeKey(key []table.KeyColumn, from []byte) ([]table.Value, error) {
	var values []table.Value
	for _, k := range key {
		if len(from) == 0 {
			break
		}
		v, n, err := table.DecodeKey(k.Type, from)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		from = from[n:]
	}
	return values, nil
}

func keyOf(key []table.KeyColumn, from []byte) (Key, error) {
	values, err := decodeKey(key, from)
	if err != nil {
		return nil, err
	}
	k := make(Key, len(values))
	for i, v := range values {
		k[i] = KeyPart{key[i].Name, v}
	}
	return k, nil
}
