package job

import (
	"cmp"
	"encoding/json"

	"example.com/tsimport/pipeline/options"
)

type schema map[string]any

// Schema returns the JSON schema of job files, for editors.
func (v *Vocabulary) Schema() ([]byte, error) {
	null := schema{"type": "null"}
	text := schema{"type": []string{"string", "number"}}
	list := schema{"anyOf": []any{text, schema{"type": "array", "items": text}}}
	withVariable := func(of schema) schema {
		return schema{"anyOf": []any{of, schema{"type": "string", "pattern": `\$\{`}, null}}
	}
	definitions := schema{
		"text": withVariable(text), "bool": withVariable(schema{"type": "boolean"}),
		"whole":  withVariable(schema{"type": "integer"}),
		"number": withVariable(schema{"type": "number"}), "list": withVariable(list),
		"pairs": withVariable(schema{"anyOf": []any{list, schema{"type": "object", "additionalProperties": text}}}),
	}
	kinds := map[options.Kind]string{options.Switch: "bool", options.Whole: "whole", options.Number: "number",
		options.List: "list", options.Texts: "list", options.Lists: "list",
		options.Renamings: "pairs", options.Typings: "pairs"}
	value := func(k *options.Option) schema {
		name := "key-" + k.Name
		if definitions[name] == nil { // a key has the same meaning for all commands
			definitions[name] = schema{"$ref": "#/$defs/" + cmp.Or(kinds[k.Kind], "text"), "description": k.Usage}
		}
		return schema{"$ref": "#/$defs/" + name}
	}
	object := func(properties schema) schema {
		return schema{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	}
	target, defaults := schema{}, schema{}
	for _, name := range v.Target {
		target[name] = value(v.any(name))
	}
	for _, name := range v.names("") {
		if name != keyTable {
			defaults[name] = value(v.any(name))
		}
	}
	var loads []any
	for _, command := range commands {
		properties := schema{keyAfter: schema{"anyOf": []any{list, null}}, keyCommand: schema{"const": command}}
		required := []string{keyCommand}
		if command == Export {
			required = append(required, "output")
		} else {
			properties[keyFrom], properties[keyExcept] = list, schema{"anyOf": []any{list, null}}
			required = append(required, keyFrom)
		}
		if command == Load {
			required = []string{keyFrom}
		}
		for _, k := range v.Commands[command] {
			switch {
			case k.Scope == options.OfJob:
			case k.Values != nil: // the values may differ between commands
				of := withVariable(schema{"enum": k.Values})
				of["description"] = k.Usage
				properties[k.Name] = of
			default:
				properties[k.Name] = value(k)
			}
		}
		definition := object(properties)
		definition["type"], definition["required"] = "object", required
		definitions[command] = definition
		loads = append(loads, schema{"$ref": "#/$defs/" + command})
	}
	root := object(schema{
		"version": schema{"const": Version}, "parallel": schema{"type": "integer", "minimum": 1},
		"target": object(target), "defaults": object(defaults),
		"loads": schema{"type": "object", "minProperties": 1, "additionalProperties": schema{"oneOf": loads}},
	})
	root["$schema"], root["title"], root["$defs"] = "https://json-schema.org/draft/2020-12/schema", "tsimport job",
		definitions
	root["type"], root["required"] = "object", []string{"version", "loads"}
	out, err := json.MarshalIndent(root, "", " ")
	return append(out, '\n'), err
}
