package wire

// readDefined returns a function that decodes a predefined column and appends it.
func readDefined(to *[]DefinedColumn) func([]byte) *Error {
	return func(b []byte) *Error {
		var c DefinedColumn
		var typ Optional[int32]
		err := message{{1, "", &c.Name}, {2, "", &typ}}.read(b)
		c.Type = typ.Value
		*to = append(*to, c)
		return err
	}
}

// DefinedColumns is a decoded AddDefinedColumn or DeleteDefinedColumn request.
type DefinedColumns struct {
	Name   TableName
	Add    []DefinedColumn
	Delete []string
}

func DecodeAddDefined(b []byte) (*DefinedColumns, *Error) {
	r := &DefinedColumns{}
	return r, r.read(b, readDefined(&r.Add))
}

func DecodeDeleteDefined(b []byte) (*DefinedColumns, *Error) {
	r := &DefinedColumns{}
	return r, r.read(b, &r.Delete)
}

func (r *DefinedColumns) read(b []byte, columns any) *Error {
	err := message{{1, "table_name", &r.Name}, {2, "", columns}}.read(b)
	if err == nil && len(r.Add)+len(r.Delete) == 0 {
		err = Invalid("No defined column is specified.")
	}
	return err
}

// Apply returns the predefined columns of a table after the request, or an error. It does not change have.
func (r *DefinedColumns) Apply(key []KeyColumn, have []DefinedColumn) ([]DefinedColumn, *Error) {
	if len(r.Delete) > 0 {
		return r.without(have)
	}
	if err := checkDefined(key, have, r.Add); err != nil {
		return nil, err
	}
	return append(have[:len(have):len(have)], r.Add...), nil
}

func (r *DefinedColumns) without(have []DefinedColumn) (kept []DefinedColumn, err *Error) {
	gone := make(map[string]bool, len(r.Delete))
	for _, name := range r.Delete {
		if gone[name] {
			return nil, Invalid("Duplicated column name: '%s'.", name)
		}
		gone[name] = true
	}
	for _, c := range have {
		if !gone[c.Name] {
			kept = append(kept, c)
		}
		delete(gone, c.Name)
	}
	for _, name := range r.Delete {
		if gone[name] {
			return nil, Invalid("Defined column '%s' does not exist.", name)
		}
	}
	return kept, nil
}
