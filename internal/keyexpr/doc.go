// Package keyexpr computes primary keys and attributes from expressions over the input's columns. Compile takes the
// text of an expression and the names and types of the columns, and returns a Program, which computes one value per
// row. Explain describes what a key design means for readers of the table. A Program must be given values of the types
// that it was checked against. A value that would break the order of a key gives a Reason instead of a key. A result
// depends only on the row, the expression and the files that it names.
//
// # Nulls
//
// An operator or function gives null if an operand is null, even if the expression language itself could not handle the
// null. The exceptions are a ?? b, comparisons with nil, operators that do not need the operand (and, or, ?:),
// functions of the expression language that accept null, such as type, and salt, which treats null like other values.
//
// # Separators
//
// splice joins parts with a separator. The result sorts like the parts only if no part has a character at or below the
// separator: with "," the string "a!" sorts before "a,". Rows with such a value are rejected, even in the last part, so
// that keys can be split again and a part can be added to a design later.
package keyexpr
