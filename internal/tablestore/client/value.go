package client

import (
	"fmt"
	"unsafe"

	"example.com/tsimport/internal/table"
)

// SDKValue converts a value to the SDK's type: int64, float64, bool, string or []byte. For Null it returns nil.
func SDKValue(v table.Value) any {
	switch v.Type {
	case table.Integer:
		return v.Int
	case table.Double:
		return v.Double
	case table.Boolean:
		return v.Int != 0
	case table.String:
		return string(v.Bytes)
	case table.Binary:
		return v.Bytes
	}
	return nil
}

// ValueOf converts a value of the SDK. The bytes of a string must not be changed, because they are the string's memory.
func ValueOf(v any) table.Value {
	switch v := v.(type) {
	case nil:
		return table.Value{}
	case int64:
		return table.Value{Type: table.Integer, Int: v}
	case float64:
		return table.Value{Type: table.Double, Double: v}
	case bool:
		return table.Bool(v)
	case string:
		if v == "" {
			return table.Value{Type: table.String, Bytes: []byte{}}
		}
		return table.Value{Type: table.String, Bytes: unsafe.Slice(unsafe.StringData(v), len(v))}
	case []byte:
		return table.Value{Type: table.Binary, Bytes: v}
	}
	panic(fmt.Sprintf("client: the SDK delivered a value of type %T", v))
}
