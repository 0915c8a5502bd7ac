// Package page makes a web page of an adviser's report. A Report goes in, one HTML file comes out that needs nothing
// else: its style, its drawings and its few lines of script are inside. It promises that names and values from the data
// are shown as text and never as markup. It does not know how the report came about or where the page is kept.
package page
