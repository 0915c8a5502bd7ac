// Package page writes measurements as a web page: one self-contained HTML file of facts, tables and charts, with the
// library that draws them (uPlot, see uplot/LICENSE); it fetches nothing. Values are text, never markup, missing
// numbers leave gaps, and beyond MaxHeatRows the size does not grow with the partitions.
package page
