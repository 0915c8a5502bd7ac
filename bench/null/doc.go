// Package null is a Tablestore server that stores nothing. New makes a Server that accepts requests over HTTP/1.1, with TLS if
// asked, and answers success, for BatchWriteRow and BulkImport with one result a row. It costs as little as a server can that reads each
// request whole and counts its rows, so a measurement against it measures the client. It checks no signatures, signs its
// answers, and has every table that it is asked for.
package null
