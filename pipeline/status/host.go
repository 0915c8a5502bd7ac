package status

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// onlyKnownHosts refuses requests for names of elsewhere: a web page whose name an attacker lets point to this machine could
// read the status through the browser. Addresses, localhost and the name that is listened on are this machine's.
func onlyKnownHosts(listen string, next http.Handler) http.Handler {
	own := hostOf(listen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		_, err := netip.ParseAddr(host)
		if err != nil && host != "" && host != own && host != "localhost" && !strings.HasSuffix(host, ".localhost") {
			http.Error(w, "the Host of the request is neither an address nor localhost nor the name of the listener", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf is the host of an address without its port, in lower case.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(address, "[]"), "."))
}
