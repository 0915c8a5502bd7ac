package input

import (
	"errors"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestNoSecretOfAnAddressIsShown(t *testing.T) {
	for address, want := range map[string]string{
		"https://h/a.csv":              "https://h/a.csv",
		"https://user:pw@h:8080/a.csv": "https://xxxxx@h:8080/a.csv",
		"https://token@h/a?page=2#top": "https://xxxxx@h/a?page=2",
		"https://h/a?OSSAccessKeyId=i&Expires=9&Signature=s&security-token=t": "https://h/a?OSSAccessKeyId=xxxxx&Expires=9&Signature=xxxxx&security-token=xxxxx",
		"https://h/a?x-oss-credential=c&x-oss-signature=s&x-oss-date=d&v=1":   "https://h/a?x-oss-credential=xxxxx&x-oss-signature=xxxxx&x-oss-date=xxxxx&v=1",
		"https://h/a?X-Amz-Credential=c&X-Amz-Signature=s&X-Amz-Algorithm=a":  "https://h/a?X-Amz-Credential=xxxxx&X-Amz-Signature=xxxxx&X-Amz-Algorithm=a",
		"https://h/a?sv=1&sig=s":                                               "https://h/a?sv=1&sig=xxxxx",
		"https://h/a?access_token=s&api_key=s":                                 "https://h/a?access_token=xxxxx&api_key=xxxxx",
		"https://h/a?%53ignature=s&empty&k%zz=v":                               "https://h/a?%53ignature=xxxxx&xxxxx&xxxxx",
		"https://h/a?pass=s&jwt=s&hdnts=s&pin=1&st=s":                          "https://h/a?pass=xxxxx&jwt=xxxxx&hdnts=xxxxx&pin=xxxxx&st=xxxxx",
		"https://h/a?c2VjcmV0b2ZtaW5lMQ==&id=&page":                            "https://h/a?xxxxx&id=&page",
		"https://h/a?c2VjcmV0b2ZtaW5lMTI=":                                     "https://h/a?xxxxx",
		"https://h/a?file=https://u:p@h/&file=b/c":                             "https://h/a?file=xxxxx&file=b/c",
		"https://h/a?version=AKIAIOSFODNN7EXAMPLEwJalrXUtnFEMIK7MDENGbPxRfiCY": "https://h/a?version=xxxxx",
		"https://h/a?page=1;sig=s&date=1?sig=s":                                "https://h/a?page=xxxxx&date=xxxxx",
		"https://h/a;jsessionid=s/b;s/c.csv":                                   "https://h/a;xxxxx/b;xxxxx/c.csv",
		"https://h/dt=1/token=s/hdnts=exp=1~hmac=s/c":                          "https://h/dt=1/token=xxxxx/hdnts=xxxxx/c",
		"https://h/eyJhbGciOiJIUzI1NiJ9.e30.s-_/a":                             "https://h/xxxxx/a",
		"https://h/a%20b/%3F?x=%20":                                            "https://h/a%20b/%3F?x=xxxxx",
		"https://user:p/w@h/a?Signature=s":                                     "https://xxxxx@h/a?xxxxx",
		"https://user:12/w@h/a":                                                "https://xxxxx@h/a",
		"https://user:12?w@h/a":                                                "https://xxxxx@h/a",
		"https://user:12#w@h/a":                                                "https://xxxxx@h/a",
		"https://user:p#w@h/a":                                                 "https://xxxxx@h/a",
		"https://us er:pw@h:x/a@b":                                             "https://xxxxx@b",
		"https:/user:pw@h/a?sig=s":                                             "https:/xxxxx@h/a?xxxxx",
		"HTTPS:user:pw@h/a":                                                    "HTTPS:xxxxx@h/a",
		"oss://id:s@bucket/key":                                                "oss://xxxxx@bucket/key",
		"oss://id:s/s@bucket/key":                                              "oss://xxxxx@bucket/key",
		"oss://bucket/part-?.csv":                                              "oss://bucket/part-?.csv",
		"oss://bucket/a@b?Signature=s":                                         "oss://bucket/a@b?Signature=xxxxx",
		"postgres://u@h:5/d?table=a.b&sslmode=disable&passfile=/x/y":           "postgres://u@h:5/d?table=a.b&sslmode=disable&passfile=/x/y",
		"postgresql://u:s@h/d?table=a&password=s&sslpassword=s&geheim=s":       "postgresql://xxxxx@h/d?table=a&password=xxxxx&sslpassword=xxxxx&geheim=xxxxx",
		"postgres:///d?table=a%22b":                                            "postgres:///d?table=a%22b",
		"sqlite:/data/shop.db?table=orders":                                    "sqlite:/data/shop.db?table=orders",
		"sqlite:/data/shop.db?table=orders&password=x":                         "sqlite:/data/shop.db?xxxxx",
		"mysql://u:p/w@h/d?table=t":                                            "mysql://xxxxx@h/d?xxxxx",
		"mysql://u:12/w@h/d?table=t":                                           "mysql://xxxxx@h/d?xxxxx",
		"mysql://u:12?table=w@h/d?table=t":                                     "mysql://xxxxx@h/d?xxxxx",
		"mariadb://u@h/d?table=t&key=a,b&ssl-mode=REQUIRED&defaults-file=/a":   "mariadb://u@h/d?table=t&key=a,b&ssl-mode=REQUIRED&defaults-file=/a",
		"https://h/a?sig=xxxxx#2":                                              "https://h/a?sig=xxxxx#2",
	} {
		for _, prefix := range []string{"", "@", "--endpoint=", "--flag=@"} {
			got := Redact(prefix + address)
			conformance.Equal(t, got, prefix+want, "%s", prefix+address)
			conformance.Equal(t, Redact(got), got, "%s", got)
		}
	}
	for _, arg := range []string{"a?.csv", "data//part-?.csv", "@list", "c:/a?b@c", "-", `u="https://x/?id=" + id`, "a@b:c", "http: Server gave HTTP response"} {
		conformance.Equal(t, Redact(arg), arg, "%s", arg)
	}
}

func TestAddressesInTextAreShownWithoutSecrets(t *testing.T) {
	cause := errors.New(`get "https://u:geheim@h/a?sig=geheim": read a.csv:https://h/?geheim; then //u:geheim@h/b (oss://i:geheim@b): no such host`)
	err := RedactError(cause)
	if strings.Contains(err.Error(), "geheim") || !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if want := `get "https://xxxxx@h/a?sig=xxxxx": read a.csv:https://h/?xxxxx; then //xxxxx@h/b (oss://xxxxx@b): no such host`; err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
	if plain := errors.New("read a.csv: EOF"); RedactError(plain) != plain || RedactError(nil) != nil {
		t.Error("an error without a secret is changed")
	}
}

func TestAPasswordWithANumberSignIsNotCutAtIt(t *testing.T) {
	for _, arg := range []string{"http://user:geheim#pw@127.0.0.1/a.csv", "http://user:12#geheim@127.0.0.1/a.csv", "http://geheim#pw@127.0.0.1/a"} {
		_, err := Expand(t.Context(), []string{arg}, Options{Retry: soon})
		if err == nil || !strings.Contains(err.Error(), "write % escapes") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestAddressesThatAreShownAlikeHaveNumbers(t *testing.T) {
	s := newSite(t, text)
	set := expand(t, Options{Retry: soon}, s.address+"?id=1", s.address+"?id=2", s.address+"?id=1", s.address+"?id=3")
	shown := s.address + "?id=xxxxx"
	wantNames(t, set, shown, shown+"#2", shown+"#3")
	if len(set.Warnings) != 1 || !strings.HasPrefix(set.Warnings[0], shown+" is named twice") {
		t.Errorf("warnings %q", set.Warnings)
	}
}

func TestLongValuesOfParametersAreWithheld(t *testing.T) {
	for n, shown := range map[int]bool{40: true, 41: false} {
		value := strings.Repeat("a", n)
		if got := strings.Contains(Redact("https://host/path?versionId="+value), value); got != shown {
			t.Errorf("a value of %d bytes is shown: %v", n, got)
		}
	}
}
