// Package keyexpr computes primary keys and attributes from expressions over the input's columns. Compile takes the
// text of an expression and the names and types of the columns, and returns a Program, which computes one value per
// row. Explain describes what a key design means for readers. A compiled expression sees only values of the types that
// it was checked against. A value that would break the order of a key is a Reason, never a key. A result depends only
// on the row, the expression and the files that it names.
//
// # Nulls
//
// An operator or function of a null gives null, and so does an operator of the expression language that cannot handle
// nulls. The exceptions are a ?? b, comparisons with nil, and salt, for which null is a value like any other.
//
// # Separators
//
// splice joins parts with a separator. The result sorts like the parts only if no part has a character at or below the
// separator: with "," the text "a!" sorts before "a,". Rows with such a value are rejected, even in the last part, so
// that keys can be split again and a design can get another part later.
package keyexpr
