package commands

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// tableChange is the output of `table update --json`.
type tableChange struct {
	Changed bool        `json:"changed"`
	Before  description `json:"before"`
	After   description `json:"after"`
}

func tableUpdate(c *call) error {
	name, err := tableName(c)
	if err != nil {
		return err
	}
	want, err := wantedChange(c)
	if err != nil {
		return err
	}
	return withAdmin(c, access{}, func(a *client.Admin, t *target) error {
		was, err := a.Describe(name)
		if err != nil {
			return noTable(err, t)
		}
		change := want.difference(was)
		if !change.Reserves() && !change.Options() {
			c.say.Line("table %s already has these settings", name)
			return showChange(c, describe(was), describe(was))
		}
		if err := checkChange(was, &change, c.Bool("yes")); err != nil {
			return err
		}
		if err := a.Update(name, change); err != nil {
			return tooSoon(a, t, name, err)
		}
		now, err := a.Describe(name)
		if err != nil {
			return noTable(err, t)
		}
		return showChange(c, describe(was), describe(now))
	})
}

type wanted struct{ client.Change }

// wantedChange parses the flags and refuses settings that no table can have.
func wantedChange(c *call) (w wanted, err error) {
	number := func(flag string, to **int, least, most int) {
		if !c.IsSet(flag) || err != nil {
			return
		}
		n := c.Int(flag)
		if n < least || n > most {
			err = usagef("--%s %d: want %d to %d", flag, n, least, most)
		}
		*to = &n
	}
	const maxInt32 = 1<<31 - 1
	number("reserved-read", &w.ReservedRead, 0, client.MaxReserved)
	number("reserved-write", &w.ReservedWrite, 0, client.MaxReserved)
	number("max-versions", &w.MaxVersions, 1, maxInt32)
	if c.IsSet("ttl") {
		seconds := c.Int("ttl")
		if bad := table.CheckTimeToLive(seconds); bad != nil && err == nil {
			err = usagef("--ttl %d: %v", seconds, bad)
		}
		w.TimeToLive = &seconds
	}
	if c.IsSet("max-deviation") {
		seconds := c.Int64("max-deviation")
		if seconds < 1 && err == nil {
			err = usagef("--max-deviation %d: want 1 or more", seconds)
		}
		w.MaxDeviation = &seconds
	}
	if c.IsSet("allow-update") {
		allow := c.Bool("allow-update")
		w.AllowUpdate = &allow
	}
	if err == nil && !w.Reserves() && !w.Options() {
		err = usagef("name what to change: --reserved-read, --reserved-write, --ttl, --max-versions, --max-deviation or " +
			"--allow-update")
	}
	return w, err
}

// difference returns the settings that the table does not have yet.
func (w wanted) difference(t *client.Table) client.Change {
	d := w.Change
	for _, f := range []struct {
		want **int
		is   int
	}{{&d.ReservedRead, t.ReservedRead}, {&d.ReservedWrite, t.ReservedWrite}, {&d.TimeToLive, t.TimeToLive},
		{&d.MaxVersions, t.MaxVersions}} {
		if *f.want != nil && **f.want == f.is {
			*f.want = nil
		}
	}
	if d.MaxDeviation != nil && *d.MaxDeviation == t.MaxDeviation {
		d.MaxDeviation = nil
	}
	if d.AllowUpdate != nil && *d.AllowUpdate == !t.NoUpdates {
		d.AllowUpdate = nil
	}
	return d
}

// checkChange refuses changes that the service would refuse for this table, and those that lose data unless accepted.
func checkChange(t *client.Table, d *client.Change, lossAccepted bool) error {
	live, updates := t.TimeToLive, !t.NoUpdates
	if d.TimeToLive != nil {
		live = *d.TimeToLive
	}
	if d.AllowUpdate != nil {
		updates = *d.AllowUpdate
	}
	if indexes := strings.Join(t.Indexes, ", "); indexes != "" {
		switch {
		case d.MaxVersions != nil && *d.MaxVersions > 1:
			return usagef("--max-versions %d: table %s has secondary indexes (%s), so it keeps only one version of each cell",
				*d.MaxVersions, t.Name, printable(indexes))
		case (d.TimeToLive != nil || d.AllowUpdate != nil) && live != -1 && updates:
			return usagef("table %s has secondary indexes (%s): its data expires only if it refuses updates; give --ttl with "+
				"--allow-update=false, or --ttl -1", t.Name, printable(indexes))
		}
	}
	var lost []string
	if d.TimeToLive != nil && live != -1 && (t.TimeToLive == -1 || live < t.TimeToLive) {
		lost = append(lost, fmt.Sprintf("cells older than %d seconds", live))
	}
	if d.MaxVersions != nil && *d.MaxVersions < t.MaxVersions {
		lost = append(lost, fmt.Sprintf("versions of a cell before the newest %d", *d.MaxVersions))
	}
	if len(lost) > 0 && !lossAccepted {
		return usagef("this would delete from table %s at once: %s; add --yes to do it", t.Name, strings.Join(lost, ", and "))
	}
	return nil
}

// tooSoon adds the time of the next possible change to the service's error for changes in quick succession.
func tooSoon(a *client.Admin, t *target, name string, err error) error {
	if !errors.Is(err, client.ErrTooFrequent) {
		return noTable(err, t)
	}
	now := a.Connection.Now()
	due, dueErr := a.Changeable(name, client.ThroughputInterval, now)
	if dueErr != nil || !due.After(now) {
		return fmt.Errorf("%w: the service allows one change every %v; repeat the command later; nothing was changed", err,
			client.ThroughputInterval)
	}
	return fmt.Errorf("%w: the service allows one change every %v; repeat the command in %v, at %s; nothing was changed",
		err, client.ThroughputInterval,
		due.Sub(now).Round(time.Second), due.Local().Format("15:04:05"))
}

func showChange(c *call, was, now description) error {
	if c.of.JSON {
		return printJSON(c, tableChange{Changed: changed(was, now), Before: was, After: now})
	}
	if c.of.Quiet {
		return nil
	}
	return writeChange(results(c), was, now)
}

func changed(was, now description) bool {
	was.PrimaryKey, now.PrimaryKey = nil, nil
	return fmt.Sprint(was) != fmt.Sprint(now)
}

func writeChange(to io.Writer, was, now description) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(what string, before, after any, unit string) {
		if before != after {
			fmt.Fprintf(w, "%s\t%v -> %v%s\n", what, before, after, unit)
		}
	}
	row := map[bool]string{true: "taken", false: "refused"}
	line("reserved read throughput", was.ReservedRead, now.ReservedRead, " capacity units")
	line("reserved write throughput", was.ReservedWrite, now.ReservedWrite, " capacity units")
	line("time to live", timeToLiveText(was.TimeToLive), timeToLiveText(now.TimeToLive), "")
	line("max versions", was.MaxVersions, now.MaxVersions, "")
	line("max deviation", was.MaxDeviation, now.MaxDeviation, " seconds")
	line("updates of rows", row[was.AllowUpdate], row[now.AllowUpdate], "")
	return w.Flush()
}
