package mysql

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// readOptions reads the sections for clients of file or, if file is "", of ~/.my.cnf. It ignores includes.
func readOptions(file string) (map[string]string, error) {
	options := map[string]string{}
	given := file != ""
	if !given {
		home, err := os.UserHomeDir()
		if err != nil {
			return options, nil
		}
		file = filepath.Join(home, ".my.cnf")
	}
	text, err := os.ReadFile(file)
	if !given && errors.Is(err, fs.ErrNotExist) {
		return options, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the option file: %w", err)
	}
	ours := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';' || line[0] == '!':
		case line[0] == '[':
			group, _, _ := strings.Cut(line[1:], "]")
			ours = group == "client" || group == "client-mariadb" || group == "client-server"
		case ours:
			name, value, _ := strings.Cut(line, "=")
			name = strings.ReplaceAll(strings.TrimSpace(name), "_", "-")
			options[name] = optionValue(strings.TrimSpace(value))
		}
	}
	return options, nil
}

// optionValue returns a value without quotes and escapes.
func optionValue(text string) string {
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		text = text[1 : n-1]
	} else if at := strings.Index(text, " #"); at >= 0 {
		text = strings.TrimSpace(text[:at])
	}
	return escapes.Replace(text)
}

var escapes = strings.NewReplacer(`\b`, "\b", `\t`, "\t", `\n`, "\n", `\r`, "\r", `\\`, `\`, `\s`, " ")
