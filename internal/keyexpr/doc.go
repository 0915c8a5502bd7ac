// Package keyexpr computes primary keys and attributes from expressions over the input's columns. Compile takes the
// text of an expression and the names and types of the columns, and returns a Program, which computes one value per
// row. Explain says what a key design means for readers. A compiled expression meets only values of the types that it
// was checked against, a value that would break the order of a key is a Reason and never a key, and a result depends
// only on the row, the expression and the files that it names. The package does not know how rows are read or written.
//
// # Nulls
//
// An operator or function over a null gives null, and so does an operator of the expression language that cannot work
// with one. Exceptions are a ?? b, comparisons with nil, and salt, for which a null is a value of its own.
//
// # Separators
//
// splice joins parts with a separator. The result sorts like the parts only if no part has a character that sorts at or
// below the separator: with "," the text "a!" sorts before "a," although "a" comes before "a!". Such a value rejects
// its row. In the last part it would break nothing, but it is refused there as well, so that a key can always be split
// into its parts again, and so that a part may be added to a design without refusing values that were accepted before.
package keyexpr
