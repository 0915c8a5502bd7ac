package options

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Command is a command requested by flags, the keys of a job file, a resumed run, or the plan of a load for many
// machines. It has a Request, and options that only commands have. Its JSON has no secrets.
type Command struct {
	Name string `json:"command"` // load, copy, sync, verify or export
	// Zeros lists options that were given as zero, which takes precedence over other sources, such as the environment.
	Zeros []string `json:"zeros,omitempty"`
	Request
	Scan
	Differing
	Exporting
	Own
}

// Scan selects the rows and cells of a table to read.
type Scan struct {
	FromKey  string  `json:"from-key,omitempty"` // values of the first key columns, included
	ToKey    string  `json:"to-key,omitempty"`   // values of the first key columns, excluded
	Prefix   string  `json:"prefix,omitempty"`   // values of the first key columns; SetBounds derives FromKey and ToKey
	Filter   string  `json:"filter,omitempty"`   // a condition that the service evaluates
	Where    string  `json:"where,omitempty"`    // an expression that this machine evaluates
	Since    string  `json:"since,omitempty"`    // cells since a time, RFC 3339 or milliseconds; "" means all cells
	Versions string  `json:"versions,omitempty"` // versions of each cell: N or all; "" means all
	MaxRCU   float64 `json:"max-rcu,omitempty"`  // capacity units per second; 0 means no limit
}

// Differing selects what to compare, and how to treat differences.
type Differing struct {
	Delete      bool          `json:"delete,omitempty"`       // delete rows of the table that no record has
	Range       string        `json:"range,omitempty"`        // keys to compare: FROM..TO or one key; "" means all
	IfUnchanged bool          `json:"if-unchanged,omitempty"` // write a row only if unchanged since it was compared
	MaxDelete   string        `json:"max-delete,omitempty"`   // maximum rows to delete, N or N%; "" means 1%
	Plan        bool          `json:"plan,omitempty"`         // only show what would be written
	Examples    int           `json:"examples,omitempty"`     // examples shown of each kind; 0 means 10, unless given
	SettleFor   time.Duration `json:"settle-for,omitempty"`   // time for which differing rows are read again
	Run         string        `json:"run,omitempty"`          // folder of a run to compare with
	Extra       string        `json:"extra,omitempty"`        // rows that no record has: report or fail; "" means report
	Archive     string        `json:"archive,omitempty"`      // archive to compare instead of a table
	Sample      string        `json:"sample,omitempty"`       // share of the keys to compare, 1% or 0.01; "" means all
}

// Exporting describes the output of an export, except for its format (in Text) and its columns (in Mapping).
type Exporting struct {
	Typed  bool   `json:"typed,omitempty"`
	Keys   string `json:"keys,omitempty"`   // file with the keys of the rows to export; "" means all rows
	Output string `json:"output,omitempty"` // file or folder; "" means standard output
	// PartSize is the approximate size of the rows in a file of an output folder, in bytes; 0 means 64 MiB.
	PartSize int64 `json:"part-size,omitempty"`
}

// Own configures the process that runs the command.
type Own struct {
	Profile            string        `json:"profile,omitempty"`
	Store              string        `json:"store,omitempty"` // folder of an embedded store
	Sync               string        `json:"sync,omitempty"`  // syncing of that store: always or none; "" means always
	JSON               bool          `json:"json,omitempty"`
	Quiet              bool          `json:"quiet,omitempty"`
	Status             string        `json:"status,omitempty"` // address to serve the status at; "" means none
	CPUProfile         string        `json:"cpu-profile,omitempty"`
	AllocationsProfile string        `json:"allocations-profile,omitempty"`
	MetricsFile        string        `json:"metrics-file,omitempty"`
	Timeout            time.Duration `json:"timeout,omitempty"` // 0 means never
	JobDir             string        `json:"job-dir,omitempty"`
	Workers            int           `json:"workers,omitempty"` // 0 means 4
}

// optionsOf has the set of options of each command.
var optionsOf = map[string]Commands{
	"load": Load | Ending, "copy": Copy | Ending, "sync": Sync | Ending, "verify": Verify | Ending,
	"export": Export | Ending,
	"work":   Machine,
}

// OfCommand returns the options of a command by its name, in the order of help.
func OfCommand(name string) []*Option { return Of(optionsOf[name]) }

// Having returns the set of options of a command by its name. It is empty for names that a Command cannot have.
func Having(name string) Commands { return optionsOf[name] }

// For returns an option of a command, or nil if the command does not have it.
func For(command, name string) *Option { return optionsOf[command].Option(name) }

// Option returns the commands' option with the given name, or nil.
func (c Commands) Option(name string) *Option {
	for _, o := range everyOption {
		if o.Name == name && o.In&c != 0 {
			return o
		}
	}
	return nil
}

// Shown reports whether the help of the command has the option.
func (o *Option) Shown(command string) bool { return !o.Hidden && o.Unused&optionsOf[command] == 0 }

// Rare reports whether the command's help only names the option. Hidden options not in jobs are for developers.
func (o *Option) Rare(command string) bool {
	return o.Hidden && o.Scope != NotInJobs && o.Unused&optionsOf[command] == 0
}

// InJobs reports whether a job file has the option as a key of the command.
func (o *Option) InJobs(command string) bool {
	return o.Scope != NotInJobs && o.Unused&optionsOf[command] == 0
}

// Value returns a command's value of an option, or its default: a text, switch, number, duration, list or map.
func (o *Option) Value(c *Command) any {
	f := o.of(c)
	if !f.IsZero() || o.Default == "" || slices.Contains(c.Zeros, o.Name) {
		return f.Interface()
	}
	def := reflect.New(o.of(c).Type()).Elem()
	if err := o.set(def, []string{o.Default}); err != nil {
		panic(fmt.Sprintf("default of --%s: %v", o.Name, err)) // a test parses all defaults
	}
	return def.Interface()
}

// Full returns the command with defaults in place of missing options.
func (c *Command) Full(having Commands) *Command {
	full := *c
	for _, o := range Of(having) {
		if o.Default != "" && !o.ByDialect {
			o.of(&full).Set(reflect.ValueOf(o.Value(c)))
		}
	}
	return &full
}

func (c *Command) IsSet(name string) bool {
	o := byName[name]
	return o != nil && !o.of(c).IsZero() || slices.Contains(c.Zeros, name)
}

// Clear resets options. Unknown names are ignored.
func (c *Command) Clear(names ...string) {
	for _, name := range names {
		if o := byName[name]; o != nil {
			o.of(c).SetZero()
		}
	}
	c.Zeros = slices.DeleteFunc(slices.Clone(c.Zeros), func(name string) bool { return slices.Contains(names, name) })
}

// After takes options that the command does not set from an earlier command, and joins repeatable options of both.
func (c *Command) After(before *Command) {
	for name, o := range byName {
		now, was := o.of(c), o.of(before)
		switch {
		case slices.Contains(c.Zeros, name):
		case now.IsZero() && slices.Contains(before.Zeros, name):
			c.Zeros = append(slices.Clone(c.Zeros), name)
		case now.IsZero():
			now.Set(was)
		case o.Kind == Texts || o.Kind == Lists:
			now.Set(reflect.AppendSlice(reflect.AppendSlice(reflect.Zero(was.Type()), was), now))
		case o.Kind == Renamings || o.Kind == Typings:
			both := maps.Clone(was.Interface().(map[string]string))
			maps.Copy(both, now.Interface().(map[string]string))
			now.Set(reflect.ValueOf(both))
		}
	}
}

// flagInText matches a flag as messages name it, or a complete command line.
var flagInText = regexp.MustCompile(`tsimport [a-z][^;]*|--[a-z][a-z0-9-]+`)

// InFields rewords a message for a program, which sets fields instead of flags: --max-wcu becomes MaxWCU.
func InFields(message string) string {
	return flagInText.ReplaceAllStringFunc(message, func(text string) string {
		if o := byName[strings.TrimPrefix(text, "--")]; o != nil && (o.InRequest() || o.part() == reflect.TypeFor[Scan]()) {
			return reflect.TypeFor[Command]().FieldByIndex(o.field).Name
		}
		return text
	})
}

// ReadCommand reads a command from JSON. It refuses unknown fields, without which the command would be a different one.
func ReadCommand(text json.RawMessage) (*Command, error) {
	c := new(Command)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return c, nil
}
