// Package page writes measurements as a web page. Write takes facts, tables and series of numbers and writes one
// self-contained HTML file, with its styles, its charts and the library that draws them (uPlot, see uplot/LICENSE)
// inside; the page forbids itself to fetch anything. Names and values are shown as text, never as markup, missing
// numbers leave gaps, and beyond MaxHeatRows the size does not grow with the number of partitions.
package page
