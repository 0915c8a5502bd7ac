package job

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"example.com/tsimport/pipeline/options"
)

// Marshal returns the text of the file with the given target. It refuses values that Parse would read differently.
func (f *File) Marshal(v *Vocabulary, target []Setting) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	put(root, "version", plain(fmt.Sprint(Version)))
	if f.Parallel > 0 {
		put(root, "parallel", plain(fmt.Sprint(f.Parallel)))
	}
	for _, part := range []struct {
		name     string
		settings []Setting
	}{{"target", target}, {"defaults", f.Common}} {
		if len(part.settings) > 0 {
			n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
			if err := v.putAll(n, part.settings); err != nil {
				return nil, err
			}
			put(root, part.name, n)
		}
	}
	loads := &yaml.Node{Kind: yaml.MappingNode}
	for _, l := range f.Loads {
		n := &yaml.Node{Kind: yaml.MappingNode}
		if l.Command != Load {
			put(n, keyCommand, plain(l.Command))
		}
		if len(l.From) > 0 {
			put(n, keyFrom, texts(l.From))
		}
		if err := v.putAll(n, l.Settings); err != nil {
			return nil, err
		}
		if len(l.After) > 0 {
			put(n, keyAfter, texts(l.After))
		}
		put(loads, l.Name, n)
	}
	put(root, "loads", loads)
	text, err := yaml.Dump(root)
	if err != nil {
		return nil, fmt.Errorf("write job: %w", err)
	}
	if _, err := Parse("job", text, v); err != nil {
		return nil, fmt.Errorf("write job: %w", err)
	}
	return text, nil
}

func (v *Vocabulary) putAll(n *yaml.Node, settings []Setting) error {
	for _, s := range settings {
		for _, text := range s.Values {
			if i := strings.Index(variable.ReplaceAllString(text, ""), "${"); i >= 0 {
				return fmt.Errorf("write job: %s: ${ would be read as a variable", s.Key)
			}
		}
		k := v.any(s.Key)
		switch {
		case k == nil:
			return fmt.Errorf("write job: %s is not a key", s.Key)
		case k.Kind.Repeated():
			put(n, s.Key, texts(s.Values))
		case k.Kind == options.Switch || k.Kind == options.Whole || k.Kind == options.Number:
			put(n, s.Key, plain(s.Values[0]))
		default:
			put(n, s.Key, quotedText(s.Values[0]))
		}
	}
	return nil
}

func put(to *yaml.Node, key string, value *yaml.Node) {
	k := plain(key)
	if strings.ContainsAny(key, "{}") || slices.Contains([]string{"null", "true", "false"}, key) {
		k = quotedText(key)
	}
	to.Content = append(to.Content, k, value)
}

// plain returns a value that YAML may read as a number or a boolean.
func plain(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// quotedText returns a value that YAML must read as a string.
func quotedText(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

func texts(all []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, t := range all {
		n.Content = append(n.Content, quotedText(t))
	}
	return n
}
