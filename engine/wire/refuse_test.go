package wire

import "testing"

// Options that would change what the engine does are refused when they ask for it, and taken when they do not.
func TestOptionsWithoutAFeatureAreRefusedByName(t *testing.T) {
	refused := func(err *Error) bool { return err != nil && err.Code == CodeUnsupported }
	for _, on := range []bool{false, true} {
		value := int64(0)
		if on {
			value = 1
		}
		table := appendBytes(nil, 3, appendInt(nil, 7, value)) // table_options.update_full_row
		if _, err := DecodeCreateTable(append(unhex(t, vCreate), table...)); refused(err) != on {
			t.Errorf("CreateTable with update_full_row %t: %v", on, err)
		}
		if _, err := DecodeUpdateTable(append(appendText(nil, 1, "t1"), table...)); refused(err) != on {
			t.Errorf("UpdateTable with update_full_row %t: %v", on, err)
		}
	}
}
