package input

import "testing"

func TestNoSecretOfAnAddressIsShown(t *testing.T) {
	for address, want := range map[string]string{
		"https://h/a.csv":              "https://h/a.csv",
		"https://user:pw@h:8080/a.csv": "https://xxxxx@h:8080/a.csv",
		"https://token@h/a?page=2#top": "https://xxxxx@h/a?page=2",
		"https://h/a?OSSAccessKeyId=i&Expires=9&Signature=s&security-token=t": "https://h/a?OSSAccessKeyId=xxxxx&Expires=9&Signature=xxxxx&security-token=xxxxx",
		"https://h/a?x-oss-credential=c&x-oss-signature=s&x-oss-date=d&v=1":   "https://h/a?x-oss-credential=xxxxx&x-oss-signature=xxxxx&x-oss-date=xxxxx&v=1",
		"https://h/a?X-Amz-Credential=c&X-Amz-Signature=s&X-Amz-Algorithm=a":  "https://h/a?X-Amz-Credential=xxxxx&X-Amz-Signature=xxxxx&X-Amz-Algorithm=a",
		"https://h/a?sv=1&sig=s":                                               "https://h/a?sv=1&sig=xxxxx",
		"https://h/a?%53ignature=s&bare&k%zz=v":                                "https://h/a?%53ignature=xxxxx&xxxxx&k%zz=xxxxx",
		"https://h/a%20b/%3F?page=%20":                                         "https://h/a%20b/%3F?page=%20",
		"https://h/a?pass=p&jwt=j&hdnts=h&pin=1&st=2":                          "https://h/a?pass=xxxxx&jwt=xxxxx&hdnts=xxxxx&pin=xxxxx&st=xxxxx",
		"https://h/a?eyJhbGciOiJIUzI1NiJ9.e30.x":                               "https://h/a?xxxxx",
		"https://h/a;jsessionid=s/b;v=1":                                       "https://h/a;xxxxx/b;xxxxx",
		"https://h/a?format=https://u:p@h/":                                    "https://h/a?format=xxxxx",
		"https://h/a?version=AKIAIOSFODNN7EXAMPLEwJalrXUtnFEMIK7MDENGbPxRfiCY": "https://h/a?version=xxxxx",
		"https://h/a?page=2;sid=s":                                             "https://h/a?page=2&sid=xxxxx",
		"https://user:p/w@h/a?Signature=s":                                     "https://xxxxx@h/a?xxxxx",
		"https://us er:pw@h:x/a@b":                                             "https://xxxxx@b",
	} {
		if got := redact(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}
