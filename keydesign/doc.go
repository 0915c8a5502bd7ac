// Package keydesign makes primary keys and attributes of expressions over the columns of the input. The text of an
// expression and the names and types of the columns come in; a Program goes out, which computes one value a row, and
// an Explanation of what the design means for readers. It promises that an expression which compiles meets only values
// of the types that it was checked against, that a value which would break the order of a key is a Reason and never a
// key, and that a result depends on nothing but the row, the expression and the files which the expression names. It
// knows nothing of how rows are read, encoded or written.
//
// # Nulls
//
// An operator or function over a null gives null, and so does an operator of the expression language that cannot work
// with one. Exceptions are a ?? b, comparisons with nil, and salt, for which a null is a value of its own.
//
// # Separators
//
// splice joins parts with a separator. The order of what it makes is the order of the parts only if no part has a
// character that sorts at or below the separator: with "," the text "a!" sorts before "a," although "a" comes before
// "a!". Such a value rejects its row. In the last part it would break nothing, but it is refused there as well, so that
// a key can always be split into its parts again, and so that a part may be added to a design without refusing what
// was accepted before.
package keydesign
