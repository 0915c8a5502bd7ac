package wire

// Check checks a CreateTable request, which may request a stream only if streams is set.
func (r *CreateTable) Check(streams bool) *Error {
	if err := r.Stream.check(streams); err != nil {
		return err
	}
	if !ValidTableName(r.Name) {
		return invalidTableName(r.Name)
	}
	if err := r.checkKey(); err != nil {
		return err
	}
	if err := checkDefined(r.Key, nil, r.Defined); err != nil {
		return err
	}
	switch {
	case !r.Options.TTL.Set:
		return Invalid("Time-to-live is missing while creating table.")
	case !r.Options.MaxVersions.Set:
		return Invalid("MaxVersions is missing while creating table.")
	case !r.Throughput.Read.Set || !r.Throughput.Write.Set:
		return Invalid("Both read and write capacity unit are required to create table.")
	}
	if err := r.Options.check(); err != nil {
		return err
	}
	if err := r.Throughput.check(); err != nil {
		return err
	}
	for i := range r.Indexes {
		if err := r.Indexes[i].checkAlone(); err != nil {
			return err
		}
	}
	if err := CheckIndexCount(len(r.Indexes)); err != nil {
		return err
	}
	return r.checkPartitions()
}

func (r *CreateTable) checkKey() *Error {
	if n := len(r.Key); n == 0 || n > MaxKeyColumns {
		return Invalid("The number of primary key columns must be in range: [1, %d].", MaxKeyColumns)
	}
	names := map[string]bool{}
	for _, c := range r.Key {
		switch {
		case !ValidColumnName([]byte(c.Name)):
			return Invalid("Invalid column name: '%s'.", c.Name)
		case c.Type.ValueType() == NoValue:
			return Invalid("%d is an invalid type for the primary key.", c.Type)
		case names[c.Name]:
			return Invalid("Duplicated primary key name: '%s'.", c.Name)
		}
		names[c.Name] = true
	}
	return r.checkAutoIncrement()
}

// checkDefined checks additional predefined columns against the key and the existing ones.
func checkDefined(key []KeyColumn, have, more []DefinedColumn) *Error {
	if len(have)+len(more) > MaxDefinedColumns {
		return Invalid("The number of defined columns must be in range: [0, %d].", MaxDefinedColumns)
	}
	names := map[string]bool{}
	for _, c := range key {
		names[c.Name] = true
	}
	for _, c := range have {
		names[c.Name] = true
	}
	for _, c := range more {
		switch {
		case !ValidColumnName([]byte(c.Name)):
			return Invalid("Invalid column name: '%s'.", c.Name)
		case c.ValueType() == NoValue:
			return Invalid("%d is an invalid type for the defined column: '%s'.", c.Type, c.Name)
		case names[c.Name]:
			return Invalid("Duplicated column name: '%s'.", c.Name)
		}
		names[c.Name] = true
	}
	return nil
}

// Check checks an UpdateTable request, which may request a stream only if streams is set.
func (r *UpdateTable) Check(streams bool) *Error {
	if err := r.Stream.check(streams); err != nil {
		return err
	}
	o, t := &r.Options, &r.Throughput
	switch {
	case !ValidTableName(r.Name):
		return invalidTableName(r.Name)
	case !o.Set && !t.Set && !r.Stream.Set:
		return Invalid("No parameter is specified in UpdateTable.")
	case o.Set && !o.TTL.Set && !o.MaxVersions.Set && !o.Deviation.Set && !o.AllowUpdate.Set && !o.FullRow.Set:
		return Invalid("No parameter is specified in table options.")
	case o.FullRow.Set:
		return Invalid("The table options of UpdateTable can not contain updateFullRow.")
	case t.Set && !t.Read.Set && !t.Write.Set:
		return Invalid("Either read or write capacity unit is required to update table.")
	}
	if err := o.check(); err != nil {
		return err
	}
	return t.check()
}

// CheckIndexed applies CheckIndexable to the options that the request changes. The other options may break its rules,
// because tables with simulated indexes need not follow them.
func (r *UpdateTable) CheckIndexed(d *TableDescription) *Error {
	o, ttl := &r.Options, int32(-1)
	if o.TTL.Set || o.AllowUpdate.Set {
		ttl = o.TTL.Or(d.TTL)
	}
	return CheckIndexable(ttl, o.MaxVersions.Or(1), o.AllowUpdate.Or(d.AllowUpdate))
}

func (o *TableOptions) check() *Error {
	switch {
	case o.TTL.Set && (o.TTL.Value == 0 || o.TTL.Value < -1):
		return Invalid("TimeToLive cannot be 0 or less than -1.")
	case o.MaxVersions.Set && o.MaxVersions.Value <= 0:
		return Invalid("The maximum versions cannot be less than or equal to 0")
	case o.Deviation.Set && (o.Deviation.Value <= 0 || o.Deviation.Value > MaxDeviation):
		return Invalid("The maximum deviation must be in range [0, INT64_MAX/1000000].")
	}
	return nil
}

func (t *Throughput) check() *Error {
	for _, v := range []int32{t.Read.Value, t.Write.Value} {
		if v < 0 || v > MaxReservedUnits {
			return Invalid("The reserved capacity unit must be in range: [0, %d].", MaxReservedUnits)
		}
	}
	return nil
}
