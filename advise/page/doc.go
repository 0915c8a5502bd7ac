// Package page writes the adviser's report as a web page. Write takes a Report and writes one self-contained HTML file, with
// its styles, charts and scripts inside. Names and values from the data are shown as text, never as markup.
//
// This package carries no compatibility promise: only the module's root package does.
package page
