// Package page makes a web page of measurements. Facts, tables and series of numbers come in, one HTML file goes out that
// needs nothing else: its style, its charts and the library that draws them (uPlot, see uplot/LICENSE) are inside, and the
// page forbids itself to fetch anything. It promises that names and values are shown as text and never as markup, that
// numbers that are missing leave gaps, and a size that does not grow with the number of partitions beyond MaxHeatRows. It
// does not know what was measured.
package page
