package job

import "encoding/json"

// schema is a part of a JSON schema.
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
		"text": withVariable(text), "bool": withVariable(schema{"type": "boolean"}), "whole": withVariable(schema{"type": "integer"}),
		"number": withVariable(schema{"type": "number"}), "list": withVariable(list),
		"pairs": withVariable(schema{"anyOf": []any{list, schema{"type": "object", "additionalProperties": text}}}),
	}
	kinds := map[Kind]string{Text: "text", Bool: "bool", Whole: "whole", Number: "number", Duration: "text", List: "list", Names: "list"}
	value := func(k Key) schema {
		name := "key-" + k.Name
		if definitions[name] == nil { // a key has one meaning for all commands that have it
			of := kinds[k.Kind]
			if k.Name == "rename" || k.Name == "type" {
				of = "pairs"
			}
			definitions[name] = schema{"$ref": "#/$defs/" + of, "description": k.Usage}
		}
		return schema{"$ref": "#/$defs/" + name}
	}
	object := func(properties schema) schema {
		return schema{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	}
	target, defaults := schema{}, schema{}
	for _, name := range v.Target {
		k, _ := v.any(name)
		target[name] = value(k)
	}
	for _, name := range v.names("") {
		if k, _ := v.any(name); name != keyTable {
			defaults[name] = value(k)
		}
	}
	var commands []any
	for _, command := range []string{Load, Copy, Sync, Export} {
		properties := schema{keyAfter: schema{"anyOf": []any{list, null}}, keyCommand: schema{"const": command}}
		required := []string{keyCommand}
		switch command {
		case Export:
			required = append(required, "output")
		default:
			properties[keyFrom], properties[keyExcept] = list, schema{"anyOf": []any{list, null}}
			required = append(required, keyFrom)
		}
		if command == Load {
			required = []string{keyFrom}
		}
		for _, k := range v.Commands[command] {
			switch {
			case k.OfJob:
			case k.Values != nil: // which may be others for another command
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
		commands = append(commands, schema{"$ref": "#/$defs/" + command})
	}
	root := object(schema{
		"version": schema{"const": Version}, "parallel": schema{"type": "integer", "minimum": 1},
		"target": object(target), "defaults": object(defaults),
		"loads": schema{"type": "object", "minProperties": 1, "additionalProperties": schema{"oneOf": commands}},
	})
	root["$schema"], root["title"], root["$defs"] = "https://json-schema.org/draft/2020-12/schema", "tsimport job", definitions
	root["type"], root["required"] = "object", []string{"version", "loads"}
	out, err := json.MarshalIndent(root, "", " ")
	return append(out, '\n'), err
}
