// Package keyexpr computes primary keys and attributes from expressions over the input's columns. Compile takes the
// text of an expression and the names and types of the columns, and returns a Program, which computes one value per
// row. Explain says what a key design means for readers. A compiled expression meets only values of the types that it
// was checked against, a value that would break the order of a key is a Reason and never a key, and a result depends
// only on the row, the expression and the files that it names.
//
// # Nulls
//
// An operator or function over a null gives null, and so does an operator of the expression language that cannot work
// with one. Exceptions are a ?? b, comparisons with nil, and salt, for which a null is a value of its own.
//
// # Separators
//
// splice joins parts with a separator. The result sorts like the parts only if no part has a character at or below the
// separator: with "," the text "a!" sorts before "a,". Such a value rejects its row, also in the last part, so that a
// key can be split again and a part may be added to a design later.
package keyexpr
