// Package page writes measurements as a web page: one HTML file with facts, tables and charts, which includes its chart
// library (uPlot, see uplot/LICENSE) and loads nothing else. Values are escaped, and missing numbers leave gaps. A
// heat map has at most MaxHeatRows rows.
package page
