package recurring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
)

// madeMark is an object in a folder that a load had to create. For other tables the folder still counts as missing.
const madeMark = "made"

// unknownPlace is a place without the state of a load: this is the first load there, or its state is elsewhere.
type unknownPlace struct {
	what    string
	missing bool
	begin   string // command that permits a first load there
	twice   string // like begin, if a second load would duplicate rows
}

// lookAtState returns nil if the place has the state of the load, or nothing shows that it lacks it.
func lookAtState(ctx context.Context, r *options.Request, store jobdir.Store, place string) (*unknownPlace, error) {
	if jobdir.IsAddress(r.State) {
		if !r.OnlyNew {
			return nil, nil // a first load cannot be distinguished from others
		}
		names, err := knownIn(r, store, place).List(ctx, "")
		if err != nil || len(names) > 0 {
			return nil, err
		}
		return &unknownPlace{what: "knows no file of", twice: fmt.Sprintf("tsimport files forget --table %s --state %s",
			suggest.Arg(r.Table), suggest.Arg(r.State))}, nil
	}
	own := filepath.Join(r.State, "loads")
	if r.OnlyNew {
		own = filepath.Join(r.State, "known", place)
	}
	is := func(path string) bool { _, err := os.Stat(path); return !errors.Is(err, fs.ErrNotExist) }
	entries, err := os.ReadDir(r.State)
	mkdir := "mkdir -p " + suggest.Arg(own)
	none := unknownPlace{what: "knows no file of", begin: mkdir, twice: mkdir}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		none.what, none.missing, none.begin = "is missing, and with it the known files and unfinished loads of", true,
			"mkdir -p "+suggest.Arg(r.State)
	case err != nil, is(own), !r.OnlyNew && len(entries) > 0:
		return nil, nil // if it is unreadable, the probe reports why
	case !r.OnlyNew:
		none.what = "is empty, and knows no load of"
	default:
		none.missing = is(filepath.Join(r.State, madeMark))
	}
	return &none, nil
}

// checkState refuses a place without state for a table with rows that may be from the present inputs. A missing folder
// may be an unmounted share. An empty folder and an unknown table are refused only if rows would be loaded twice.
func checkState(ctx context.Context, r *options.Request, cfg *pipeline.Config, store jobdir.Store,
	place string) (missing bool, err error) {
	if plan.IsTemplate(cfg.Target.Table) {
		return false, nil
	}
	is, err := lookAtState(ctx, r, store, place)
	if is == nil || err != nil {
		return false, err
	}
	before, err := cfg.TableBefore(ctx, is.missing || cfg.Write.Mode == table.Increment)
	if err != nil || !before.Rows || !is.missing && !before.Twice {
		return is.missing, err
	}
	if again, err := lookAtState(ctx, r, store, place); again == nil || err != nil {
		return false, err // another process has begun since
	}
	why, begin := "it may be a share that is not mounted, and older rows would be written over newer ones", is.begin
	if before.Twice {
		why, begin = "if it is not the place of the earlier loads, their rows would be duplicated", is.twice
	}
	return false,
		plan.Usagef(
			"--state %s %s table %s, which has rows: %s; mount or name the right place or, for a first load, run: %s", r.State,
			is.what, cfg.Target.Table, why, begin)
}
