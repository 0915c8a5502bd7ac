package options

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option is one option of a command. Its flag, key in job files, field and manual are made from its many fields.
type Option struct {
	Name, Alias string
	Kind        Kind   // 0 is Text
	Usage       string // backquotes enclose the name of the value
	Default     string // the meaning of a zero field; "" if Usage or DefaultText gives it
	DefaultText string
	Values      []string // allowed texts; nil allows any
	Group       string   // in help; "" is before all groups

	In     Commands // commands that have it
	Unused Commands // commands that hide it: they accept it on their command line, and ignore or refuse it
	Hidden bool     // from all help
	Basic  bool     // completion of -- offers only these, for newcomers; all once a letter is typed
	// MayChange means that it does not affect the rows: a resumed run, and a load of its rejects, may use another value.
	MayChange bool
	// OfInputs means that it belongs to the inputs or the run of one load: a load of its rejects does not inherit it.
	OfInputs bool
	// Typed means that it destroys something or changes the meaning of a command: the environment cannot set it.
	Typed bool
	// ByDialect means that the default depends on the dialect: a zero field stays zero.
	ByDialect bool
	// NotEmpty refuses an empty text or zero if given, even without a Default.
	NotEmpty bool
	// Want describes the allowed numbers: Least or more and, if Most is not 0, Most or less. "" allows any number.
	Want        string
	Least, Most float64

	Scope   Scope
	Instead string // advice for a key of a job file, if Scope is NotInJobs; "" means an unknown key

	field []int // index in Command
}

// Kind is how the value of an option is written.
type Kind int

const (
	Plain     Kind = iota // text
	Switch                // true or false
	Whole                 // a whole number
	Number                // a number
	Size                  // bytes, such as 64MiB
	Duration              // such as 90s
	Texts                 // one text each time
	List                  // names between commas
	Lists                 // the same; may be repeated
	Renamings             // old=new each time
	Typings               // name=type each time
)

// Repeated reports whether an option may be given more than once.
func (k Kind) Repeated() bool {
	return k == Texts || k == Lists || k == Renamings || k == Typings
}

// Wants describes a valid value.
func (k Kind) Wants() string {
	return map[Kind]string{Plain: "a string", Size: "a string", List: "a list of names", Texts: "a list of strings",
		Lists:     "a list of strings",
		Renamings: "a list of strings", Typings: "a list of strings", Switch: "true or false",
		Whole: "a whole number in digits only, such as 1000", Number: "a number in digits, such as 1000 or 0.5",
		Duration: "a duration with a unit, such as 500ms, 30s or 15m"}[k]
}

type Commands int

// The commands with common options.
const (
	Load     Commands = 1 << iota
	Copy              // copy between tables
	Sync              // write the differences
	Verify            // compare
	Export            // export rows to files
	Jobs              // run a job file: options of all its loads
	Check             // check inputs: options common to loads and comparisons
	Looking           // examine inputs: inspect, check, advise and so on
	Reaching          // a service, for any purpose
	Machine           // resume and work: options of the machine
	Ending            // commands that may run for long
)

// loads are the commands with the rows of a load: all but exports.
const loads = Load | Copy | Sync | Verify

// Scope is where a job file may set an option.
type Scope int

const (
	OfLoad Scope = iota // each load has its own
	OfJob               // all loads of a job have it together
	OfBoth              // either
	NotInJobs
)

// Find returns the option with a name, preferring an option of loads, or nil.
func Find(name string) *Option { return byName[name] }

// Of returns the options of a set of commands, in the order of help.
func Of(c Commands) (all []*Option) {
	for _, o := range everyOption {
		if o.In&c != 0 {
			all = append(all, o)
		}
	}
	return all
}

// Names returns the names of the options that satisfy is.
func Names(is func(*Option) bool) (names []string) {
	for _, o := range everyOption {
		if is(o) {
			names = append(names, o.Name)
		}
	}
	return names
}

// byName has one option of each name, preferably that of loads. Other options of the same name have the same kind.
var byName = func() map[string]*Option {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Command]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = f.Index
	}
	all := map[string]*Option{}
	for _, o := range slices.Concat(ofLoads, ofTables) {
		if o.In&Load != 0 && o.In&Verify != 0 {
			o.In |= Check
			if o.Unused&Verify != 0 {
				o.Unused |= Check
			}
		}
		if o.field = fields[o.Name]; all[o.Name] == nil {
			all[o.Name] = o
		}
	}
	return all
}()

// InRequest reports whether the option is a field of a request. Other options belong only to commands.
func (o *Option) InRequest() bool { return o.part() == reflect.TypeFor[Request]() }

// part returns the part of Command with the option's field.
func (o *Option) part() reflect.Type { return reflect.TypeFor[Command]().Field(o.field[0]).Type }

func (o *Option) of(c *Command) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(o.field) }

func (r *Request) IsSet(name string) bool { return (&Command{Request: *r}).IsSet(name) }

// Set parses an option from a command line, given once or several times. A zero that means the default is refused.
func (o *Option) Set(c *Command, given []string) error {
	if err := o.set(o.of(c), given); err != nil {
		return fmt.Errorf("--%s%w", o.Name, err)
	}
	if err := o.inBounds(o.of(c)); err != nil {
		o.of(c).SetZero()
		return err
	}
	if f := o.of(c); f.IsZero() && o.Want == "" && (o.NotEmpty || o.Default != "" && !o.ByDialect) && o.Kind != Switch {
		if o.Kind == Plain {
			return fmt.Errorf("--%s is empty; leave it out or give a value", o.Name)
		}
		return fmt.Errorf("--%s %s: want more than 0", o.Name, given[0])
	} else if f.IsZero() {
		c.Zeros = append(slices.Clone(c.Zeros), o.Name)
	}
	return nil
}

// inBounds refuses a number outside the option's bounds.
func (o *Option) inBounds(f reflect.Value) error {
	var n float64
	switch {
	case o.Want == "":
		return nil
	case f.CanFloat():
		n = f.Float()
	default:
		n = float64(f.Int())
	}
	if n >= o.Least && n <= cmp.Or(o.Most, math.MaxFloat64) {
		return nil
	}
	shown := fmt.Sprint(f.Interface())
	if o.Kind == Size {
		shown = fmt.Sprintf("%gMiB", n/(1<<20))
	}
	return fmt.Errorf("--%s %s: want %s", o.Name, shown, o.Want)
}

// oneOf returns the option's value that equals a text, ignoring case. Other texts are refused.
func (o *Option) oneOf(text string) (string, error) {
	if o.Values == nil || text == "" {
		return text, nil
	}
	if i := slices.IndexFunc(o.Values, func(v string) bool { return strings.EqualFold(v, text) }); i >= 0 {
		return o.Values[i], nil
	}
	last := len(o.Values) - 1
	return text, fmt.Errorf(" %q: want %s or %s", text, strings.Join(o.Values[:last], ", "), o.Values[last])
}

func (o *Option) set(field reflect.Value, given []string) (err error) {
	text := given[len(given)-1]
	var value any
	switch o.Kind {
	case Plain:
		if text == "" && o.ByDialect {
			text = "none"
		}
		text, err = o.oneOf(text)
		field.SetString(text)
		return err
	case Switch:
		value, err = strconv.ParseBool(text)
	case Whole:
		value, err = strconv.ParseInt(text, 10, 64)
	case Number:
		value, err = strconv.ParseFloat(text, 64)
	case Duration:
		value, err = time.ParseDuration(text)
	case Size:
		if value, err = ParseSize(text); err != nil {
			return fmt.Errorf(": %w", err)
		}
	case Texts:
		value = slices.Clone(given)
	case List, Lists:
		all := []string{}
		for _, text := range given {
			names, err := ParseList(text)
			if err != nil {
				return fmt.Errorf(": %w", err)
			}
			all = append(all, names...)
		}
		value = all
	case Renamings, Typings:
		if value, err = pairsOf(o.Kind, given); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf(" %q: want %s", text, o.Kind.Wants())
	}
	field.Set(reflect.ValueOf(value).Convert(field.Type()))
	return nil
}

// pairsOf parses old=new and name=type.
func pairsOf(kind Kind, given []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, text := range given {
		if kind == Renamings {
			from, to, ok := CutRename(text)
			if !ok || from == "" || to == "" {
				return nil, fmt.Errorf(" %q: want old=new; quote a name that contains =, as in \"a=b\"=c", text)
			}
			if _, twice := pairs[from]; twice {
				return nil, fmt.Errorf(" %s: given twice", from)
			}
			pairs[from] = to
			continue
		}
		for _, text := range cutTypes(text) {
			column, name, ok := cutType(text)
			if !ok {
				return nil, fmt.Errorf(" %q: want name=type", text)
			}
			pairs[column] = name
		}
	}
	return pairs, nil
}

// withDefaults replaces zero fields by their defaults. It refuses values that an option does not allow.
func (r Request) withDefaults() (Request, error) {
	c := &Command{Request: r}
	for _, o := range Of(^Export) {
		f := o.of(c)
		if !o.InRequest() || f.IsZero() {
			continue
		}
		if o.Values != nil {
			text, err := o.oneOf(f.String())
			if err != nil {
				return r, fmt.Errorf("--%s%w", o.Name, err)
			}
			f.SetString(text)
		}
		if err := o.inBounds(f); err != nil {
			return r, err
		}
	}
	return c.Full(^Export).Request, nil
}
