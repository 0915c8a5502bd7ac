package wire

// checkPlaceholder checks the placeholder of an auto-increment column, and gives it the size of a number.
func (c *Change) checkPlaceholder() *Error {
	n := 0
	for i := range c.Row.Key {
		if cell := &c.Row.Key[i]; cell.Type == AutoIncrement {
			cell.Value = make([]byte, 8)
			n++
		}
	}
	switch {
	case n == 0:
		return nil
	case n > 1:
		return Invalid("%d pk auto increment exist in row.", n)
	case c.Op == DeleteRow:
		return Invalid("Invalid row to delete which with pk auto increment.")
	case c.Expect != Ignore:
		return Invalid("Invalid expect:%s when modify row with pk auto increment", c.Expect)
	case len(c.Condition) > 0:
		return Invalid("Can't set condition when modify row with pk auto increment")
	}
	return nil
}

func (r *CreateTable) checkAutoIncrement() *Error {
	n := 0
	for i, c := range r.Key {
		if !c.AutoIncrement {
			continue
		}
		switch {
		case i == 0:
			return Invalid("First primary key can't be auto increment, table: %s", r.Name)
		case c.Type != KeyInteger:
			return Invalid("AUTO_INCREMENT primary key must be integer.")
		}
		n++
	}
	if n > 1 {
		return Invalid("AUTO_INCREMENT primary key count must <= 1.")
	}
	if n > 0 && r.LocalTxn.Value {
		return Invalid("A table with an AUTO_INCREMENT primary key cannot have local transactions.")
	}
	return nil
}
