package profile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"go.yaml.in/yaml/v4"

	"example.com/tsimport/internal/tablestore/accesskey"
	"example.com/tsimport/internal/tablestore/address"
)

// FileVariable is the environment variable that names the file of profiles to use instead of the user's own.
const FileVariable = "TSIMPORT_CONFIG"

// Profile is a named configuration. Unknown fields are empty.
type Profile struct {
	Name     string
	Endpoint string
	Instance string
	// EndpointFrom and InstanceFrom say where Endpoint and Instance were found.
	EndpointFrom, InstanceFrom string
	keys                       string // name of the vendor's profile with the keys
}

type entry struct {
	Endpoint string `yaml:"endpoint"`
	Instance string `yaml:"instance"`
	Keys     string `yaml:"keys"`
}

var names = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// File returns the path of the file of profiles, or "" if the user has no settings folder.
func File() string {
	if name := os.Getenv(FileVariable); name != "" {
		return name
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "tsimport", "config.yaml")
}

// Find returns the profile with the given name.
func Find(name string) (*Profile, error) {
	if !names.MatchString(name) {
		return nil, fmt.Errorf("profile %q: want a name of letters, digits and underscores", name)
	}
	all, err := read(File())
	if err != nil {
		return nil, err
	}
	of := all[name]
	p := &Profile{Name: name, keys: cmp.Or(of.Keys, name)}
	for _, f := range []struct {
		variable, inFile string
		to, from         *string
	}{
		{"TABLESTORE_ENDPOINT", of.Endpoint, &p.Endpoint, &p.EndpointFrom},
		{"TABLESTORE_INSTANCE", of.Instance, &p.Instance, &p.InstanceFrom},
	} {
		variable := address.Variable(f.variable, name)
		switch value := os.Getenv(variable); {
		case value != "":
			*f.to, *f.from = value, variable
		case f.inFile != "":
			*f.to, *f.from = f.inFile, "profile "+name+" in "+File()
		}
	}
	return p, nil
}

// read returns no profiles if there is no file.
func read(name string) (map[string]entry, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read profiles: %w", err)
	}
	var file struct {
		Profiles map[string]entry `yaml:"profiles"`
	}
	if err := yaml.Load(text, &file, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("read profiles %s: %s; a profile has endpoint, instance and keys", name,
			strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
	}
	return file.Profiles, nil
}

// Keys returns a provider of the profile's access keys, and their source for messages.
func (p *Profile) Keys() (provider common.CredentialsProvider, from string, err error) {
	suffix := address.Variable("", p.Name)
	if provider, err = accesskey.Environment("TABLESTORE", suffix); provider != nil || err != nil {
		return provider, "TABLESTORE_ACCESS_KEY_ID" + suffix, err
	}
	from = "profile " + p.keys + " of the vendor's command line"
	if provider, err = accesskey.Profile(p.keys); err != nil {
		return nil, from, fmt.Errorf("no access key of profile %s: set TABLESTORE_ACCESS_KEY_ID%s and "+
			"TABLESTORE_ACCESS_KEY_SECRET%s, or configure profile %s of the vendor's command line (%w)", p.Name, suffix, suffix,
			p.keys, err)
	}
	return provider, from, nil
}
