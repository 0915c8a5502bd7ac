// Package null is a Tablestore that keeps nothing. Requests come in over HTTP/1.1, with TLS if asked; answers of success
// go out, for BatchWriteRow one a row. It promises to cost as little as a server can that reads a whole request and
// counts its rows, so that what is measured beside it is the client. It does not know what is in a row, checks no
// signature, signs its answers and forgets every table when it ends.
package null
