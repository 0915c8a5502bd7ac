package record

// AppendDatetime writes a time of MySQL's as RFC 3339 does, where it can: dates with zeros, which are none, stay as they are.
func AppendDatetime(dst, text []byte) []byte {
	from := len(dst)
	dst = append(dst, text...)
	if len(text) >= 19 && text[10] == ' ' && string(text[:4]) != "0000" && string(text[5:7]) != "00" && string(text[8:10]) != "00" {
		dst[from+10] = 'T'
	}
	return dst
}
