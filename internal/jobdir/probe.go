package jobdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"syscall"

	"example.com/tsimport/internal/objectstore"
	"example.com/tsimport/internal/progress"
)

// UnfitError means that a place is unusable until the user acts: it cannot be written to, is full, lacks conditional
// puts, holds damaged data, or was written by another version of tsimport. Other errors may be temporary.
type UnfitError = progress.UnfitError

// Probe returns an error if a store is unusable, for example because PutAbsent replaces an object. OSS ignores the
// condition of a put in buckets with versioning, and some S3-compatible stores always do. The error is one line.
func Probe(ctx context.Context, s Store) error {
	name := "probe/" + Nonce()
	first, second := []byte("first "+name), []byte("second "+name)
	if err := s.PutAbsent(ctx, name, first); err != nil {
		return refusal(s, err)
	}
	err := s.PutAbsent(ctx, name, second)
	if err == nil {
		_ = s.Delete(ctx, name)
		return progress.Unfitf("%s: conditional puts have no effect there, so processes could overwrite each other's "+
			"objects (in OSS, versioning causes this; turn it off, or use another bucket)", s)
	}
	if !errors.Is(err, ErrExists) {
		return refusal(s, err)
	}
	there, err := s.Get(ctx, name)
	if err == nil && !bytes.Equal(there, first) {
		err = progress.Unfitf("the content read differs from the content written")
	}
	if err == nil {
		var names []string
		if names, err = s.List(ctx, "probe/"); err == nil && !strings.Contains(strings.Join(names, "\n"), name) {
			err = progress.Unfitf("an object that was just written is not listed")
		}
	}
	if err == nil {
		err = s.Delete(ctx, name)
	}
	if err != nil {
		return refusal(s, err)
	}
	return nil
}

// refusal returns an error that names the store and explains what is wrong with it.
func refusal(s Store, err error) error {
	answer, isAnswer := errors.AsType[*objectstore.Error](err)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), isAnswer &&
		(answer.Status == http.StatusForbidden || answer.Status == http.StatusUnauthorized):
		return progress.Unfitf("%s cannot be written to: %w", s, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), isAnswer &&
		answer.Status == http.StatusInsufficientStorage:
		return progress.Unfitf("%s is full: %w", s, err)
	case isAnswer && answer.Status == http.StatusNotImplemented:
		return progress.Unfitf("%s has no conditional puts, which locks need; use another place: %w", s, err)
	}
	return fmt.Errorf("%s cannot be checked: %w", s, err)
}
