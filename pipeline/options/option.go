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
	Kind        Kind   // 0 is Plain
	Usage       string // backquotes enclose the name of the value
	Default     string // value that a zero field means; "" if Usage or DefaultText tells
	DefaultText string
	Values      []string // allowed texts; nil allows any
	Group       string   // group in help; "" means before all groups

	In     Commands // commands that have it
	Unused Commands // commands that hide it: they accept it on the command line, and ignore or refuse it
	Hidden bool     // help only names it, as an option for rare needs
	Basic  bool     // completion of -- offers only basic options, until a letter is typed
	// MayChange means that it does not affect the rows, so that a resumed run or a load of rejects may use another value.
	MayChange bool
	// OfInputs means that it belongs to the inputs or the run of one load, so that a load of rejects does not inherit it.
	OfInputs bool
	// Typed means that the environment cannot set it, because it destroys something or changes what a command means.
	Typed bool
	// ByDialect means that the default depends on the dialect, so that a zero field is left zero.
	ByDialect bool
	// NotEmpty means that an empty text or zero is refused if given, even without a Default.
	NotEmpty bool
	// Want describes the allowed numbers, from Least to Most (0 means no maximum). If it is "", any number is allowed.
	Want        string
	Least, Most float64

	Scope   Scope
	Instead string // advice for a key of a job file, if Scope is NotInJobs; "" means an unknown key

	field []int // index of its field in Command
}

// Kind is the syntax of an option's value.
type Kind int

const (
	Plain     Kind = iota // text
	Switch                // true or false
	Whole                 // a whole number
	Number                // a number
	Size                  // bytes, such as 64MiB
	Duration              // a time such as 90s
	Texts                 // a text; may be repeated
	List                  // names separated by commas
	Lists                 // names separated by commas; may be repeated
	Renamings             // old=new; may be repeated
	Typings               // name=type; may be repeated
)

// Repeated reports whether an option may be given more than once.
func (k Kind) Repeated() bool {
	return k == Texts || k == Lists || k == Renamings || k == Typings
}

// Wants describes a valid value.
func (k Kind) Wants() string {
	return map[Kind]string{Plain: "a string", Size: "a string", List: "a list of names", Texts: "a list of strings",
		Lists: "a list of strings", Renamings: "a list of strings", Typings: "a list of strings", Switch: "true or false",
		Whole: "a whole number in digits only, such as 1000", Number: "a number in digits, such as 1000 or 0.5",
		Duration: "a duration with a unit, such as 500ms, 30s or 15m"}[k]
}

type Commands int

// Sets of commands that share options.
const (
	Load     Commands = 1 << iota
	Copy              // copy between tables
	Sync              // write the differences to a table
	Verify            // compare inputs or tables
	Export            // export rows to files
	Jobs              // run a job file, with options of all its loads
	Check             // check inputs, with options common to loads and comparisons
	Looking           // examine inputs, as inspect, check and advise do
	Reaching          // use a service for any purpose
	Machine           // resume and work, with options of the machine
	Ending            // commands that may run for long
)

// loads are the commands that make the rows of a load.
const loads = Load | Copy | Sync | Verify

// Scope says where a job file may set an option.
type Scope int

const (
	OfLoad Scope = iota // each load has its own
	OfJob               // all loads of a job share it
	OfBoth              // either of these
	NotInJobs
)

// Find returns the option with the given name, preferably a load's, or nil.
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

// byName has one option for each name, preferably that of loads. Options with the same name have the same kind.
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

func (o *Option) part() reflect.Type { return reflect.TypeFor[Command]().Field(o.field[0]).Type }

func (o *Option) of(c *Command) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(o.field) }

func (r *Request) IsSet(name string) bool { return (&Command{Request: *r}).IsSet(name) }

// Set parses an option, given once or several times on a command line. It refuses a zero that would mean the default.
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

func (o *Option) inBounds(f reflect.Value) error {
	if o.Want == "" {
		return nil
	}
	n := f.Convert(reflect.TypeFor[float64]()).Float()
	if n >= o.Least && n <= cmp.Or(o.Most, math.MaxFloat64) {
		return nil
	}
	shown := fmt.Sprint(f.Interface())
	if o.Kind == Size {
		shown = fmt.Sprintf("%gMiB", n/(1<<20))
	}
	return fmt.Errorf("--%s %s: want %s", o.Name, shown, o.Want)
}

// oneOf returns the option's value that equals a text except for case, or an error if there is none.
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
