package commands

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// libraryFlagText is the line of a flag in --help as the library makes it.
var libraryFlagText = cli.FlagStringer

func init() { cli.FlagStringer = flagText }

// flagText is the line of a flag in --help. The library adds a zero value as the default, also where the usage names what happens without the
// flag; and a switch is always off by default.
func flagText(f cli.Flag) string {
	text := libraryFlagText(f)
	at := strings.LastIndex(text, " (default: ")
	if at < 0 {
		return text
	}
	before, after := text[:at], text[at:]
	end := strings.Index(after, ")") + 1
	if strings.Contains(before, "(default") || strings.HasPrefix(after, " (default: false)") {
		return before + after[end:]
	}
	return text
}
