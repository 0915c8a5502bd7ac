package input

import "testing"

func TestNoSecretOfAnAddressIsShown(t *testing.T) {
	for address, want := range map[string]string{
		"https://h/a.csv":              "https://h/a.csv",
		"https://user:pw@h:8080/a.csv": "https://xxxxx@h:8080/a.csv",
		"https://token@h/a?page=2#top": "https://xxxxx@h/a?page=2",
		"https://h/a?OSSAccessKeyId=i&Expires=9&Signature=s&security-token=t": "https://h/a?OSSAccessKeyId=xxxxx&Expires=9&Signature=xxxxx&security-token=xxxxx",
		"https://h/a?x-oss-credential=c&x-oss-signature=s&x-oss-date=d&v=1":   "https://h/a?x-oss-credential=xxxxx&x-oss-signature=xxxxx&x-oss-date=xxxxx&v=1",
		"https://h/a?X-Amz-Credential=c&X-Amz-Signature=s&X-Amz-Algorithm=a":  "https://h/a?X-Amz-Credential=xxxxx&X-Amz-Signature=xxxxx&X-Amz-Algorithm=xxxxx",
		"https://h/a?sv=1&sig=s":                 "https://h/a?sv=1&sig=xxxxx",
		"https://h/a?%53ignature=s&empty&k%zz=v": "https://h/a?%53ignature=xxxxx&empty&k%zz=xxxxx",
		"https://h/a%20b/%3F?x=%20":              "https://h/a%20b/%3F?x=%20",
		"https://user:p/w@h/a?Signature=s":       "https://xxxxx@h/a?xxxxx",
		"https://us er:pw@h:x/a@b":               "https://xxxxx@b",
	} {
		if got := redact(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}
