package progress

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"

	"example.com/tsimport/internal/atomicfile"
)

// StartOver is the advice of commands with the flag --fresh for an attempt that cannot be continued.
const StartOver = "start over with --fresh"

// UnfitError means that a place or its content is unusable until the user acts. Another attempt would also fail.
type UnfitError struct{ Cause error }

func (e *UnfitError) Error() string { return e.Cause.Error() }
func (e *UnfitError) Unwrap() error { return e.Cause }

// Exit returns the command's exit code. It implements exitcode.Coded.
func (*UnfitError) Exit() int { return 2 }

func Unfitf(format string, a ...any) error { return &UnfitError{fmt.Errorf(format, a...)} }

// Encode encodes a value, which must be a JSON object, with the version as its first member.
func Encode(version int, v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil && text[0] != '{' {
		err = fmt.Errorf("%T is not a JSON object", v)
	}
	if err != nil {
		return nil, err
	}
	head := fmt.Appendf(nil, "{\n  \"version\": %d", version)
	if text[1] != '}' {
		head = append(head, ',')
	}
	return append(append(head, text[1:]...), '\n'), nil
}

// Write replaces a file atomically with the result of Encode.
func Write(name string, perm fs.FileMode, version int, v any) error {
	text, err := Encode(version, v)
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(name, atomicfile.Options{Perm: perm}, text)
}

// Read decodes a file that Write wrote. Its errors are those of os.ReadFile and Decode.
func Read(name string, version int, v any, otherwise string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return Decode(name, text, version, v, otherwise)
}

// Decode decodes a value whose member "version" must be the given one. An error is an *UnfitError, which suggests
// restoring a copy or using the version of tsimport that wrote the file, or else what otherwise says.
func Decode(name string, text []byte, version int, v any, otherwise string) error {
	var head struct{ Version int }
	err := json.Unmarshal(text, &head)
	if err == nil && head.Version != version {
		which := "a newer"
		if head.Version < version {
			which = "an earlier"
		}
		return Unfitf("%s was written by %s version of tsimport; use that version, or %s", name, which, otherwise)
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return Unfitf("%s is damaged: %w; restore it from a copy, or %s", name, err, otherwise)
	}
	return nil
}

// Identify returns an identifier for the strings that name a load, a sync or a job. It is the same for equal strings.
func Identify(parts ...string) string {
	text, _ := json.Marshal(parts) // marshaling strings never fails
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
