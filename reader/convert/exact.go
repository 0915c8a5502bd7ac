package convert

import "strconv"

// integral reports whether a number of JSON is written as an integer: without a point or an exponent.
func integral(text []byte) bool {
	for _, c := range text {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}

// exactInteger reports whether a double is the integer that the text is.
func exactInteger(text []byte, f float64) bool {
	return string(strconv.AppendFloat(nil, f, 'f', 0, 64)) == string(text)
}
