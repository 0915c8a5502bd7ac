package page

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// data is the input of the page's script, in JSON.
type data struct {
	Charts []Chart `json:"charts"`
	Heat   *heat   `json:"heat"`
}

// heat is a heat map. Cells has one byte per cell, interval by interval, in base64; 255 means Most or more.
type heat struct {
	Unit       string   `json:"unit"`
	Every      Number   `json:"every"`
	Columns    int      `json:"columns"`
	Partitions []string `json:"partitions"` // the first partition of each row of cells
	Each       int      `json:"each"`       // number of partitions per row
	Most       Number   `json:"most"`
	Cells      string   `json:"cells"`
}

// MarshalJSON writes at most six significant digits, and null for NaN and infinities.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendFloat(nil, f, 'f', 0, 64), nil
	}
	return json.Marshal(json.Number(strconv.FormatFloat(f, 'g', 6, 64)))
}

// MarshalJSON writes a list of Numbers.
func (v Values) MarshalJSON() ([]byte, error) {
	all := make([]Number, len(v))
	for i := range v {
		all[i] = Number(v[i])
	}
	return json.Marshal(all)
}

// MaxHeatRows limits the rows of a heat map. If there are more partitions, neighbours share a row.
const MaxHeatRows = 512

// heatOf returns a heat map for the script, or nil if it is empty.
func heatOf(h *Heat) *heat {
	if h == nil || len(h.Partitions) == 0 || len(h.Counts) == 0 {
		return nil
	}
	each := (len(h.Partitions) + MaxHeatRows - 1) / MaxHeatRows
	d := &heat{Unit: h.Unit, Every: Number(h.Every), Columns: len(h.Counts), Each: each}
	for i := 0; i < len(h.Partitions); i += each {
		d.Partitions = append(d.Partitions, h.Partitions[i])
	}
	rates := make([]float64, 0, len(h.Counts)*len(d.Partitions))
	for _, column := range h.Counts {
		for i := range d.Partitions {
			sum := int64(0)
			for _, n := range column[min(i*each, len(column)):min((i+1)*each, len(column))] {
				sum += n
			}
			rates = append(rates, float64(sum)/h.Every)
		}
	}
	most := highest(rates)
	cells := make([]byte, len(rates))
	for i, r := range rates {
		level := 255 * r / most
		if r > 0 {
			level = max(level, 1) // small values must not look like zero
		}
		cells[i] = byte(min(255, level))
	}
	d.Most, d.Cells = Number(most), base64.StdEncoding.EncodeToString(cells)
	return d
}

// highest returns the rate that gets the brightest colour. It ignores outliers, which would darken all other cells.
func highest(rates []float64) float64 {
	var some []float64
	for _, r := range rates {
		if r > 0 {
			some = append(some, r)
		}
	}
	if len(some) == 0 {
		return 1
	}
	slices.Sort(some)
	return some[(len(some)-1)*99/100]
}
