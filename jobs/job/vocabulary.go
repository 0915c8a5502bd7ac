package job

import "slices"

// Kind is what the value of a key is.
type Kind uint8

const (
	Text     Kind = iota // a text or a number, as it is written
	Bool                 // true or false
	Whole                // a whole number
	Number               // a number
	Duration             // a text such as 30s
	List                 // texts; a text alone is a list of one
	Names                // a text with commas, or a list of names
)

// Key is a flag of a command as a key of a job file.
type Key struct {
	Name  string
	Kind  Kind
	Usage string
	// Values are all that it may be; nil is anything of the kind.
	Values []string
	// OfJob says that it is one for all loads of a job: it stands in defaults, not in a load.
	OfJob bool
	// Shared says that in defaults it is one for all loads together; in a load it is beside that for this load alone.
	Shared bool
}

// Vocabulary is the keys of a job file.
type Vocabulary struct {
	// Commands are the keys of each command that a load may be.
	Commands map[string][]Key
	// Target are the keys of the target.
	Target []string
	// Refused says of keys that are flags, but not keys, what to do instead.
	Refused map[string]string
}

// Commands that a load may be. The first is what a load is that does not say.
const (
	Load   = "load"
	Copy   = "copy"
	Sync   = "sync"
	Export = "export"
)

// Keys that are not flags.
const (
	keyFrom    = "from"
	keyAfter   = "after"
	keyExcept  = "except"
	keyCommand = "command"
	keyTable   = "table"
)

// key returns a key of a command.
func (v *Vocabulary) key(command, name string) (Key, bool) {
	keys := v.Commands[command]
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// any returns a key of any command.
func (v *Vocabulary) any(name string) (Key, bool) {
	for _, command := range []string{Load, Copy, Sync, Export} {
		if k, ok := v.key(command, name); ok {
			return k, true
		}
	}
	return Key{}, false
}

// names returns the names of the keys of a command, or of all without one.
func (v *Vocabulary) names(command string) (names []string) {
	for _, c := range []string{Load, Copy, Sync, Export} {
		if command != "" && c != command {
			continue
		}
		for _, k := range v.Commands[c] {
			if !slices.Contains(names, k.Name) {
				names = append(names, k.Name)
			}
		}
	}
	return names
}
