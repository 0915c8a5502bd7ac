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

// StartOver is the advice if an attempt cannot be continued and its command has that flag.
const StartOver = "start over with --fresh"

// UnfitError says that a place or its content cannot be used until somebody acts. Another attempt would fail, too.
type UnfitError struct{ Cause error }

func (e *UnfitError) Error() string { return e.Cause.Error() }
func (e *UnfitError) Unwrap() error { return e.Cause }

// Exit is the command's exit code (exitcode.Coded).
func (*UnfitError) Exit() int { return 2 }

func Unfitf(format string, a ...any) error { return &UnfitError{fmt.Errorf(format, a...)} }

// Encode makes JSON of a value, an object, with its version as the first member.
func Encode(version int, v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil && text[0] != '{' {
		err = fmt.Errorf("%T is not an object of JSON", v)
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

// Write replaces a file by Encode's result.
func Write(name string, perm fs.FileMode, version int, v any) error {
	text, err := Encode(version, v)
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(name, atomicfile.Options{Perm: perm}, text)
}

// Read reads a file of Write. The error is fs.ErrNotExist if there is none; others are Decode's.
func Read(name string, version int, v any, otherwise string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return Decode(name, text, version, v, otherwise)
}

// Decode reads a value whose member "version" must be the given one. otherwise is a remedy besides restoring a copy, or
// using the version of tsimport that wrote it. The error is an UnfitError.
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
		return Unfitf("%s is damaged: %w; put back a copy of it, or %s", name, err, otherwise)
	}
	return nil
}

// Identify makes an identity of the texts that name a load, a sync or a job: the same for the same texts.
func Identify(parts ...string) string {
	text, _ := json.Marshal(parts) // strings always marshal
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
