package source

import (
	"errors"
	"io"
	"iter"
)

// Splits are what is left of a source, in its order and one at a time. An error ends them; what comes before it is delivered before it.
func Splits(s Source) iter.Seq2[Split, error] {
	return func(yield func(Split, error) bool) {
		for ended := false; !ended; {
			var splits []Split
			piece, err := s.Next()
			switch {
			case err == nil:
				prepareErr := piece.Prepare()
				splits, err = s.Add(piece)
				err = errors.Join(prepareErr, err)
			case errors.Is(err, io.EOF):
				splits, err = s.Finish()
				ended = true
			default:
				splits = s.Whole()
			}
			for _, split := range splits {
				if !yield(split, nil) {
					return
				}
			}
			if err != nil {
				yield(Split{}, err)
				return
			}
		}
	}
}
