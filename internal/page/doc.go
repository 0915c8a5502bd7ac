// Package page writes measurements as a web page: one HTML file of facts, tables and charts, which includes its chart
// library (uPlot, see uplot/LICENSE) and fetches nothing. Values are escaped, missing numbers leave gaps, and beyond
// MaxHeatRows the size does not grow with the number of partitions.
package page
