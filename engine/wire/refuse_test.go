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
		stream := appendBytes(nil, 5, appendInt(nil, 1, value)) // stream_spec.enable_stream
		r, err := DecodeCreateTable(append(unhex(t, vCreate), stream...))
		if err != nil || refused(r.Stream.Refuse()) != on {
			t.Errorf("CreateTable with a stream %t: %v", on, err)
		}
		encrypted := appendBytes(nil, 6, appendInt(nil, 1, value)) // sse_spec.enable
		if _, err := DecodeCreateTable(append(unhex(t, vCreate), encrypted...)); refused(err) != on {
			t.Errorf("CreateTable with encryption %t: %v", on, err)
		}
	}
}
