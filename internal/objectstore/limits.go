package objectstore

import (
	"errors"
	"fmt"
)

// Bounds of a listing: it is kept in memory, and a server that is broken or hostile lists without end.
const (
	maxPages    = 10_000
	maxEmpty    = 1_000 // pages without an object, one after the other
	maxKeyBytes = 256 << 20
)

// EachPage gives each page of a listing, which list asks for from a token on, until its end.
func EachPage(list func(token string) (Page, error), each func([]Object) error) error {
	var token, last string
	var keys, bytes, empty int
	for pages := 1; ; pages++ {
		page, err := list(token)
		if err != nil {
			return err
		}
		keys += len(page.Objects)
		for _, o := range page.Objects {
			bytes += len(o.Key)
		}
		if empty++; len(page.Objects) > 0 {
			first := page.Objects[0].Key
			if pages > 1 && first == last {
				return fmt.Errorf("page %d of the listing repeats the page before it (after %d objects): the service lists without end", pages, keys)
			}
			empty, last = 0, first
		}
		if err := each(page.Objects); err != nil {
			return err
		}
		switch {
		case !page.More:
			return nil
		case page.Token == "" || page.Token == token:
			return errors.New("the service says that its list continues, but not from where; try again")
		case pages >= maxPages || empty >= maxEmpty || bytes > maxKeyBytes:
			return fmt.Errorf("the listing does not end: %d pages with %d objects so far, the last %d pages without any; name a prefix with fewer objects", pages, keys, empty)
		}
		token = page.Token
	}
}
