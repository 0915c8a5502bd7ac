package copytable

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// Side is a table and the service that holds it.
type Side struct {
	Client   *tablestore.TableStoreClient
	Endpoint string
	Instance string
	Name     string        // name of the table
	Table    *client.Table // nil if the table does not exist
	Clock    *client.Clock // the service's clock; nil if unknown
}

// Distinct returns an error if both sides are the same table. Endpoints may differ, so instance, name and creation time
// identify a table.
func Distinct(from, to Side) error {
	if from.Instance != to.Instance || from.Name != to.Name {
		return nil
	}
	if from.Endpoint == to.Endpoint {
		return plan.Usagef("source and target are the same table: %s of instance %s", from.Name, from.Instance)
	}
	if from.Table == nil || to.Table == nil || from.Table.Created != 0 && to.Table.Created != 0 &&
		from.Table.Created != to.Table.Created {
		return nil
	}
	return plan.Usagef("source and target seem to be the same table: %s of instance %s, reached through %s "+
		"and %s", from.Name, from.Instance, from.Endpoint, to.Endpoint)
}

// Define completes the target with the source's key and options that the user does not set. The target accepts
// timestamps of any age. The notes are for the user.
func Define(target *plan.Target, columns *plan.Columns, from *client.Table,
	given func(flag string) bool) (notes []string) {
	if len(target.Key) == 0 {
		target.Key = slices.Clone(from.Key)
		for i := range target.Key {
			target.Key[i].Name = columns.To(target.Key[i].Name)
		}
	}
	for i := range target.Key {
		k := &target.Key[i]
		computed := slices.ContainsFunc(columns.Keys, func(c plan.Column) bool { return c.Name == k.Name })
		if at := indexOf(from.Key, sourceOf(columns, k.Name)); at >= 0 && k.Type == table.Null && !computed {
			k.Type = from.Key[at].Type
		}
	}
	d := &target.Define
	if !given("ttl") {
		d.TimeToLive = from.TimeToLive
	}
	if !given("max-versions") {
		d.MaxVersions = from.MaxVersions
	}
	d.ReservedRead, d.ReservedWrite = from.ReservedRead, from.ReservedWrite
	d.MaxDeviation = table.AnyAge
	notes = append(notes, fmt.Sprintf("a new table gets a maximum deviation of %d seconds, so that it accepts timestamps "+
		"of any age; the source has %d", d.MaxDeviation, cmp.Or(from.MaxDeviation, client.DefaultDeviation)))
	target.Defined = map[string]table.Type{}
	for name, t := range from.Defined {
		to := columns.To(name)
		if columns.Takes(name) && !slices.ContainsFunc(columns.Set, func(c plan.Column) bool { return c.Name == to }) &&
			indexOf(target.Key, to) < 0 {
			target.Defined[to] = t
		}
	}
	d.NoUpdates = from.NoUpdates
	return notes
}

// sourceOf returns the source's name of a target column that is not computed.
func sourceOf(columns *plan.Columns, name string) string {
	for from, to := range columns.Rename {
		if to == name {
			return from
		}
	}
	return name
}

func indexOf(key []table.KeyColumn, name string) int {
	return slices.IndexFunc(key, func(k table.KeyColumn) bool { return k.Name == name })
}

// CheckKey refuses a target key with an auto-increment column, because a copy finds rows by key. instead tells the user
// what to do.
func CheckKey(to string, key []table.KeyColumn, source, instead string) error {
	i := slices.IndexFunc(key, func(k table.KeyColumn) bool { return k.Auto })
	if i < 0 {
		return nil
	}
	plain := ""
	for _, k := range key {
		plain += " --pk " + k.Name + ":" + k.Type.String()
	}
	return plan.Usagef("table %s has the auto-increment key column %s, for which the service does not accept the numbers "+
		"of %s; %s; a copy into a new table with%s keeps the source's numbers as plain integers",
		to, key[i].Name, source, instead, plain)
}

// KeepsVersions refuses a target that keeps fewer versions than are copied, because the service would drop the rest. If
// versions is 0, all are copied.
func KeepsVersions(to string, define *table.Definition, source string, from *client.Table, versions int) error {
	kept, read := max(define.MaxVersions, 1), max(from.MaxVersions, 1)
	if versions > 0 {
		read = min(read, versions)
	}
	if read <= kept {
		return nil
	}
	return plan.Usagef("table %s keeps %d versions of a cell, and %s up to %d; raise the target's limit (--max-versions "+
		"%d if the copy creates it), or copy only the newest ones with --versions %d",
		to, kept, source, read, read, kept)
}

// Oldest returns the earliest timestamp that a table accepts.
func Oldest(t *table.Definition, now time.Time) time.Time {
	seconds := cmp.Or(t.MaxDeviation, client.DefaultDeviation)
	if t.TimeToLive > 0 {
		seconds = min(seconds, int64(t.TimeToLive))
	}
	return time.Unix(now.Unix()-min(seconds, now.Unix()), 0)
}

// Expires reports whether every cell too old for the target has already expired in the source.
func Expires(from *client.Table, to *table.Definition) bool {
	return from.TimeToLive > 0 && int64(from.TimeToLive) <= cmp.Or(to.MaxDeviation, client.DefaultDeviation) &&
		(to.TimeToLive < 0 || from.TimeToLive <= to.TimeToLive)
}
